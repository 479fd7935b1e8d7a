"""The texts about a gang's place: annotations of its workload and of admitted pods, and words for events.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.natural_order import natural
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.words import counted, listed
from planner.planning.replay import answer_of
from webhook.kube.api.client import Json
from webhook.kube.controller.actions.gated_pods import let_in
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Ref
from webhook.kube.state.gathering import Gang
from webhook.placement.pod_affinity import host_of
from webhook.placement.stamp import placement_note
from webhook.placement.taints import excluding
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads.keys.annotation_keys import PLACEMENT, POD_SET, RESERVATION

MOST_NAMED = 4
"""Maximum number of nodes that a message names."""


def opened(
    stored: Json, snapshot: Snapshot, group: PodGroup, reservation: Reservation | None, name: str
) -> Json:
    """Returns the merge patch that admits one stored pod of a gang. If `reservation` is None, the pod is not
    pinned, but kept off the nodes that gangs hold whole, as admission does with pods that have no place.

    `name`: the PodSet of the pod, "" if unknown.
    """
    if reservation is None:
        excluded = excluding(snapshot, snapshot.holders)
        return let_in(stored, (excluded,) if excluded else (), (), {})
    nodes = reservation.nodes or {assignment.node for assignment in reservation.assignments}
    hosts = sorted({host_of(snapshot, node) for node in nodes})
    plan = _plan(snapshot, [(group, reservation)])
    notes = notes_of(snapshot, [(group, reservation)]) | ({POD_SET: name} if name else {})
    return let_in(stored, plan.terms().get(name, ()), hosts, notes)


def _plan(snapshot: Snapshot, held: Iterable[tuple[PodGroup, Reservation]]) -> WorkloadPlan:
    return WorkloadPlan(
        tuple(
            GangPlan(replace(group, reserve=reservation.mode), answer_of(reservation), reservation)
            for group, reservation in held
        ),
        snapshot,
    )


def notes_of(snapshot: Snapshot, held: list[tuple[PodGroup, Reservation]]) -> dict[str, str]:
    """Returns the annotations about the places of an object's gangs: the summary of the placement, and the
    reservation ids in the order of the object's replicas.
    """
    return {
        PLACEMENT: placement_note(_plan(snapshot, held)),
        RESERVATION: ",".join(reservation.id for _, reservation in held),
    }


def holds_words(gang: Gang) -> str:
    """Returns the number of the gang's pods as the beginning of a sentence: "8 pods hold"."""
    return counted(gang.group.size, "pod holds", "pods hold")


def place_words(reservation: Reservation) -> str:
    """Returns the path of the reservation's domain, or the number of its nodes if they share none."""
    nodes = {assignment.node for assignment in reservation.assignments}
    return "/".join(reservation.domain) or counted(len(nodes), "node")


def assigned_words(held: Reservation) -> str:
    """Returns the names of the reserved nodes, and the number of pods, as text."""
    nodes = sorted({seat.node for seat in held.assignments}, key=natural)
    pods = counted(held.seats, "pod")
    return f"{listed(nodes, MOST_NAMED)}: held for {pods}"


def held_places(world: World) -> Iterator[tuple[Ref, str]]:
    """Yields each object whose gang holds a place, whoever reserved it, and what the gang holds as text."""
    for reservation in world.snapshot.reservations:
        gang = world.gangs.get(reservation.gang)
        if gang is not None and reservation.expires is None:
            yield gang.ref, f"{holds_words(gang)} {place_words(reservation)} ({reservation.mode})"
