"""Tests which gangs and pods to move to free whole racks."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.census.domains import gpus_of
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.planning.defragmentation import cheapest
from planner.planning.defragmentation.free_domains import free_domains
from planner.planning.defragmentation.movable import Cost, Movable, cost_of
from planner.planning.defragmentation.result import Defragmentation, NoMoves
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang
from tests.planner.planning.defragmentation.drawings import NODES, all_fit, drawn, lone, occupied, together

RACKS = """
    r1: a b
    r2: c d
    r3: e f
"""


def freed(snapshot: Snapshot, *movables: Movable, count: int = 1) -> Defragmentation | NoMoves:
    """The cheapest moves that free this many racks."""
    return free_domains(snapshot, movables, snapshot.topologies[0], "rack", count, plan)


def names(result: Defragmentation | NoMoves) -> list[str]:
    """The names of the movables."""
    assert isinstance(result, Defragmentation), result
    return sorted(move.movable.name for move in result.moves)


def test_a_rack_that_is_free_already_counts():
    """No pod is moved for it."""
    pod = lone("x", "a")
    result = freed(occupied("r1: a b\nr2: c d", pod), pod)
    assert names(result) == []
    assert result.domains == (("r2",),)


def test_the_fewest_pods_are_moved():
    """r1 has two pods, r2 and r3 one; of those the first in order is freed."""
    pods = lone("x", "a"), lone("y", "b"), lone("z", "c"), lone("w", "e")
    result = freed(occupied(RACKS, *pods), *pods)
    assert names(result) == ["team/Pod/z"]
    assert result.domains == (("r2",),)


def test_of_as_many_pods_those_of_the_lowest_priority_are_moved():
    """As kube-scheduler chooses whom to preempt."""
    pods = lone("x", "a", priority=100), lone("y", "c", priority=10), lone("z", "e", priority=50)
    assert names(freed(occupied(RACKS, *pods), *pods)) == ["team/Pod/y"]


def test_two_pods_of_low_priority_are_moved_before_a_pod_of_high_priority():
    """The highest priority of those who move counts before their number."""
    pods = lone("x", "a", priority=100), lone("y", "c"), lone("z", "d"), lone("w", "e", priority=100)
    assert names(freed(occupied(RACKS, *pods), *pods)) == ["team/Pod/y", "team/Pod/z"]


def test_of_equal_pods_those_that_lose_the_least_work_are_moved():
    """GPU seconds since they started."""
    pods = lone("x", "a", age=9000.0), lone("y", "c", age=60.0), lone("z", "e", age=7200.0)
    assert names(freed(occupied(RACKS, *pods), *pods)) == ["team/Pod/y"]


def test_many_racks_whose_pods_differ_only_in_age_are_told_apart_in_few_steps(monkeypatch):
    """Eight of sixty, each with one pod: a state for each rack, and some more."""
    monkeypatch.setattr(cheapest, "STATES", 200)
    pods = [lone(f"x{rack}", f"n{rack}", age=60.0 * rack) for rack in range(1, 61)]
    drawing = "\n".join(f"r{rack}: n{rack} gpu=8" for rack in range(1, 61))
    result = freed(occupied(drawing, *pods), *pods, count=8)
    assert names(result) == sorted(f"team/Pod/x{rack}" for rack in range(1, 9))


def test_who_must_not_be_moved_keeps_its_rack():
    """If too few racks are left, the answer names the pod."""
    kept = lone("x", "a", kept_because="is not restartable")
    pods = kept, lone("y", "c"), lone("z", "d"), lone("w", "e"), lone("v", "f")
    assert "team/Pod/x" not in names(freed(occupied(RACKS, *pods), *pods))
    refusal = freed(occupied(RACKS, *pods), *pods, count=3)
    assert isinstance(refusal, NoMoves)
    assert refusal.reason == "DomainsKept"
    assert refusal.kept == {("r1",): "team/Pod/x is not restartable"}
    assert refusal.message == "only 2 of 3 rack domains can be freed: the others are kept"


def test_a_pod_of_which_nothing_is_known_keeps_its_rack():
    """Its owner may not create it again."""
    pod = lone("x", "a")
    refusal = freed(occupied("r1: a b\nr2: c d", pod), count=2)
    assert isinstance(refusal, NoMoves)
    assert "what made it is not known" in refusal.kept[("r1",)]
    refusal = freed(occupied("r1: a b", pod))
    assert isinstance(refusal, NoMoves)
    assert refusal.message == "none of 1 rack domain can be freed: each is kept"


def test_a_rack_with_a_cordoned_node_is_not_freed():
    """Nobody could use it."""
    pods = lone("x", "c"), lone("y", "e")
    refusal = freed(occupied("r1: a b cordoned\nr2: c d\nr3: e f", *pods), *pods, count=3)
    assert isinstance(refusal, NoMoves)
    assert refusal.kept == {("r1",): "a is cordoned"}


def test_a_gang_that_requires_a_rack_is_moved_to_a_rack():
    """Rack r3 has room for both of its pods; r2 only for one."""
    pair = together("pair", "a b", gpu=6, required="rack")
    blocker = lone("x", "c", gpu=8, kept_because="is not restartable")
    snapshot = occupied(
        RACKS, pair, blocker, filler := lone("y", "e", gpu=2, kept_because="is not restartable")
    )
    result = freed(snapshot, pair, blocker, filler)
    assert names(result) == ["team/Job/pair"]
    assert {part.node for move in result.moves for part in move.to} == {"e", "f"}


def test_a_gang_in_two_racks_is_paid_once():
    """Its one move frees two racks, for two pods; any other rack would cost three."""
    pair = together("pair", "a c", gpu=3)
    others = [lone(f"x{index}", node) for index, node in enumerate("eefff")]
    result = freed(occupied(f"{RACKS}\n r4: g h used=4", pair, *others), pair, *others, count=2)
    assert names(result) == ["team/Job/pair"]
    assert result.domains == (("r1",), ("r2",))


def test_there_are_no_moves_where_those_who_leave_have_no_other_place():
    """All other nodes are full."""
    full = lone("x", "a", gpu=8), lone("y", "b", gpu=8), lone("z", "c", gpu=8), lone("w", "d", gpu=8)
    refusal = freed(occupied("r1: a b\nr2: c d", *full), *full)
    assert isinstance(refusal, NoMoves)
    assert refusal.reason == "NoOtherPlace"
    assert refusal.exact
    assert "team/Pod/" in refusal.message


def test_a_gang_takes_along_what_it_holds():
    """Its reservation is for the new rack, and the old one is free."""
    empty = cluster(RACKS)
    group = gang(2, gpu=8, name="team/Job/pair", required="rack")
    held = reservation_for(empty, group, plan(empty, group))
    pods = tuple(
        BoundPod(f"team/pair-{part.node}", part.node, amounts(gpu=8) | {"pods": 1}, reservation=held.id)
        for part in held.assignments
    )
    pair, others = Movable(group, pods), [lone("x", "c", kept_because="stays"), lone("y", "e", gpu=8)]
    snapshot = cluster(
        RACKS, pods=[*pods, *(pod for other in others for pod in other.pods)], reservations=[held]
    )
    result = freed(snapshot, pair, *others)
    assert names(result) == ["team/Pod/y"]
    assert result.after.holding("team/Job/pair") == held
    result = freed(snapshot, pair, *others, count=2)
    assert isinstance(result, NoMoves)
    assert "team/Job/pair" in result.message


def cheapest_by_hand(movables: list[Movable], count: int) -> Cost | None:
    """The least cost of freeing this many racks, by brute force."""
    free = Counter(dict.fromkeys(NODES, 4))
    for movable in movables:
        for pod in movable.pods:
            free[pod.node] -= gpus_of(pod.requests)
    costs = []
    for racks in combinations(sorted(set(NODES.values())), count):
        leaving = [m for m in movables if any(NODES[node] in racks for node in m.nodes)]
        outside = Counter({node: left for node, left in free.items() if NODES[node] not in racks})
        if not any(m.kept_because for m in leaving) and all_fit(leaving, outside):
            costs.append(cost_of(leaving))
    return min(costs, default=None)


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.integers(1, 3))
def test_the_moves_are_the_cheapest_by_brute_force(seed: int, count: int):
    """On every small cluster: the same cost, or none where there are none."""
    snapshot, movables = drawn(seed)
    result = freed(snapshot, *movables, count=count)
    by_hand = cheapest_by_hand(movables, count)
    assert (result.cost if isinstance(result, Defragmentation) else None) == by_hand


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.integers(1, 3))
def test_after_the_moves_the_racks_are_free_and_nobody_is_lost(seed: int, count: int):
    """Each pod is on a node, no node is overcommitted, and who was not named stays."""
    snapshot, movables = drawn(seed)
    result = freed(snapshot, *movables, count=count)
    if isinstance(result, NoMoves):
        return
    assert not result.after.opened.intersection(result.nodes)
    assert sorted(pod.name for pod in result.after.pods) == sorted(pod.name for pod in snapshot.pods)
    assert all(gpus_of(taken) <= 4 for taken in result.after.taken.values())
    stays = {pod.name: pod.node for pod in result.after.pods}
    moved = {move.movable.name for move in result.moves}
    assert all(stays[p.name] == p.node for m in movables if m.name not in moved for p in m.pods)
