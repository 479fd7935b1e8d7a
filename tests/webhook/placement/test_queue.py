"""A new gang comes after the waiting gangs, unless it takes nothing from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang, of_class, with_classes
from webhook.placement.fair_order import QueueRules, WaitingGang, in_order
from webhook.placement.queue import plan_in_turn
from webhook.placement.workload_plan import WorkloadPlan
from webhook.workloads import Workload

RACKS = """
    r1: a b
    r2: c d
"""


def full(*free: str, racks: str = RACKS) -> Snapshot:
    """Two racks of two nodes, in use but for the nodes that are named."""
    drawn = cluster(racks)
    busy = [name for name in drawn.nodes if name not in free]
    drawn = cluster(racks, pods=[BoundPod(f"x/{name}", name, amounts(gpu=8)) for name in busy])
    return with_classes(drawn, high=5, higher=9)


def workload(group: PodGroup) -> Workload:
    """A Job with this gang."""
    return Workload("Job", group.name, gangs=(group,), holds=True)


def newcomer(pods: int = 1, of: str = "", required: str = "", stating: int | None = None) -> Workload:
    """A Job that is applied now, of a PriorityClass; its template may state a priority."""
    return workload(of_class(gang(pods, name="team/Job/new", required=required), of, stating=stating))


def waits(name: str, pods: int, of: str = "", created: float = 0.0) -> WaitingGang:
    """A gang in the queue that needs one rack."""
    return WaitingGang(of_class(gang(pods, name=f"team/Job/{name}", required="rack"), of), created)


def queue_of(*waiting: WaitingGang) -> Callable[[], Sequence[WaitingGang]]:
    """The queue, as a replica tells it."""
    return lambda: waiting


def nodes(workload_plan: WorkloadPlan) -> list[str]:
    """Where the first gang goes."""
    return [assignment.node for assignment in workload_plan.placed[0].answer.assignments]


def test_a_place_that_has_become_free_is_the_waiting_gangs() -> None:
    """It waits for a rack, the rack is free now, and the controller is about to give it."""
    workload_plan = plan_in_turn(full("a", "b"), newcomer(), queue_of(waits("old", 2)))
    (placed,) = workload_plan.placed
    assert (placed.answer.decision, placed.answer.reason) == ("queued", "BehindOthers")
    assert placed.answer.message == (
        "would fit in r1/a, which is kept for those that wait already: team/Job/old (applied before)"
    )
    assert placed.reservation is None


@pytest.mark.parametrize("behind", [0.0, 0.25, 0.9], ids="by {} s".format)
def test_a_newcomer_is_younger_than_every_stored_gang_even_if_the_clock_is_behind(behind: float) -> None:
    """The API server wrote the creation time, by a clock that the replica follows to about a second."""
    waiting, now = waits("older", 2, created=1000.0), QueueRules(now=1000.0 - behind)
    workload_plan = plan_in_turn(full("a", "b"), newcomer(), queue_of(waiting), rules=now)
    assert workload_plan.placed[0].answer.reason == "BehindOthers"


def test_with_nobody_waiting_the_same_gang_has_its_place() -> None:
    """Only the queue was in its way."""
    assert nodes(plan_in_turn(full("a", "b"), newcomer(), queue_of())) == ["a"]


def test_what_those_ahead_leave_is_the_newcomers() -> None:
    """The waiting gang takes the free rack, the newcomer the free node of the other one."""
    workload_plan = plan_in_turn(full("a", "b", "d"), newcomer(), queue_of(waits("old", 2)))
    assert nodes(workload_plan) == ["d"]
    assert [reservation.gang for reservation in workload_plan.snapshot.reservations] == ["team/Job/new"]


def test_the_first_that_waits_is_never_delayed() -> None:
    """It can have no rack yet; the half rack that it will need is not given away meanwhile."""
    workload_plan = plan_in_turn(full("a"), newcomer(), queue_of(waits("old", 2)))
    assert workload_plan.decision == "queued"


def test_a_waiting_gang_that_will_hold_nothing_is_not_passed_over() -> None:
    """It needs the one rack in which a node is free; a newcomer for that node waits behind it."""
    waiting = WaitingGang(replace(waits("old", 2).group, reserve="none"), 0.0)
    workload_plan = plan_in_turn(full("a"), newcomer(), queue_of(waiting))
    assert workload_plan.placed[0].answer.reason == "BehindOthers"


def test_a_newcomer_that_delays_nobody_goes_ahead() -> None:
    """The waiting gang will have the first rack, where one node is in its way; there is a free node in the
    second one, where two are."""
    racks = full("a", "b", "d", racks="r1: a b c \n r2: d e f")
    assert nodes(plan_in_turn(racks, newcomer(), queue_of(waits("old", 3)))) == ["d"]


def test_a_higher_priority_waits_for_nobody_below_it() -> None:
    """It waits for gangs of the same priority."""
    rack = full("a", "b")
    assert plan_in_turn(rack, newcomer(of="high"), queue_of(waits("old", 2))).decision == "admitted"
    assert plan_in_turn(rack, newcomer(of="high"), queue_of(waits("old", 2, "high"))).decision == "queued"


def test_a_number_in_a_template_jumps_no_queue() -> None:
    """Only the PriorityClass counts; a warning says so."""
    workload_plan = plan_in_turn(full("a", "b"), newcomer(stating=2_000_000), queue_of(waits("old", 2)))
    assert workload_plan.decision == "queued"
    assert "spec.priority 2000000 is ignored" in workload_plan.placed[0].answer.warnings[0]


def test_a_class_that_is_not_there_jumps_no_queue() -> None:
    """It counts as no class."""
    workload_plan = plan_in_turn(full("a", "b"), newcomer(of="forged"), queue_of(waits("old", 2)))
    assert workload_plan.decision == "queued"
    assert "PriorityClass 'forged' is not in this cluster" in workload_plan.placed[0].answer.warnings[0]


def test_a_gang_that_waits_is_not_behind_itself() -> None:
    """It is in the queue and is applied again."""
    again = workload(waits("old", 2).group)
    assert plan_in_turn(full("a", "b"), again, queue_of(waits("old", 2))).decision == "admitted"


def test_a_gang_that_was_let_in_meanwhile_is_waited_for_no_more() -> None:
    """The ledger has its reservation before the watch reports the workload."""
    old = waits("old", 2)
    snapshot = full("a", "b", "c", "d")
    held = reservation_for(snapshot, old.group, plan(snapshot, old.group))
    assert held is not None
    workload_plan = plan_in_turn(snapshot.with_reservation(held), newcomer(2, required="rack"), queue_of(old))
    assert workload_plan.decision == "admitted"


def test_a_gang_that_holds_its_place_keeps_it_whoever_waits() -> None:
    """A retry, a second pass and a pod get the same plan."""
    job = newcomer(2, required="rack")
    first = plan_in_turn(full("a", "b"), job, queue_of())
    again = plan_in_turn(first.snapshot, job, queue_of(waits("old", 2, "higher")))
    assert nodes(again) == nodes(first)


def test_the_queue_is_by_priority_then_age_then_name() -> None:
    """As in the controller."""
    ages = {"b": 2.0, "a": 2.0, "c": 1.0}
    waiting = [*(waits(name, 1, "", age) for name, age in ages.items()), waits("d", 1, "high", 9.0)]
    assert [place.gang.group.name[-1] for place in in_order(full(), waiting)] == ["d", "c", "a", "b"]
