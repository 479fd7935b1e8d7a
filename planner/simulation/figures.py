"""Statistics of courses: mean shares over time, and waiting times by gang size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.planning.defragmentation.limits import HOUR
from planner.simulation.course import WHOLE_RACKS, Course, GangWait
from planner.simulation.jobs import quantile

SIZES = ((1, 4), (5, 32), (33, 64), (65, 1_000_000))
"""Size classes of gangs: the minimum and maximum number of their GPUs."""


@dataclass(frozen=True, slots=True)
class WaitingTime:
    """Waiting times of one size class, in seconds.

    `size`: the class as text, for example "5–32". `gangs`: the number of gangs. `p90`: the 90th percentile.
    `never`: the number of gangs that had not started by the end; the time until then counts as their waiting
    time.
    """

    size: str
    gangs: int
    mean: float
    p90: float
    never: int


@dataclass(frozen=True, slots=True)
class MeanMoves:
    """Means over several courses. `gangs`: the number of gangs for which others were moved. `restarts`: the
    number of moved gangs and pods.

    `gpu_hours`: the lost work in GPU hours. `share`: the lost work as a share of the time of all GPUs.
    """

    gangs: float
    restarts: float
    gpu_hours: float
    share: float

    def to_json(self) -> dict[str, float]:
        """Returns the means as plain JSON."""
        return {
            "gangsHelped": round(self.gangs, 2),
            "restarts": round(self.restarts, 2),
            "lostGpuHours": round(self.gpu_hours, 1),
            "lostShare": round(self.share, 5),
        }


@dataclass(frozen=True, slots=True)
class CourseFigures:
    """Means over time and over several courses of the same name.

    `running`, `held`, `partly` (the share that nod-ai's leaf-spine scheduler calls fragmentation),
    `pristine`, `startable`, `waiting`: as in `Sample`. `slowdown`: the mean of `Course.slowdown`, 1 if there
    are no gangs of several nodes. `by_seed`: `running` of each course. `moves`: None if nothing was moved.
    """

    name: str
    running: float
    held: float
    partly: float
    pristine: float
    startable: tuple[float, ...]
    waiting: float
    slowdown: float
    waits: tuple[WaitingTime, ...]
    by_seed: tuple[float, ...]
    moves: MeanMoves | None = None

    def to_json(self) -> dict[str, object]:
        """Returns the figures as plain JSON, in seconds and shares, without the name."""
        return {
            "running": round(self.running, 4),
            "runningBySeed": [round(share, 4) for share in self.by_seed],
            "heldIdle": round(self.held, 4),
            "nodesPartlyUsed": round(self.partly, 4),
            "racksPristine": round(self.pristine, 4),
            "wholeRackGangsStartable": {
                str(racks): round(share, 4) for racks, share in zip(WHOLE_RACKS, self.startable, strict=True)
            },
            "gangsWaiting": round(self.waiting, 2),
            "allReduceSlowdown": round(self.slowdown, 4),
            **({"moves": self.moves.to_json()} if self.moves is not None else {}),
            "waits": [
                {
                    "gpus": wait.size,
                    "gangs": wait.gangs,
                    "meanSeconds": round(wait.mean),
                    "p90Seconds": round(wait.p90),
                    "neverStarted": wait.never,
                }
                for wait in self.waits
            ],
        }


def figures(courses: Sequence[Course]) -> CourseFigures:
    """Returns the figures of several courses of one name, each with another seed.

    Shares and counts are means in which all courses have equal weight. Waiting times and the slowdown are
    means in which all gangs of all courses have equal weight.
    """

    def mean(of: Callable[[Course], float]) -> float:
        return mean_of([of(course) for course in courses])

    slow = [value for course in courses for value in course.slowdown]
    waits = [wait for course in courses for wait in course.waits]
    return CourseFigures(
        name=courses[0].name,
        running=mean(lambda course: course.mean.running),
        held=mean(lambda course: course.mean.held),
        partly=mean(lambda course: course.mean.partly),
        pristine=mean(lambda course: course.mean.pristine),
        startable=tuple(map(mean_of, zip(*(course.mean.startable for course in courses), strict=True))),
        waiting=mean(lambda course: course.mean.waiting),
        slowdown=mean_of(slow) if slow else 1.0,
        waits=tuple(_of_size(waits, low, high) for low, high in SIZES),
        by_seed=tuple(course.mean.running for course in courses),
        moves=_mean_moves(courses),
    )


def _mean_moves(courses: Sequence[Course]) -> MeanMoves | None:
    """Returns the means of the courses' moves, None if nothing was moved."""
    if not any(course.moves.gangs for course in courses):
        return None
    return MeanMoves(
        mean_of([course.moves.gangs for course in courses]),
        mean_of([course.moves.restarts for course in courses]),
        mean_of([course.moves.lost / HOUR for course in courses]),
        mean_of([course.moves.lost / (course.gpus * course.mean.time) for course in courses]),
    )


def mean_of(values: Sequence[float]) -> float:
    """Returns the mean, 0 for no values."""
    return sum(values) / len(values) if values else 0.0


def _of_size(waits: Sequence[GangWait], low: int, high: int) -> WaitingTime:
    measured = [wait for wait in waits if low <= wait.gpus <= high]
    seconds = [wait.seconds for wait in measured]
    never_started = sum(wait.never for wait in measured)
    largest = high if high < 1_000_000 else max((wait.gpus for wait in measured), default=0)
    label = f"{low}–{largest}" if largest else f"{low} and more"
    return WaitingTime(label, len(seconds), mean_of(seconds), quantile(seconds, 0.9), never_started)
