"""Discrete-event simulation of a GPU cluster: how long gangs wait, and the state of the cluster meanwhile.

All strategies follow the same rules. Gangs are tried in order of arrival, at every arrival and end. A younger
gang may start before an older one without room, until the older has waited `PATIENCE`; from then on no
younger gang of several nodes starts before it (jobs of one node always may). A gang placed in part (pod by
pod) holds its part; after `GIVE_UP` it releases it, and tries again after the same time. A gang's length does
not depend on its placement.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from planner.bandwidth.model import NVLINK, Links, all_reduce
from planner.simulation.hall import Hall, Taken
from planner.simulation.jobs import DAY, Job

PATIENCE = 12 * 3600.0


GIVE_UP = 3600.0


_LINKS = Links(inside=NVLINK["blackwell"])


_STEPS = 200
"""Samples of a run, evenly over its time: as many as a plot on a terminal can show."""


WHOLE_RACKS = (1, 2, 4)
"""Large gangs, in whole racks, for which room is looked at every moment; four of NVL72's are half a unit."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The hall at one moment, as shares of its GPUs, nodes and racks.

    GPUs of running gangs, GPUs held and idle, nodes partly used, racks pristine. `startable`: for each of
    `WHOLE_RACKS` whether a gang of so many whole racks could start at once (in a mean: the share of the
    time).
    """

    time: float
    running: float
    held: float
    partly: float
    pristine: float
    startable: tuple[float, ...]


def _sample(time: float, shares: Sequence[float]) -> Sample:
    running, held, partly, pristine, *startable = shares
    return Sample(time, running, held, partly, pristine, tuple(startable))


@dataclass(slots=True)
class SimulationRun:
    """The observations of one run.

    `waits`: by job number, seconds until it started, or until the end if it did not; those are in `never`.
    `mean`: the samples' averages over time. `slowdown`: by job number, all-reduce time relative to the fewest
    racks that could hold the gang.
    """

    strategy: str
    jobs: Sequence[Job]
    mean: Sample
    samples: list[Sample] = field(default_factory=list)
    waits: dict[int, float] = field(default_factory=dict)
    never: set[int] = field(default_factory=set)
    slowdown: dict[int, float] = field(default_factory=dict)


def simulate(
    jobs: Sequence[Job],
    floor: Hall,
    strategy: Strategy,
    days: float,
    progress: Callable[[float], None] = lambda share: None,
) -> SimulationRun:
    """Runs the jobs (by arrival) on an empty hall for so many days; `progress` gets the share done."""
    return _Simulation(jobs, floor, strategy, days * DAY, progress).run()


class _Simulation:
    def __init__(
        self,
        jobs: Sequence[Job],
        floor: Hall,
        strategy: Strategy,
        end: float,
        progress: Callable[[float], None],
    ) -> None:
        self.jobs, self.floor, self.strategy, self.end = jobs, floor, strategy, end
        self.progress = progress
        self.now = 0.0
        self.running_gpus = 0
        self.events: list[tuple[float, int, str, Job]] = []
        self.waiting: list[Job] = []
        self.placed: dict[int, Taken] = {}
        self.not_before: dict[int, float] = {}
        self.stuck: set[tuple[int, int]] = set()
        self.sums = [0.0] * (4 + len(WHOLE_RACKS))
        self.run_ = SimulationRun(strategy.name, jobs, _sample(end, self.sums))

    def run(self) -> SimulationRun:
        for job in self.jobs:
            heapq.heappush(self.events, (job.arrival, job.number, "arrive", job))
        while self.events and self.events[0][0] < self.end:
            time, _, event, job = heapq.heappop(self.events)
            self._advance(time)
            getattr(self, f"_{event}")(job)
        self._advance(self.end)
        for job in self.waiting:
            self.run_.waits[job.number] = self.end - job.arrival
            self.run_.never.add(job.number)
        self.run_.mean = _sample(self.end, [total / self.end for total in self.sums])
        return self.run_

    def _advance(self, time: float) -> None:
        """Advances the clock; sums and samples use the state that held until then."""
        floor = self.floor
        shares = (
            self.running_gpus / floor.gpus,
            (floor.busy - self.running_gpus + self.strategy.held(floor)) / floor.gpus,
            floor.partly / len(floor.free),
            floor.pristine / floor.racks,
            *(float(floor.pristine >= racks) for racks in WHOLE_RACKS),
        )
        self.sums = [
            total + share * (time - self.now) for total, share in zip(self.sums, shares, strict=True)
        ]
        while len(self.run_.samples) * self.end / _STEPS <= time and len(self.run_.samples) < _STEPS:
            self.run_.samples.append(_sample(len(self.run_.samples) * self.end / _STEPS, shares))
            self.progress(len(self.run_.samples) / _STEPS)
        self.now = time

    # -- events ---------------------------------------------------------------------------------------------

    def _arrive(self, job: Job) -> None:
        if (job.pods > 1 and self._impatient()) or _shape(job) in self.stuck or not self._try(job):
            self.waiting.append(job)

    def _finish(self, job: Job) -> None:
        taken = self.placed.pop(job.number)
        self.running_gpus -= job.total
        self.floor.give(taken)
        self.strategy.release(job)
        self._pass()

    def _give_up(self, job: Job) -> None:
        """A gang that still waits for a part of its pods releases the placed ones."""
        if job.number not in self.placed or job.number in self.run_.waits:
            return
        self.floor.give(self.placed.pop(job.number))
        self.strategy.release(job)
        self.not_before[job.number] = self.now + GIVE_UP
        self._schedule(self.now + GIVE_UP, "again", job)
        self._pass()

    def _again(self, job: Job) -> None:
        self._pass()

    def _schedule(self, time: float, event: str, job: Job) -> None:
        heapq.heappush(self.events, (time, job.number, event, job))

    # -- starting gangs -------------------------------------------------------------------------------------

    def _impatient(self) -> bool:
        """Whether the oldest waiting gang of several nodes has waited so long that it blocks younger ones."""
        oldest = next((job for job in self.waiting if job.pods > 1), None)
        return oldest is not None and self.now - oldest.arrival > PATIENCE

    def _pass(self) -> None:
        """Tries every waiting gang, the oldest first; skips gangs equal to one that failed."""
        self.stuck.clear()
        still: list[Job] = []
        blocked = False
        for job in self.waiting:
            if (blocked and job.pods > 1) or not self._worth_trying(job) or not self._try(job):
                still.append(job)
                blocked = blocked or (job.pods > 1 and self.now - job.arrival > PATIENCE)
        self.waiting = still

    def _worth_trying(self, job: Job) -> bool:
        if self.not_before.get(job.number, 0.0) > self.now:
            return False
        return _shape(job) not in self.stuck or job.number in self.placed

    def _try(self, job: Job) -> bool:
        """Places the job, or more of it; returns whether all of it now runs."""
        taken = self.strategy.place(job, self.floor)
        before = self.placed.get(job.number, [])
        self.floor.take(taken)
        placed = [*before, *taken]
        if sum(gpus for _, gpus in placed) == job.total:
            self.placed[job.number] = placed
            self._start(job, placed)
            return True
        if not before:
            self.stuck.add(_shape(job))
        if taken:
            self.placed[job.number] = placed
            if not before:
                self._schedule(self.now + GIVE_UP, "give_up", job)
        return False

    def _start(self, job: Job, placed: Taken) -> None:
        self.run_.waits[job.number] = self.now - job.arrival
        self.running_gpus += job.total
        self._schedule(self.now + job.length, "finish", job)
        if job.pods > 1:
            self.run_.slowdown[job.number] = _slowdown(job, self.floor, placed)


def _shape(job: Job) -> tuple[int, int]:
    return job.pods, job.gpus


def _slowdown(job: Job, floor: Hall, placed: Taken) -> float:
    """The all-reduce time relative to the fewest racks that could hold the gang, evenly."""
    racks = -(-job.pods // floor.per_rack)
    share, remainder = divmod(job.pods, racks)
    ideal = [(share + (rack < remainder)) * floor.per_node for rack in range(racks)]
    return all_reduce(floor.spread(placed), links=_LINKS).seconds / all_reduce(ideal, links=_LINKS).seconds


class Strategy(Protocol):
    """One way to place gangs. `partial`: it may place a part of a gang, which then holds that and waits."""

    name: str
    partial: bool

    def place(self, job: Job, floor: Hall) -> Taken:
        """What to take for (more of) the job; empty where nothing can be taken. The caller takes it."""
        ...

    def release(self, job: Job) -> None:
        """The job has ended, or gives up what it holds."""
        ...

    def held(self, floor: Hall) -> int:
        """GPUs that are free and that no other gang may use."""
        ...
