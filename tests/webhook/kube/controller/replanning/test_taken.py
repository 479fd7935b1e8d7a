"""Pods without a reservation use what a gang has reserved, and its own pods cannot start there.

r1: n1 n2 n3    a gang of two pods holds n1 and n2; its second pod has ended, and a foreign pod came to n2
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.reservation import reservation_id
from tests.builders import amounts, gang, racks
from tests.webhook.kube.worlds import NOW, booked, pod, work, world
from webhook.kube.controller.noted_places import of_former_place
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.replanning.taken import taken_nodes
from webhook.kube.controller.steps import Action, Follow, LeftUnbound, MoveTo, Stuck
from webhook.kube.controller.unbound_pods import BINDING_SECONDS
from webhook.kube.state.gangs import Unbound
from webhook.placement.stamp import PlacementAnnotation

GANG = "default/Job/a"
PINNED = PlacementAnnotation("admitted", nodes=frozenset({"r1-n1", "r1-n2"}))


def group(gpu: int = 8, pods: int = 2) -> PodGroup:
    """A gang that holds what it uses."""
    return gang(pods, name=GANG, gpu=gpu, reserve="nodes")


def left(name: str = "a-1", age: float = BINDING_SECONDS, **fields: object) -> Unbound:
    """A pod of the gang that its scheduler cannot bind."""
    verdict = "default-scheduler says: 0/3 nodes are available: 1 Insufficient nvidia.com/gpu"
    stated = {"verdict": verdict, "notes": (PINNED,), **fields}
    return pod(name, "a", gated=False, created=NOW - age, **stated)


def shared(*foreign: BoundPod, hosts: int = 3) -> Snapshot:
    """The gang's first pod runs on r1-n1; `foreign`: the other bound pods."""
    own = BoundPod("default/a-0", "r1-n1", amounts(gpu=8, pods=1), reservation_id(GANG))
    return replace(booked(racks(1, hosts), group()), pods=(own, *foreign))


INTRUDER = BoundPod("free/x", "r1-n2", amounts(gpu=8, pods=1))


def due(snapshot: Snapshot, *pods: Unbound, of: PodGroup | None = None) -> list[Action]:
    """What the controller does."""
    return reconcile(world(snapshot, works=(work(of or group()),), pods=pods))


def test_the_seat_moves_and_its_pod_is_told_that_it_has_to_be_created_again():
    """It stays pinned to the full node: the affinity of a pod without gates cannot be changed."""
    move, report = due(shared(INTRUDER), left())
    assert isinstance(move, MoveTo)
    assert move.why == "r1-n2 (free/x uses 8 of 8 nvidia.com/gpu without a reservation there)"
    assert (move.move.moved, move.move.gone, move.move.to) == (1, ("r1-n2",), ("r1-n3",))
    assert isinstance(report, LeftUnbound)
    assert [pod.ref.name for pod in report.outdated] == ["a-1"]


def test_a_cordoned_node_is_left_as_cordoned_with_all_seats():
    """Not seat by seat: the foreign pod there is no further reason."""
    snapshot = shared(INTRUDER)
    snapshot = snapshot.with_node(replace(snapshot.nodes["r1-n2"], cordoned=True))
    held = snapshot.holding(GANG)
    assert held is not None
    assert taken_nodes(snapshot, held, (left(),)) == {}


def test_amounts_that_a_mig_reconfiguration_will_bring_are_there():
    """The place was planned with them."""
    snapshot = shared(BoundPod("free/x", "r1-n2", amounts(gpu=2, pods=1)))
    node = snapshot.nodes["r1-n2"]
    held = snapshot.holding(GANG)
    assert held is not None
    assert list(taken_nodes(snapshot, held, (left(),))) == ["r1-n2"]
    pending = replace(node, pending={"nvidia.com/gpu": 2})
    assert taken_nodes(snapshot.with_node(pending), held, (left(),)) == {}


def test_a_pod_of_a_gang_that_grew_is_not_told_that_it_is_pinned_elsewhere():
    """Its nodes are still seats of the gang; the gang has one more."""
    grown = group(pods=3)
    own = BoundPod("default/a-0", "r1-n1", amounts(gpu=8, pods=1), reservation_id(GANG))
    snapshot = replace(booked(racks(1, 3), grown), pods=(own,))
    held = snapshot.holding(GANG)
    assert held is not None
    assert of_former_place(snapshot, held, (left(),)) == ()


