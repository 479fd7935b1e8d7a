"""The course of a cluster over time: running and waiting gangs and free capacity, simulated or replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.bandwidth.model import NVLINK, Links, all_reduce
from planner.simulation.rack_use import RackUse, Taken

STEPS = 200
"""Number of samples of a course, evenly over time: as many as a plot on a terminal can show."""
WHOLE_RACKS = (1, 2, 4)
"""Sizes, in whole racks, of large gangs whose room is checked at every moment; four racks of NVL72 are half a
unit.
"""
_LINKS = Links(inside=NVLINK["blackwell"])


@dataclass(frozen=True, slots=True)
class Sample:
    """A cluster at one moment, as shares of its GPUs, nodes and racks.

    GPUs of running gangs, GPUs held and idle, nodes partly used, racks pristine. `startable`: for each of
    `WHOLE_RACKS`, whether a gang of that many whole racks could start at once (in a mean: the share of the
    time). `waiting`: the number of waiting gangs.
    """

    time: float
    running: float
    held: float
    partly: float
    pristine: float
    startable: tuple[float, ...]
    waiting: float


@dataclass(frozen=True, slots=True)
class GangWait:
    """How long a gang of `gpus` GPUs waited, in seconds; `never`: it had not started by the end."""

    gpus: int
    seconds: float
    never: bool = False


@dataclass(slots=True)
class Moves:
    """`gangs`: gangs for which others were moved. `restarts`: moved gangs and pods. `lost`: lost GPU seconds,
    since their start and during the restart.
    """

    gangs: int = 0
    restarts: int = 0
    lost: float = 0.0


@dataclass(slots=True)
class Course:
    """What was observed.

    `mean`: the averages over time. `slowdown`: for each gang of several nodes, the all-reduce time relative
    to the fewest racks that could hold it. `moves`: what was restarted elsewhere to make room, in a cluster
    of `gpus` GPUs.
    """

    name: str
    mean: Sample
    samples: list[Sample] = field(default_factory=list)
    waits: list[GangWait] = field(default_factory=list)
    slowdown: list[float] = field(default_factory=list)
    moves: Moves = field(default_factory=Moves)
    gpus: int = 0


State = tuple[float, ...]
"""The state at one moment: the fields of `Sample` from `running` on."""


def state_of(use: RackUse, running: int, held: int, waiting: int) -> State:
    """Returns the state of these racks with the GPUs of running gangs, held idle GPUs, and waiting gangs."""
    return (
        running / use.gpus,
        held / use.gpus,
        use.partly / len(use.free),
        use.pristine / use.racks,
        *(float(use.pristine >= racks) for racks in WHOLE_RACKS),
        float(waiting),
    )


class CourseRecorder:
    """Records states, each with the time until which it lasted (seconds from 0), as samples and a mean.

    With `end` there are `STEPS` evenly spaced samples. Without it the samples become sparser over time, and
    there are at most twice as many.
    """

    def __init__(self, end: float = 0.0) -> None:
        self.samples: list[Sample] = []
        self.now = 0.0
        self._open = not end
        self._step = end / STEPS if end else 1.0
        self._sums: list[float] = []

    def advance(self, time: float, state: State) -> None:
        """The state held until this time."""
        if not self._sums:
            self._sums = [0.0] * len(state)
        self._sums = [
            total + share * (time - self.now) for total, share in zip(self._sums, state, strict=True)
        ]
        while len(self.samples) * self._step <= time and (self._open or len(self.samples) < STEPS):
            self.samples.append(_sample(len(self.samples) * self._step, state))
            if self._open and len(self.samples) == 2 * STEPS:
                self.samples, self._step = self.samples[::2], 2 * self._step
        self.now = time

    def course(self, name: str) -> Course:
        """What was recorded so far."""
        mean = _sample(self.now, [total / self.now if self.now else total for total in self._sums])
        return Course(name, mean, self.samples)


def _sample(time: float, state: Sequence[float]) -> Sample:
    running, held, partly, pristine, *startable, waiting = state
    return Sample(time, running, held, partly, pristine, tuple(startable), waiting)


def slowdown(use: RackUse, taken: Taken) -> float:
    """The all-reduce time relative to the fewest racks that could hold as many nodes, evenly."""
    nodes = len(taken)
    largest = sorted(use.nodes_by_rack, reverse=True)
    racks = next((count for count in range(1, len(largest) + 1) if sum(largest[:count]) >= nodes), 1)
    share, remainder = divmod(nodes, racks)
    per_node = max(1, sum(gpus for _, gpus in taken) // nodes)
    ideal = [(share + (rack < remainder)) * per_node for rack in range(racks)]
    return all_reduce(use.spread(taken), links=_LINKS).seconds / all_reduce(ideal, links=_LINKS).seconds
