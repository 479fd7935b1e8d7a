"""Gangs, workloads and pods for the tests of the controller's decisions."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.reservation import Book, Reservation
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Ref, Unbound, Work
from webhook.kube.state.gathering import Gang

NOW = 10_000.0


def ref(name: str, kind: str = "Job") -> Ref:
    """An object with that name; its UID is derived from it."""
    return Ref("batch/v1" if kind == "Job" else "v1", kind, "default", name, f"uid-{name}")


def work(group: PodGroup, *, queued: bool = False, finished: bool = False, created: float = 0.0) -> Work:
    """The Job of a gang named default/Job/NAME."""
    return Work(ref(group.name.split("/")[2]), created, "", (group,), queued, (), finished)


def pod(
    name: str, owner: str = "", *, gated: bool = True, group: PodGroup | None = None, **fields: object
) -> Unbound:
    """A pod of the Job `owner`, or of its own Job."""
    unbound = Unbound(ref(name, "Pod"), 0.0, f"uid-{owner}" if owner else "", gated, (), "worker", "", group)
    return replace(unbound, **fields)  # type: ignore[arg-type]


def waiting(group: PodGroup, *, created: float = 0.0) -> Gang:
    """A gang that waits for a place."""
    return Gang(group, ref(group.name.split("/")[2]), created, True)


def held(snapshot: Snapshot, group: PodGroup, *, claimed: bool = True) -> Reservation:
    """The gang's reservation from the planner, claimed by its Job."""
    reservation = reservation_for(snapshot, group, plan(snapshot, group))
    assert reservation is not None, "it has a place"
    owner = f"uid-{group.name.split('/')[2]}"
    if not claimed:
        return replace(reservation, created=NOW - 10, expires=NOW + 290)
    return replace(reservation, created=NOW - 10, state="claimed", owner_uid=owner)


def booked(snapshot: Snapshot, *groups: PodGroup) -> Snapshot:
    """The snapshot with the planner's reservations for these gangs, made one after the other."""
    for group in groups:
        snapshot = snapshot.with_reservation(held(snapshot, group))
    return snapshot


def world(
    snapshot: Snapshot,
    *,
    works: tuple[Work, ...] = (),
    pods: tuple[Unbound, ...] = (),
    now: float = NOW,
) -> World:
    """The world as the controller sees it."""
    return World(snapshot, works, pods, frozenset({"Job"}), now)


def with_book(snapshot: Snapshot, *reservations: Reservation) -> Snapshot:
    """The snapshot with exactly these reservations."""
    return snapshot.with_book(Book(1, reservations))
