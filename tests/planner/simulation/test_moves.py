"""The simulation with moves: which gangs get room, the cost, and what the limits prevent."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from planner.planning.defragmentation.limits import MoveLimits
from planner.simulation.course import Course
from planner.simulation.figures import figures
from planner.simulation.hall import Hall
from planner.simulation.jobs import DAY, Job, jobs
from planner.simulation.planned import DefragmentingStrategy, PlannedStrategy
from planner.simulation.simulate import RESTART, simulate

HOUR = 3600.0
LIMITS = MoveLimits(after=HOUR, every=HOUR, gpu_hours=100.0)


def small() -> Hall:
    """Two racks of two nodes with four GPUs each."""
    return Hall(2, 2, 4)


def halves() -> list[Job]:
    """A job on each node; one job in each rack ends after an hour, so no rack is free for the gang."""
    first = [Job(number, 1, 4, number, DAY if number % 2 else HOUR) for number in range(4)]
    return [*first, Job(4, 2, 4, HOUR, HOUR)]


def run(
    limits: MoveLimits | None = LIMITS, restartable: float = 1.0, wanted: list[Job] | None = None
) -> Course:
    """Two days of these jobs; without limits nothing moves."""
    strategy = (
        PlannedStrategy(small(), "nodes", 64)
        if limits is None
        else DefragmentingStrategy(small(), "nodes", 64, limits, restartable)
    )
    return simulate(halves() if wanted is None else wanted, small(), strategy, 2)


def test_a_gang_waits_for_the_set_time_and_gets_its_place():
    """Without moves it waits for a day, until a long job ends; with them an hour."""
    without, moved = run(None), run()
    assert without.waits[4].seconds > 20 * HOUR
    assert moved.waits[4].seconds == pytest.approx(HOUR, abs=600)
    assert (moved.moves.gangs, moved.moves.restarts) == (1, 1)
    assert without.moves.gangs == 0


def test_what_moves_begins_again_and_is_counted_as_lost():
    """Four GPUs for the two hours since it began, and for the time of its restart."""
    course = run()
    assert course.moves.lost == pytest.approx(4 * (2 * HOUR + RESTART), rel=0.05)
    row = figures([course])
    assert row.moves is not None
    assert row.moves.gpu_hours == pytest.approx(course.moves.lost / HOUR)
    assert row.moves.share == pytest.approx(course.moves.lost / (16 * 2 * DAY))


@pytest.mark.parametrize(
    ("changed", "restartable"),
    [
        (replace(LIMITS, gpu_hours=4.0), 1.0),
        (replace(LIMITS, after=40 * HOUR), 1.0),
        (LIMITS, 0.0),
    ],
    ids=["too much work", "not for so long", "nobody has agreed"],
)
def test_within_its_limits_nothing_moves(changed: MoveLimits, restartable: float):
    """The gang waits as it does without moves."""
    course = run(changed, restartable)
    assert course.moves.gangs == 0
    assert course.waits[4].seconds == run(None).waits[4].seconds


def test_moves_are_as_far_apart_as_was_set():
    """However many gangs wait, in two days there are two at most where there may be one a day."""
    drawn = list(jobs(Random(11), gpus=16, per_node=4, days=2, load=0.9))
    often = run(replace(LIMITS, every=60.0), wanted=drawn).moves.gangs
    seldom = run(replace(LIMITS, every=DAY), wanted=drawn).moves.gangs
    assert seldom <= 2
    assert often >= seldom


def test_every_job_ends_or_still_runs():
    """What moved is neither lost nor run twice: each job waits once, and no GPU is used twice."""
    drawn = list(jobs(Random(5), gpus=16, per_node=4, days=2, load=0.9))
    course = run(replace(LIMITS, after=600.0, every=60.0), wanted=drawn)
    assert len(course.waits) == len(drawn)
    assert all(sample.running + sample.held <= 1.000001 for sample in course.samples)
