"""The course of a cluster over time: running and waiting gangs and free capacity, simulated or replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.bandwidth.model import NVLINK, Links, all_reduce
from planner.simulation.rack_use import RackUse, Taken

STEPS = 200
"""Number of samples of a course, at equal intervals: as many as a plot on a terminal can show."""
WHOLE_RACKS = (1, 2, 4)
"""Sizes of large gangs, in whole racks, for which every state records whether one could start at once; four
NVL72 racks are half of an NVIDIA SuperPOD's scalable unit.
"""
_LINKS = Links(inside=NVLINK["blackwell"])
"""The links that `slowdown` assumes: an NVLink 5 domain in each rack, and InfiniBand NDR between racks."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A cluster at one moment (`time`, in seconds from the beginning), or as a mean over time.

    As shares of all GPUs, nodes or racks: `running`, GPUs of running gangs; `held`, GPUs that are idle but
    held; `partly`, nodes that are partly used; `pristine`, racks without a GPU in use. `startable`: for each
    of `WHOLE_RACKS`, 1 if a gang of that many whole racks could start at once, else 0 (in a mean: the share
    of the time). `waiting`: the number of waiting gangs.
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
    """Totals of moves. `gangs`: the number of gangs for which others were moved. `restarts`: the number of
    moved gangs and pods. `lost`: the lost work in GPU seconds: what the moved gangs had done since their
    start, and the time of their restart.
    """

    gangs: int = 0
    restarts: int = 0
    lost: float = 0.0


@dataclass(slots=True)
class Course:
    """What happened in a cluster of `gpus` GPUs.

    `name`: the strategy, or where the course comes from. `samples`: the states at equal intervals. `mean`:
    the mean over time. `waits`: how long each gang waited. `slowdown`: for each gang of several nodes, its
    all-reduce time divided by that in the fewest racks that could hold it. `moves`: totals of the gangs that
    were restarted elsewhere to make room.
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
    """Returns the state of these racks. `running`: GPUs of running gangs. `held`: held idle GPUs. `waiting`:
    the number of waiting gangs.
    """
    return (
        running / use.gpus,
        held / use.gpus,
        use.partly / len(use.free),
        use.pristine / use.racks,
        *(float(use.pristine >= racks) for racks in WHOLE_RACKS),
        float(waiting),
    )


class CourseRecorder:
    """Makes samples and a mean of the states of a cluster. Each state is recorded with the time until which
    it lasted, in seconds from the beginning.

    With `end` there are `STEPS` samples at equal intervals. Without it there are at most twice as many: when
    that number is reached, every second sample is removed and the interval doubles.
    """

    def __init__(self, end: float = 0.0) -> None:
        self.samples: list[Sample] = []
        self.now = 0.0
        self._open = not end
        self._step = end / STEPS if end else 1.0
        self._sums: list[float] = []

    def advance(self, time: float, state: State) -> None:
        """Records that the cluster was in this state until this time."""
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
        """Returns the course up to the last recorded time."""
        mean = _sample(self.now, [total / self.now if self.now else total for total in self._sums])
        return Course(name, mean, self.samples)


def _sample(time: float, state: Sequence[float]) -> Sample:
    running, held, partly, pristine, *startable, waiting = state
    return Sample(time, running, held, partly, pristine, tuple(startable), waiting)


def slowdown(use: RackUse, taken: Taken) -> float:
    """Returns the all-reduce time on these GPUs, divided by that on as many nodes, spread evenly over the
    fewest racks that could hold them.
    """
    nodes = len(taken)
    largest = sorted(use.nodes_by_rack, reverse=True)
    racks = next((count for count in range(1, len(largest) + 1) if sum(largest[:count]) >= nodes), 1)
    share, remainder = divmod(nodes, racks)
    per_node = max(1, sum(gpus for _, gpus in taken) // nodes)
    ideal = [(share + (rack < remainder)) * per_node for rack in range(racks)]
    return all_reduce(use.spread(taken), links=_LINKS).seconds / all_reduce(ideal, links=_LINKS).seconds