def test_the_seat_moves_too_if_the_node_is_used_by_a_pod_of_a_gang_that_was_moved_off_it():
    """It is still pinned there, and came before this gang's pod. Its gang holds another node."""
    other = gang(1, name="default/Job/b", reserve="nodes")
    snapshot = booked(shared(hosts=4), other)
    assert snapshot.holding(other.name).touched == {"r1-n3"}  # type: ignore[union-attr]
    late = BoundPod("default/b-0", "r1-n2", amounts(gpu=8, pods=1), reservation_id(other.name))
    actions = reconcile(world(snapshot.with_pod(late), works=(work(group()), work(other)), pods=(left(),)))
    (move,) = (action for action in actions if isinstance(action, MoveTo))
    assert move.why == "r1-n2 (default/b-0 uses 8 of 8 nvidia.com/gpu without a reservation there)"
    assert move.move.to == ("r1-n4",)


def test_it_moves_once():
    """In the next round its new seat is free."""
    snapshot = shared(INTRUDER)
    move, _ = due(snapshot, left())
    (report,) = due(snapshot.with_reservation(move.move.reservation), left())  # type: ignore[union-attr]
    assert isinstance(report, LeftUnbound)


def test_a_pod_that_gets_the_node_after_all_takes_its_seat_back():
    """The foreign pod has ended meanwhile."""
    snapshot = shared(INTRUDER)
    move, _ = due(snapshot, left())
    own = BoundPod("default/a-1", "r1-n2", amounts(gpu=8, pods=1), reservation_id(GANG))
    after = snapshot.with_reservation(move.move.reservation).without_pod(INTRUDER)  # type: ignore[union-attr]
    (follow,) = due(after.with_pod(own))
    assert isinstance(follow, Follow)
    assert follow.reservation.touched == {"r1-n1", "r1-n2"}


def test_without_another_place_the_gang_is_told_who_has_its_node():
    """Its seat stays: it may start there once the foreign pod has ended."""
    stuck, _ = due(shared(INTRUDER, hosts=2), left())
    assert isinstance(stuck, Stuck)
    assert "free/x uses 8 of 8 nvidia.com/gpu" in stuck.why


@pytest.mark.parametrize(
    ("foreign", "pods"),
    [
        ((INTRUDER,), ()),
        ((INTRUDER,), (left(age=BINDING_SECONDS - 1),)),
        ((INTRUDER,), (left(verdict=""),)),
        ((), (left(),)),
        ((replace(INTRUDER, node="r1-n3"),), (left(),)),
        ((replace(INTRUDER, requests=amounts(cpu=1, pods=1)),), (left(),)),
    ],
    ids=[
        "no pod waits",
        "only for a moment",
        "no scheduler tried",
        "it is free",
        "another node",
        "room beside",
    ],
)
def test_a_seat_stays_while_it_may_be_used(foreign: tuple[BoundPod, ...], pods: tuple[Unbound, ...]):
    """Moving it would cost the pod that is pinned there its place."""
    assert not [action for action in due(shared(*foreign), *pods) if not isinstance(action, LeftUnbound)]


def test_a_pod_that_runs_beside_the_foreign_one_keeps_its_seat():
    """Two pods share a node, and one of them has lost its half."""
    own = group(gpu=4)
    snapshot = booked(racks(1, 2), own)
    pods = (
        BoundPod("default/a-0", "r1-n1", amounts(gpu=4, pods=1), reservation_id(GANG)),
        BoundPod("free/x", "r1-n1", amounts(gpu=4, pods=1)),
    )
    move, _ = due(replace(snapshot, pods=pods), left(), of=own)
    assert isinstance(move, MoveTo)
    assert {seat.node: seat.count for seat in move.move.reservation.assignments} == {"r1-n1": 1, "r1-n2": 1}


def test_a_seat_that_another_pod_of_the_gang_can_use_is_enough():
    """One pod waits, and of two free seats one is taken: its scheduler has another reason."""
    snapshot = replace(booked(racks(1, 3), group()), pods=(INTRUDER,))
    (report,) = due(snapshot, left())
    assert isinstance(report, LeftUnbound)
