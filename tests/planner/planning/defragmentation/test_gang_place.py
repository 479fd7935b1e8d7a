"""Tests which gangs and pods to move to make a place for a waiting gang."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.census.domains import gpus_of
from planner.planning.defragmentation.evacuation import without_movables
from planner.planning.defragmentation.gang_place import gang_place
from planner.planning.defragmentation.movable import Cost, Movable, cost_of
from planner.planning.defragmentation.result import Defragmentation, NoMoves
from planner.planning.plan import plan
from tests.builders import gang
from tests.planner.planning.defragmentation.drawings import all_fit, drawn, lone, occupied, together

RACKS = """
    r1: a b
    r2: c d
    r3: e f
"""


def names(result: Defragmentation | NoMoves) -> list[str]:
    """The names of the movables."""
    assert isinstance(result, Defragmentation), result
    return sorted(move.movable.name for move in result.moves)


def test_a_gang_that_has_a_place_needs_no_moves():
    """The answer states its placement."""
    result = gang_place(occupied(RACKS), [], gang(2, required="rack"), plan)
    assert names(result) == []
    assert result.gang.decision == "admitted"


def test_the_pod_that_keeps_a_gang_out_is_moved():
    """Each rack has a pod, r2 the one of the lowest priority; it goes beside another."""
    pods = [lone("x", "a", priority=5), lone("y", "c"), lone("z", "e", priority=5)]
    result = gang_place(occupied(RACKS, *pods), pods, gang(2, required="rack"), plan)
    assert names(result) == ["team/Pod/y"]
    assert result.gang.domain == ("r2",)
    assert result.moves[0].to[0].node not in ("c", "d")
    assert plan(result.after.without(result.gang.gang), gang(2, required="rack")).domain == ("r2",)


def test_only_as_many_leave_as_must():
    """A gang of one node needs one node of a rack in which both are used."""
    pods = [lone("x", node) for node in "a"] + [lone(f"y{i}", "b") for i in range(3)]
    snapshot = occupied("r1: a b\nr2: c gpu=4", *pods)
    assert names(gang_place(snapshot, pods, gang(1, required="rack"), plan)) == ["team/Pod/x"]


def test_a_gang_that_can_never_run_is_not_moved_for():
    """The answer is that of the plan."""
    refusal = gang_place(occupied(RACKS), [], gang(3, required="rack"), plan)
    assert isinstance(refusal, NoMoves)
    assert "3" in refusal.message


def test_moves_are_not_looked_for_where_too_few_gpus_are_free():
    """Each move takes as many free GPUs as it frees: 12 in all are no place for 16."""
    pods = [lone(f"x{node}", node, 6) for node in "abcdef"]
    refusal = gang_place(occupied(RACKS, *pods), pods, gang(2, required="rack"), plan)
    assert isinstance(refusal, NoMoves)
    assert refusal.reason == "TooFewGpus"
    assert "it asks for 16 GPUs, and 12 are free" in refusal.message


def test_moves_that_would_lose_too_much_work_are_left_out():
    """The cheapest by priority is the oldest; within a limit the younger one of a higher priority goes."""
    pods = [
        lone("old", "a", age=7200.0),
        lone("young", "c", age=60.0, priority=5),
        lone("z", "e", kept_because="stays"),
    ]
    snapshot, wanted = occupied(RACKS, *pods), gang(2, required="rack")
    assert names(gang_place(snapshot, pods, wanted, plan)) == ["team/Pod/old"]
    assert names(gang_place(snapshot, pods, wanted, plan, max_lost=3600.0)) == ["team/Pod/young"]
    refusal = gang_place(snapshot, pods, wanted, plan, max_lost=30.0)
    assert isinstance(refusal, NoMoves)
    assert refusal.reason == "TooMuchWork"
    assert "lose 0.0 GPU-hours or more" in refusal.message


def test_where_nodes_are_cordoned_nobody_stays_on_them():
    """A pod of 6 GPUs has room once x has left; y, beside it, must leave a node that is cordoned."""
    pods = [lone("x", "a", 4, age=9.0), lone("y", "a", 2), lone("z", "b", 4, kept_because="stays")]
    snapshot = occupied("r1: a b\nr2: c gpu=4\nr3: d gpu=4", *pods)
    assert names(gang_place(snapshot, pods, gang(1, gpu=6), plan)) == ["team/Pod/x"]
    assert names(gang_place(snapshot, pods, gang(1, gpu=6), plan, whole_nodes=True)) == [
        "team/Pod/x",
        "team/Pod/y",
    ]


def test_nobody_is_moved_who_has_no_other_place():
    """Pods of 8 GPUs in the only suitable rack fit nowhere else."""
    pods = [
        lone("x", "a", 8),
        lone("y", "b", 8),
        *(lone(f"z{node}", node, 4, kept_because="stays") for node in "cdef"),
    ]
    refusal = gang_place(occupied(RACKS, *pods), pods, gang(2, required="rack"), plan)
    assert isinstance(refusal, NoMoves)
    assert refusal.reason == "NoOtherPlace"


def test_in_a_rack_of_many_pods_those_of_a_node_leave_together():
    """Sixteen pods are too many for every set of them; what is found is said not to be sure the cheapest."""
    pods = [lone(f"x{node}{i}", node) for node in "abcd" for i in range(4)]
    pods += [lone("big", "e", 8, kept_because="stays")]
    snapshot = occupied("r1: a b c d\nr2: e f g", *pods)
    result = gang_place(snapshot, pods, gang(4, gpu=8, required="rack"), plan)
    assert isinstance(result, Defragmentation)
    assert len(result.moves) == 16
    assert not result.exact


def test_a_gang_moves_for_a_gang():
    """Two nodes for two nodes, where the gang does not come."""
    pair = together("pair", "a c", 4)
    stays = [
        lone("x", "d", 1, kept_because="stays"),
        lone("y", "e", 1, kept_because="stays"),
        lone("z", "f", 1, kept_because="stays"),
    ]
    result = gang_place(occupied(RACKS, pair, *stays), [pair, *stays], gang(2, required="rack"), plan)
    assert names(result) == ["team/Job/pair"]
    assert {part.node for part in result.moves[0].to}.isdisjoint(("a", "b"))


def cheapest_by_hand(movables: list[Movable], snapshot, group) -> Cost | None:
    """The least cost, by brute force, of a set of movables without which the gang fits and which fit
    elsewhere afterwards.
    """
    free = Counter(dict.fromkeys(snapshot.nodes, 4))
    for movable in movables:
        for pod in movable.pods:
            free[pod.node] -= gpus_of(pod.requests)
    may_go = [movable for movable in movables if not movable.kept_because]
    costs = []
    for size in range(len(may_go) + 1):
        for leaving in combinations(may_go, size):
            answer = plan(without_movables(snapshot, leaving), group)
            if answer.decision == "admitted":
                used = {part.node for part in answer.assignments}
                outside = Counter({node: left for node, left in free.items() if node not in used})
                if all_fit(list(leaving), outside):
                    costs.append(cost_of(leaving))
    return min(costs, default=None)


@settings(max_examples=50)
@given(st.integers(0, 10**9), st.integers(1, 2))
def test_the_moves_are_the_cheapest_by_brute_force(seed: int, pods: int):
    """Every set of movables, and every other place of each of them."""
    snapshot, movables = drawn(seed)
    group = gang(pods, gpu=4, required="rack", reserve="nodes")
    result = gang_place(snapshot, movables, group, plan)
    cost = result.cost if isinstance(result, Defragmentation) else None
    assert cost == cheapest_by_hand(movables, snapshot, group)
