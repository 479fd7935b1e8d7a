"""A decision ends at its deadline: with a message, soon, and without an effect on later decisions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.attack.storm import unlike_job_set
from tests.builders import racks
from tests.effort import fewest_steps, steps_so_far
from tests.webhook.admission.test_bounds import affinity, job, spread
from tests.webhook.admission.test_growth_of_work import ENVIRONMENT, POLICIES, job_set
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision, Phase
from webhook.wire.request import from_object

AT_THE_BOUNDS = {
    "PodSets": lambda: job_set(200),
    "unlike PodSets": lambda: unlike_job_set(40),
    "pods × constraints": lambda: job(2500, **spread(2)),
    "affinity": lambda: job(2, **affinity(100, 10)),
    "containers": lambda: many_containers(300),
}
"""Requests that are as large as they may be, or nearly."""


def many_containers(count: int) -> dict[str, Any]:
    obj = job()
    (container,) = obj["spec"]["template"]["spec"]["containers"]
    obj["spec"]["template"]["spec"]["containers"] = [
        {**container, "name": f"main-{number}"} for number in range(count)
    ]
    return obj


def decided(
    obj: dict[str, Any], late: Callable[[], bool], snapshot: Snapshot, phase: Phase = "mutate"
) -> Decision:
    return decide(from_object(obj), POLICIES, snapshot, phase, replace(ENVIRONMENT, late=late))


MOST_CALLS = 400_000
"""Calls of Python functions between two looks at the time."""


class Late:
    """A deadline that is over from this check on."""

    def __init__(self, looks: float) -> None:
        self.looks, self.asked = looks, 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked > self.looks


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_what_takes_too_long_is_refused_in_words(phase: Phase) -> None:
    """The refusal names the slow part and what to make smaller; it is not a server error."""
    response = decided(job(), Late(0), racks(2, 4), phase).response
    assert (response.allowed, response.code) == (False, 413)
    assert "took longer than one decision may" in response.message
    assert "What would work: fewer" in response.message


def test_each_part_of_a_decision_asks_for_the_time() -> None:
    """Reading, policies, search and explanation check the deadline."""
    parts: set[str] = set()
    for obj in (job_set(3), job(2, **affinity(20, 10))):
        whole = Late(float("inf"))
        decided(obj, whole, racks(2, 4))
        # An odd step: the explanation and the searches that it makes look in turn.
        for looks in range(0, whole.asked, max(1, whole.asked // 40) | 1):
            parts.add(decided(obj, Late(looks), racks(2, 4)).response.message.split(" took longer")[0])
    assert len(parts) == 4, parts


def test_a_decision_that_was_ended_leaves_no_trace() -> None:
    """The shared caches are as before for the next decision."""
    fresh = decided(job_set(6), Late(float("inf")), racks(2, 4))
    shared = racks(2, 4)
    whole = Late(float("inf"))
    decided(job_set(6), whole, racks(2, 4))
    for looks in range(0, whole.asked, max(1, whole.asked // 25)):
        decided(job_set(6), Late(looks), shared)
        again = decided(job_set(6), Late(float("inf")), shared)
        assert again.response == fresh.response
        assert again.steps == fresh.steps


@pytest.mark.parametrize("name", AT_THE_BOUNDS)
def test_the_time_is_asked_for_often_enough(name: str) -> None:
    """Between two looks a thread makes at most so many calls of functions: a quiet core does some four
    million a second, so that it is free within 100 ms. Work is counted, for time depends on the machine."""
    looks: list[int] = []

    def late() -> bool:
        looks.append(steps())
        return looks[-1] > fewest_steps(MOST_CALLS * 10)

    obj = AT_THE_BOUNDS[name]()
    with steps_so_far() as steps:
        looks.append(steps())
        decided(obj, late, racks(3, 8))
        looks.append(steps())
    gap = max(after - before for before, after in pairwise(looks))
    assert gap < fewest_steps(MOST_CALLS), f"{gap} steps"


def test_other_threads_have_their_own_deadline() -> None:
    """The deadline of one decision does not end another."""
    answers: dict[str, bool] = {}

    def answer(name: str, late: bool) -> None:
        answers[name] = decided(job(), lambda: late, racks(2, 4)).response.allowed

    threads = [threading.Thread(target=answer, args=row) for row in (("late", True), ("in time", False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {"late": False, "in time": True}
