"""A new place for a gang that lost nodes: the fewest moved pods first, then the usual objective."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.pod import BoundPod
from tests.builders import amounts, cluster, gang, racks
from tests.webhook.kube.worlds import booked, work, world
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.replanning.replan import Move, lost_nodes, replan
from webhook.kube.controller.steps import Follow, MoveTo


def without(state: Snapshot, *names: str) -> Snapshot:
    """The same cluster, these nodes gone."""
    nodes = [node for node in state.nodes.values() if node.name not in names]
    return replace(snapshot(nodes, state.topologies), reservations=state.reservations)


def nodes_of(move: Move) -> set[str]:
    """Where the gang is after the move."""
    return {seat.node for seat in move.reservation.assignments}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cordoned": True}, "cordoned"),
        ({"ready": False}, "not ready"),
        ({"labels": {"kubernetes.io/hostname": "r1-n1"}}, "relabelled"),
        ({"labels": {"kubernetes.io/hostname": "r1-n1", "rack": "r2"}}, "relabelled"),
        ({"allocatable": amounts(gpu=7, pods=110)}, "has 7 of 8 nvidia.com/gpu"),
    ],
)
def test_a_node_is_lost_when_it_takes_no_pods_or_left_its_domain(change, reason):
    """Each way is named."""
    state = booked(racks(2, 3), gang(2, required="rack", gpu=8))
    nodes = [replace(n, **change) if n.name == "r1-n1" else n for n in state.nodes.values()]
    after = replace(snapshot(nodes, state.topologies), reservations=state.reservations)
    assert lost_nodes(after, state.reservations[0]) == {"r1-n1": reason}
    assert lost_nodes(state, state.reservations[0]) == {}
    assert lost_nodes(without(state, "r1-n1"), state.reservations[0]) == {"r1-n1": "gone"}


@pytest.mark.parametrize(("gone", "lost"), [(0, {}), (1, {"r1-n1": "has 0 of 8 nvidia.com/gpu"})])
def test_a_node_without_devices_is_lost_to_a_gang_only_where_a_pod_has_to_come(gone, lost):
    """While a device plugin restarts, its node shows no devices, and the pods there run on."""
    group = gang(4, required="rack", gpu=4)
    state = booked(racks(2, 2), group)
    (held,) = state.reservations
    nodes = [
        replace(n, allocatable=amounts(gpu=0, pods=110)) if n.name == "r1-n1" else n
        for n in state.nodes.values()
    ]
    used = amounts(gpu=4, pods=1)
    pods = [BoundPod(f"default/p{n}", f"r1-n{1 + n // 2}", used, held.id) for n in range(gone, 4)]
    after = replace(snapshot(nodes, state.topologies), pods=tuple(pods), reservations=state.reservations)
    assert lost_nodes(after, held) == lost


@pytest.mark.parametrize("gpus", [7, 0])
def test_a_pod_that_runs_on_a_node_with_a_failed_gpu_keeps_its_seat(gpus: int):
    """Of two pods on r1-n1 one has ended, and its seat moves. The next round moves nothing more, even if the
    node shows no GPUs at all for a while.
    """
    group = gang(4, required="rack", gpu=4)
    state = booked(racks(2, 3), group)
    (held,) = state.reservations
    failing = replace(state.nodes["r1-n1"], allocatable=amounts(gpu=gpus, pods=110))
    used = amounts(gpu=4, pods=1)
    pods = [BoundPod(f"default/p{n}", f"r1-n{1 + n // 2}", used, held.id) for n in range(1, 4)]
    (action,) = reconcile(world(replace(state, pods=tuple(pods)).with_node(failing), works=(work(group),)))
    assert isinstance(action, MoveTo)
    assert (action.move.moved, action.move.gone, action.move.to) == (1, (), ("r1-n3",))
    counts = {seat.node: seat.count for seat in action.move.reservation.assignments}
    assert counts == {"r1-n1": 1, "r1-n2": 2, "r1-n3": 1}
    after = replace(state, pods=tuple(pods)).with_node(failing).with_reservation(action.move.reservation)
    assert reconcile(world(after, works=(work(group),))) == []


def test_all_seats_of_a_node_that_is_not_ready_move_although_a_pod_is_still_on_it():
    """The pod will be evicted; if the node is ready again before that, the seat follows the pod back."""
    group = gang(4, gpu=4, reserve="nodes")
    state = booked(racks(1, 3), group)
    (held,) = state.reservations
    pods = tuple(
        BoundPod(f"default/p{n}", f"r1-n{1 + n // 2}", amounts(gpu=4, pods=1), held.id) for n in range(1, 4)
    )
    state = replace(state, pods=pods)
    down = state.with_node(replace(state.nodes["r1-n1"], ready=False))
    (action,) = reconcile(world(down, works=(work(group),)))
    assert isinstance(action, MoveTo)
    assert {seat.node: seat.count for seat in action.move.reservation.assignments} == {"r1-n2": 2, "r1-n3": 2}
    again = state.with_reservation(action.move.reservation)
    successor = BoundPod("default/p4", "r1-n3", amounts(gpu=4, pods=1), held.id)
    (follow,) = reconcile(world(again.with_pod(successor), works=(work(group),)))
    assert isinstance(follow, Follow)
    counts = {seat.node: seat.count for seat in follow.reservation.assignments}
    assert counts == {"r1-n1": 1, "r1-n2": 2, "r1-n3": 1}


def test_one_lost_node_of_a_rack_with_room_moves_one_node_of_pods():
    """The others stay, the rack stays held, owner and fingerprint stay."""
    group = gang(3, required="rack")
    state = booked(racks(2, 4), group)
    (held,) = state.reservations
    move = replan(without(state, "r1-n2"), group, held, ["r1-n2"])
    assert isinstance(move, Move)
    assert (move.moved, move.gone, move.to) == (1, ("r1-n2",), ("r1-n4",))
    assert nodes_of(move) == {"r1-n1", "r1-n3", "r1-n4"}
    assert move.reservation.domains == held.domains
    assert (move.reservation.owner_uid, move.reservation.fingerprint) == (held.owner_uid, held.fingerprint)
    assert move.reservation.state == "claimed"


def test_without_room_in_a_required_rack_the_whole_gang_moves():
    """Its rule is one rack, so all of it goes to another."""
    group = gang(2, required="rack")
    state = booked(racks(2, 2), group)
    move = replan(without(state, "r1-n1"), group, state.reservations[0], ["r1-n1"])
    assert isinstance(move, Move)
    assert (move.moved, move.gone) == (2, ("r1-n1", "r1-n2"))
    assert move.reservation.domains == (("r2",),)


def test_without_room_in_a_preferred_rack_only_the_lost_part_moves():
    """It may spread over racks, so what stands stays, and the other rack is held as well."""
    group = gang(2, preferred="rack")
    state = booked(racks(2, 2), group)
    move = replan(without(state, "r1-n1"), group, state.reservations[0], ["r1-n1"])
    assert isinstance(move, Move)
    assert move.moved == 1
    assert nodes_of(move) == {"r1-n2", "r2-n1"}
    assert set(move.reservation.domains) >= {("r1",)}


def test_a_wider_domain_stays_within_what_the_gang_requires():
    """Rack lost, block required: the pods that move stay in the block although another one is emptier."""
    group = gang(2, required="block", preferred="rack")
    state = cluster(
        """
        b1/r1: a b
        b1/r2: c
        b2/r3: d e f
        """,
        levels=("block", "rack"),
    )
    state = booked(state, group)
    (held,) = state.reservations
    assert held.domain == ("b1", "r1")
    move = replan(without(state, "a"), group, held, ["a"])
    assert isinstance(move, Move)
    assert nodes_of(move) == {"b", "c"}


def test_another_gangs_rack_is_never_taken():
    """The only other rack is held: the gang has no place, and is told what is in the way."""
    group, other = gang(2, required="rack"), gang(2, required="rack", name="default/Job/other")
    state = booked(racks(2, 2), group, other)
    answer = replan(without(state, "r1-n1"), group, state.reservations[0], ["r1-n1"])
    assert isinstance(answer, Answer)
    assert answer.decision in ("queued", "rejected")


def test_pods_of_a_gang_that_holds_parts_move_to_parts():
    """Mode nodes: the new reservation uses other nodes and holds none whole, as the former did."""
    group = gang(2, gpu=6, reserve="nodes", required="rack")
    state = booked(racks(1, 3), group)
    (held,) = state.reservations
    lost = sorted({seat.node for seat in held.assignments})[0]
    move = replan(without(state, lost), group, held, [lost])
    assert isinstance(move, Move)
    assert move.moved == 1
    assert nodes_of(move) == {"r1-n1", "r1-n2", "r1-n3"} - {lost}
    assert (move.reservation.nodes, move.reservation.domains) == (frozenset(), ())
