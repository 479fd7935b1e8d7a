"""Tests how moves are carried out: which gang moves next and where to, and what stops the moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.planning.defragmentation.evacuation import with_cordoned, without_movables
from planner.planning.defragmentation.movable import Movable
from planner.planning.defragmentation.steps import (
    MoveTask,
    NotYet,
    Step,
    UnexpectedChange,
    arrived,
    move_task,
    next_step,
)
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts
from tests.planner.planning.defragmentation.drawings import lone, occupied, together

RACKS = """
    r1: a b
    r2: c d
    r3: e f
"""
R1 = ("a", "b")


def cordoned(*movables: Movable) -> Snapshot:
    """The racks with their pods; r1 is to be freed."""
    return with_cordoned(occupied(RACKS, *movables), R1)


def task_of(snapshot: Snapshot, movables: Iterable[Movable]) -> MoveTask:
    """The move task for these racks."""
    task = move_task(snapshot, movables, R1)
    assert isinstance(task, MoveTask), task
    return task


def step_of(snapshot: Snapshot, *movables: Movable) -> Step:
    """The first step."""
    step = next_step(snapshot, movables, task_of(snapshot, movables), plan)
    assert isinstance(step, Step), step
    return step


def holding(snapshot: Snapshot, movable: Movable, *open_nodes: str) -> Snapshot:
    """The movable with the reservation that the planner makes if only these nodes are schedulable."""
    around = without_movables(with_cordoned(snapshot, set(snapshot.nodes) - set(open_nodes)), [movable])
    held = reservation_for(around, movable.group, plan(around, movable.group))
    assert held is not None, "it has a place"
    return snapshot.with_reservation(held)


def moved_to(snapshot: Snapshot, movable: Movable, *nodes: str) -> tuple[Snapshot, Movable]:
    """The state after its pods were deleted and replaced on these nodes."""
    for pod in movable.pods:
        snapshot = snapshot.without_pod(pod)
    pods = tuple(
        replace(pod, name=f"{pod.name}-again", node=node)
        for pod, node in zip(movable.pods, nodes, strict=False)
    )
    for pod in pods:
        snapshot = snapshot.with_pod(pod)
    return snapshot, replace(movable, pods=pods)


def test_the_largest_leaves_first_and_to_a_place_outside():
    """A gang of two nodes before a pod by itself."""
    pair, single = together("pair", "a b", gpu=4), lone("x", "a")
    step = step_of(cordoned(pair, single), pair, single)
    assert step.movable is pair
    assert {seat.node for seat in step.place.assignments}.isdisjoint(R1)
    assert not step.reserved


def test_nothing_is_done_before_the_cordons_are_seen():
    """A watch tells of them a moment later."""
    single = lone("x", "a")
    task = move_task(occupied(RACKS, single), [single], R1)
    assert isinstance(task, NotYet)
    assert "cordons" in task.message


def test_nobody_is_evicted_while_the_reservation_is_still_there():
    """The leader moves it, and only then the pods are evicted, to where it is."""
    pair = together("pair", "a b", gpu=8)
    before = with_cordoned(holding(occupied(RACKS, pair), pair, *R1), R1)
    task = move_task(before, [pair], R1)
    assert isinstance(task, NotYet)
    assert "team/Job/pair" in task.message
    step = step_of(holding(cordoned(pair), pair, "e", "f"), pair)
    assert (step.reserved, step.place.touched, step.evicts) == (True, {"e", "f"}, pair.pods)


def test_pods_that_stand_on_their_new_place_already_stay():
    """The leader moves the fewest: of a gang on a, b and c only what stands on a and b goes."""
    gang = together("gang", "a b c", gpu=8)
    step = step_of(holding(cordoned(gang), gang, "c", "d", "e"), gang)
    assert [pod.node for pod in step.evicts] == ["a", "b"]


def test_who_has_come_since_the_moves_were_found_is_a_surprise():
    """It was not among those who were to be moved."""
    x, y = lone("x", "a"), lone("y", "b")
    assert isinstance(move_task(cordoned(x, y), [x, y], R1, planned=["team/Pod/x"]), UnexpectedChange)
    assert isinstance(move_task(cordoned(x, y), [x, y], R1, planned=["team/Pod/x", "team/Pod/y"]), MoveTask)


def test_a_budget_that_allows_nothing_now_is_waited_for_and_others_go_first():
    """It may allow it once pods are ready; who may not be moved at all stops it."""
    kept = replace(lone("x", "a"), kept_because="is protected by PodDisruptionBudget x", kept_for_now=True)
    other = lone("y", "b")
    snapshot = cordoned(kept, other)
    task = task_of(snapshot, [kept, other])
    step = next_step(snapshot, [kept, other], task, plan)
    assert isinstance(step, Step)
    assert step.movable is other
    snapshot, other = moved_to(snapshot, other, "c")
    waits = next_step(snapshot, [kept, other], task, plan, [other.name])
    assert isinstance(waits, NotYet)
    assert "PodDisruptionBudget x" in waits.message
    never = replace(kept, kept_because="has not agreed", kept_for_now=False)
    assert next_step(snapshot, [never, other], task, plan, [other.name]) == UnexpectedChange(
        "team/Pod/x has not agreed"
    )


def _uncordoned(snapshot: Snapshot) -> Snapshot:
    return snapshot.with_node(replace(snapshot.nodes["b"], cordoned=False))


def _without_node(snapshot: Snapshot) -> Snapshot:
    return snapshot.without_node("b")


def _with_newcomer(snapshot: Snapshot) -> Snapshot:
    return snapshot.with_pod(BoundPod("other/new", "b", amounts(gpu=1) | {"pods": 1}))


def _full_elsewhere(snapshot: Snapshot) -> Snapshot:
    for node in "cdef":
        snapshot = snapshot.with_pod(BoundPod(f"other/{node}", node, amounts(gpu=8) | {"pods": 1}))
    return snapshot


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_uncordoned, "node b is not cordoned any more"),
        (_without_node, "node b is gone"),
        (_with_newcomer, "pod other/new has come to b"),
        (_full_elsewhere, "team/Pod/x has no other place now"),
    ],
    ids=["uncordoned", "gone", "newcomer", "full"],
)
def test_what_others_do_meanwhile_is_a_surprise(change, message: str):
    """What was true when the moves were found is not any more."""
    single = lone("x", "a")
    snapshot = cordoned(single)
    task = task_of(snapshot, [single])
    step = next_step(change(snapshot), [single], task, plan)
    assert isinstance(step, UnexpectedChange)
    assert step.message.startswith(message)


def test_a_gang_that_is_gone_before_its_turn_is_a_surprise():
    """One that has had its turn is not."""
    x, y = lone("x", "a"), lone("y", "b")
    snapshot = cordoned(x, y)
    task = task_of(snapshot, [x, y])
    left = snapshot.without_pod(y.pods[0])
    assert next_step(left, [x], task, plan) == UnexpectedChange("team/Pod/y is gone")
    assert isinstance(next_step(left, [x], task, plan, ["team/Pod/y"]), Step)


def test_a_reservation_that_is_another_than_at_first_is_a_surprise():
    """Somebody moved it, or it is gone."""
    pair = together("pair", "a b", gpu=8)
    snapshot = holding(cordoned(pair), pair, "e", "f")
    task = task_of(snapshot, [pair])
    for other in (holding(snapshot, pair, "c", "d"), snapshot.without(pair.name)):
        assert next_step(other, [pair], task, plan) == UnexpectedChange(
            "the reservation of team/Job/pair has changed"
        )


def test_all_is_done_once_nobody_is_left():
    """DaemonSets' pods stay."""
    daemon = BoundPod("kube-system/exporter", "a", {"pods": 1}, daemon=True)
    snapshot = cordoned().with_pod(daemon)
    assert next_step(snapshot, [], task_of(snapshot, []), plan) is None


