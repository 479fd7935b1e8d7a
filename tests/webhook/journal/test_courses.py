"""Utilisation and queue, as they were and as they would be.

r1: a b    each node has eight GPUs, and each job takes whole nodes
"""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import reservation_id
from planner.simulation.course import Course
from tests.builders import cluster
from tests.webhook.journal.traffic import ENFORCED, NOTHING, Traffic, job, pod
from webhook.journal.courses import ClusterCourse, Recorded, gpu_racks
from webhook.journal.reader import JournalReader
from webhook.journal.replay import Replay
from webhook.journal.run_lengths import run_lengths

FIRST, SECOND = map(reservation_id, ("research/Job/first", "research/Job/second"))
TWO = cluster("r1: a b")
FOUR = cluster("r1: a b\nr2: c d")


def followed(path: Path, cluster_now: Snapshot, end: float) -> tuple[Course, Course]:
    """What was recorded, and what comes of it in this cluster, until `end`."""
    racks = gpu_racks(cluster_now)
    recorded = Recorded(ClusterCourse("recorded", cluster_now, racks, 0))
    again = Replay(
        NOTHING, cluster_now, ENFORCED,
        course=ClusterCourse("replayed", cluster_now, racks, 0),
        lengths=run_lengths(JournalReader([str(path)]).entries()),
    )  # fmt: skip
    for entry in JournalReader([str(path)]).entries():
        recorded.follow(entry)
        again.answer(entry)
    assert again.course is not None
    again.release_until(end)
    return recorded.cluster.course(end), again.course.course(end)


def waits(course: Course) -> list[tuple[int, float, bool]]:
    """GPUs, seconds, and whether it never started."""
    return [(wait.gpus, wait.seconds, wait.never) for wait in course.waits]


@pytest.fixture
def queued(tmp_path: Path) -> Path:
    """Two nodes: the first gang has both for 100 s, the second waits 90 s for them and has them for 60 s."""
    traffic = Traffic(NOTHING, TWO)
    traffic.stored(job("first", 2), 0)
    traffic.stored(job("second", 2), 10)
    traffic.call(job("first", 2), 100, "validate", "DELETE")
    traffic.call(pod("tick"), 130)
    traffic.gone = (SECOND,)
    traffic.call(pod("tock"), 160)
    return traffic.file(tmp_path / "j.jsonl")


def test_in_the_same_cluster_both_courses_are_the_same(queued: Path) -> None:
    """GPUs and queue at every moment, and each gang's wait, as far as calls tell them."""
    was, now = followed(queued, TWO, 200)
    assert waits(was)[:1] == waits(now)[:1] == [(16, 0, False)]
    assert (waits(was)[1], waits(now)[1]) == ((16, 120, False), (16, 90, False))  # a call told it later
    assert was.mean.running == pytest.approx((100 + 30) / 200)
    assert now.mean.running == pytest.approx((100 + 60) / 200)
    assert was.mean.waiting == pytest.approx(120 / 200)


def test_in_a_larger_cluster_nobody_waits_and_less_is_in_use(queued: Path) -> None:
    """Both gangs have their place at once."""
    _, now = followed(queued, FOUR, 200)
    assert waits(now)[:2] == [(16, 0, False), (16, 0, False)]
    assert now.mean.waiting == 0
    assert max(sample.running for sample in now.samples) == 1


def test_a_gang_that_begins_later_runs_as_long_as_it_did(tmp_path: Path) -> None:
    """Its end in the journal is that of a gang that had begun earlier."""
    traffic = Traffic(NOTHING, FOUR)
    traffic.stored(job("first", 2), 0)
    traffic.stored(job("second", 2), 10)
    traffic.gone = (SECOND,)
    traffic.call(pod("tick"), 50)
    traffic.call(job("second", 2), 55, "validate", "DELETE")
    traffic.gone = (FIRST,)
    traffic.call(pod("tock"), 100)
    path = traffic.file(tmp_path / "j.jsonl")
    _, now = followed(path, TWO, 300)
    assert waits(now) == [(16, 0, False), (16, 90, False)]
    assert now.mean.running == pytest.approx((100 + 40) / 300)


def test_a_gang_that_begins_earlier_runs_as_long_as_it_did(queued: Path) -> None:
    """Not until it had ended: the second gang has its two nodes from 10 s on, and for 60 s."""
    _, now = followed(queued, FOUR, 200)
    assert now.mean.running == pytest.approx((100 + 60) / 400)
    assert {sample.running for sample in now.samples if 75 < sample.time < 95} == {0.5}
    assert {sample.running for sample in now.samples if sample.time > 105} == {0}


def test_calls_about_a_gang_that_has_ended_earlier_begin_nothing_anew(tmp_path: Path) -> None:
    """A controller's update of a Job that still ran there; after its end the same name is another run."""
    traffic = Traffic(NOTHING, TWO)
    traffic.stored(job("first", 2), 0)
    traffic.stored(job("second", 2), 10)
    traffic.call(job("first", 2), 100, "validate", "DELETE")
    traffic.call(pod("tick"), 130)
    traffic.call(job("second", 2), 140, operation="UPDATE")
    traffic.gone = (SECOND,)
    traffic.call(pod("tock"), 160)
    traffic.stored(job("second", 2), 170)
    _, now = followed(traffic.file(tmp_path / "j.jsonl"), FOUR, 200)
    assert now.mean.running == pytest.approx((100 + 60 + 30) / 400)


def test_who_deleted_a_gang_that_ran_did_so_when_they_did(tmp_path: Path) -> None:
    """However long it had run by then: such a run has no length."""
    traffic = Traffic(NOTHING, TWO)
    traffic.stored(job("first", 2), 0)
    traffic.stored(job("second", 2), 10)
    traffic.call(job("first", 2), 100, "validate", "DELETE")
    traffic.call(pod("tick"), 130)
    traffic.call(job("second", 2), 160, "validate", "DELETE")
    _, now = followed(traffic.file(tmp_path / "j.jsonl"), FOUR, 200)
    assert now.mean.running == pytest.approx((100 + 150) / 400)


def test_who_waits_at_the_end_never_started(tmp_path: Path) -> None:
    """And who was deleted meanwhile; both count with the time that they had waited."""
    traffic = Traffic(NOTHING, TWO)
    traffic.stored(job("first", 2), 0)
    traffic.call(job("second", 2), 10)
    traffic.call(job("third", 1), 20)
    traffic.call(job("second", 2), 50, "validate", "DELETE")
    was, now = followed(traffic.file(tmp_path / "j.jsonl"), TWO, 100)
    expected = [(16, 0, False), (16, 40, True), (8, 80, True)]
    assert waits(was) == waits(now) == expected


def test_what_idles_in_a_held_rack_is_told(tmp_path: Path) -> None:
    """A gang that holds its rack whole keeps the other node's GPUs from everybody."""
    six = cluster("r1: a b c\nr2: d e f")
    traffic = Traffic(NOTHING, six)
    whole = job("whole", 2)
    whole["metadata"]["annotations"]["bayplan.dev/reserve"] = "domain"
    traffic.stored(whole, 0)
    for course in followed(traffic.file(tmp_path / "j.jsonl"), six, 100):
        assert (course.mean.running, course.mean.held) == pytest.approx((2 / 6, 1 / 6))
        assert course.mean.pristine == 0.5


def test_what_stands_in_the_cluster_is_in_use() -> None:
    """The pods of its files, on both sides."""
    taken = cluster("r1: a used=8\nr1: b")
    course = ClusterCourse("recorded", taken, gpu_racks(taken), 0).course(10)
    assert course.mean.running == 0.5
