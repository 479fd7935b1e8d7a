"""Claims for unlike, split and tied devices against trying every device for every claim."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.exact.devices import Asked, World

INSTANCES = max(250, int(os.environ.get("BAYPLAN_EXACT", "400")) // 8)


def placed(world: World, answer: Answer) -> dict[str, list[int]]:
    """The pods of each PodSet on each node."""
    counts: dict[str, list[int]] = {}
    for assignment in answer.assignments:
        counts.setdefault(assignment.node, [0] * len(world.counts))[int(assignment.pod_set[-1])] += (
            assignment.count
        )
    return counts


def test_devices_are_assigned_exactly() -> None:
    """No wrong refusal and no wrong yes, and every node of a placement can give all of its pods' devices."""
    seen: Counter[bool] = Counter()
    for number in range(INSTANCES):
        world = World(Random(number))
        feasible = world.feasible()
        seen[feasible] += 1
        answer = plan(world.snapshot(), world.group())
        assert (answer.decision == "admitted") == feasible, (number, world, answer)
        assert all(world.on(name, counts) for name, counts in placed(world, answer).items()), number
    assert min(seen.values()) > INSTANCES // 5


def test_devices_that_are_promised_are_out_of_reach_for_others() -> None:
    """A second gang is planned beside what the first has reserved and not yet been given."""
    seen: Counter[bool] = Counter()
    for number in range(INSTANCES // 2):
        world = World(Random(f"second {number}"))
        snapshot, first = world.snapshot(), world.group("team/Job/first")
        answer = plan(snapshot, first)
        reservation = reservation_for(snapshot, first, answer)
        if reservation is None:
            continue
        others = {
            name: [claim for claim, count in zip(world.claims, counts, strict=True) for _ in range(count)]
            for name, counts in placed(world, answer).items()
        }
        world.counts = [1 for _ in world.counts]
        seen[_agrees(world, plan(snapshot.with_reservation(reservation), world.group()), others, number)] += 1
    assert all(seen[feasible] for feasible in (True, False))


def _agrees(world: World, answer: Answer, others: dict[str, list[Asked]], number: int) -> bool:
    feasible = world.feasible(others)
    assert (answer.decision == "admitted") == feasible, (number, world, answer)
    return feasible


def test_a_gang_that_fits_is_never_rejected_for_ever() -> None:
    """What is queued or admitted fits the empty cluster, and what is rejected does not."""
    for number in range(INSTANCES // 4):
        world = World(Random(f"ever {number}"))
        group: PodGroup = world.group()
        answer = plan(world.snapshot(), group)
        world.allocated = {}
        assert (answer.decision != "rejected") == world.feasible(), (number, world, answer)