def test_a_step_is_over_when_the_pods_have_ended_and_as_many_run_elsewhere():
    """First the old ones end, then each new one counts."""
    pair = together("pair", "a b", gpu=8)
    snapshot = cordoned(pair)
    task, step = task_of(snapshot, [pair]), step_of(snapshot, pair)
    assert arrived(snapshot, [pair], task, step) == NotYet("for team/pair-0, team/pair-1 to end")
    half, half_gang = moved_to(snapshot, pair, "c")
    assert arrived(half, [half_gang], task, step) == NotYet("for team/Job/pair: 1 of 2 pods are on nodes")
    whole, whole_gang = moved_to(snapshot, pair, "c", "d")
    assert arrived(whole, [whole_gang], task, step) is None


def test_a_pod_beside_its_reserved_place_is_a_surprise():
    """Its gang held e and f."""
    pair = together("pair", "a b", gpu=8)
    snapshot = holding(cordoned(pair), pair, "e", "f")
    task, step = task_of(snapshot, [pair]), step_of(snapshot, pair)
    moved, gang = moved_to(snapshot, pair, "e", "d")
    message = "team/Job/pair has a pod on d; its place is e, f"
    assert arrived(moved, [gang], task, step) == UnexpectedChange(message)


def test_a_pod_by_itself_comes_back_under_another_name():
    """What counts is that its ReplicaSet has as many on nodes as before."""
    x, y = replace(lone("x", "a"), maker="web"), replace(lone("y", "c"), maker="web")
    snapshot = cordoned(x, y)
    task, step = task_of(snapshot, [x, y]), step_of(snapshot, x, y)
    gone = snapshot.without_pod(x.pods[0])
    assert arrived(gone, [y], task, step) == NotYet("for team/Pod/x: 1 of 2 pods are on nodes")
    z = replace(lone("z", "d"), maker="web")
    assert arrived(gone.with_pod(z.pods[0]), [y, z], task, step) is None
