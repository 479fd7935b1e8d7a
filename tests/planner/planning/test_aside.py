"""Gangs that are planned concurrently get different places of the same cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.labels import Requirement
from planner.model.pod import PodTerm
from planner.model.topology import HOSTNAME
from planner.planning.aside import plan_aside
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, pod_set, racks, shape


def gang_number(number: int, *pods: int, **words: str):
    """One of several gangs that differ only in their names."""
    return gang(*pods, name=f"default/Job/g{number}", **words)


def places(snapshot, gangs, rivals: int) -> list[tuple[str, ...]]:
    """The domains of the gangs, each planned alone in the same snapshot."""
    return [plan_aside(snapshot, group, rivals).domain for group in gangs]


def test_without_rivals_the_plan_is_the_plan():
    """Offline, and wherever one call comes after the other."""
    snapshot = racks(4, 2)
    gangs = [gang_number(number, 2, required="rack") for number in range(8)]
    assert [plan_aside(snapshot, group, 0) for group in gangs] == [plan(snapshot, group) for group in gangs]


def test_gangs_with_rivals_take_different_ones_of_equal_racks():
    """Eight gangs that each see the same four free racks do not all run for the first."""
    snapshot = racks(4, 2)
    chosen = places(snapshot, [gang_number(number, 2, required="rack") for number in range(8)], 7)
    assert len(set(chosen)) >= 3


def test_the_same_gang_with_as_many_rivals_takes_the_same_place():
    """On every replica, and for a rehearsal as in earnest."""
    snapshot = racks(4, 2)
    group = gang_number(3, 2, required="rack")
    assert plan_aside(snapshot, group, 7) == plan_aside(snapshot, group, 7)


def test_no_free_rack_is_broken_for_the_sake_of_rivals():
    """The one rack in use has room for the gang; the others stay whole for gangs that need all of one."""
    snapshot = cluster(
        """
        r1: a b c d
        r2: e f g h
        r3: i j
        r3: k l  used=8
        """
    )
    chosen = places(snapshot, [gang_number(number, 2, required="rack") for number in range(8)], 7)
    assert set(chosen) == {("r3",)}


def test_no_free_block_is_opened_for_the_sake_of_rivals():
    """r2 is as r3 and r4, but they lie in a block that nobody uses yet."""
    snapshot = cluster(
        """
        b1/r1: a b  used=8
        b1/r2: c d
        b2/r3: e f
        b2/r4: g h
        """,
        ("block", "rack"),
    )
    chosen = places(snapshot, [gang_number(number, 2, required="rack") for number in range(8)], 7)
    assert set(chosen) == {("b1", "r2")}


def test_small_pods_with_rivals_share_the_nodes_that_are_in_use():
    """Four nodes have two to five GPUs free; pods of one GPU that come at once use more than the fullest."""
    snapshot = cluster("r1: a used=6\nr1: b used=5\nr1: c used=4\nr1: d used=3")
    gangs = [gang(1, name=f"default/Job/g{number}", gpu=1, reserve="nodes") for number in range(12)]
    chosen = {plan_aside(snapshot, group, 7).assignments[0].node for group in gangs}
    assert len(chosen) >= 3
    assert {plan_aside(snapshot, group, 0).assignments[0].node for group in gangs} == {"a"}


@pytest.mark.parametrize(("used", "nodes"), [(0, 1), (4, 2), (7, 8)])
def test_small_pods_with_rivals_use_no_more_nodes_than_they_need(used, nodes):
    """Eight pods of one GPU that come at once fit together on a free node, on two with four GPUs free."""
    snapshot = cluster(f"r1: a b c d e f g h used={used}")
    gangs = [gang(1, name=f"default/Job/g{number}", gpu=1, reserve="nodes") for number in range(40)]
    assert len({plan_aside(snapshot, group, 7).assignments[0].node for group in gangs}) == nodes


def test_pods_that_exclude_each_other_do_not_share_a_node():
    """Each gang's pod keeps the others off its node, though there is room for eight."""
    snapshot = cluster("r1: a b c d e f g h")
    apart = PodTerm(HOSTNAME, (Requirement("app", "In", ("x",)),))
    pods = replace(shape(gpu=1), labels={"app": "x"}, terms=(apart,))
    gangs = [gang(pod_set(1, pods), name=f"default/Job/g{n}", reserve="nodes") for n in range(40)]
    assert len({plan_aside(snapshot, group, 7).assignments[0].node for group in gangs}) == 8


@pytest.mark.parametrize("rivals", [1, 7, 100])
def test_a_gang_with_one_place_has_it_whoever_else_comes(rivals):
    """Passing over it would leave the gang without one."""
    snapshot = racks(3, 2)
    for taken in (0, 1):
        held = gang_number(90 + taken, 2, required="rack")
        reservation = reservation_for(snapshot, held, plan(snapshot, held))
        snapshot = snapshot.with_reservation(reservation)
    group = gang_number(1, 2, required="rack")
    assert plan_aside(snapshot, group, rivals) == plan(snapshot, group)


@pytest.mark.parametrize("rivals", [0, 7])
def test_a_gang_that_holds_its_place_keeps_it(rivals):
    """A call that is made again gives the answer that was given."""
    snapshot = racks(4, 2)
    group = gang_number(5, 2, required="rack")
    held = reservation_for(snapshot, group, plan_aside(snapshot, group, 7))
    answer = plan_aside(snapshot.with_reservation(held), group, rivals)
    assert answer.replayed
    assert answer.domain == held.domain


def test_a_queued_gang_is_queued():
    """There is no place to pass over."""
    snapshot = cluster("r1: a b  used=8")
    group = gang_number(1, 2, required="rack")
    assert plan_aside(snapshot, group, 7) == plan(snapshot, group)
