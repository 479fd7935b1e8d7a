"""What the simulation asks of a way to place gangs: of any, and of those that move running gangs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from planner.planning.defragmentation.limits import MoveLimits
from planner.simulation.hall import Hall
from planner.simulation.jobs import Job
from planner.simulation.rack_use import Taken


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job with its GPUs, and for how many seconds it has run there."""

    job: Job
    taken: Taken
    age: float


@dataclass(frozen=True, slots=True)
class MovedJob:
    """A job that is restarted elsewhere, with the GPU seconds that it loses."""

    job: Job
    taken: Taken
    lost: float


class Strategy(Protocol):
    """A way to place gangs. `partial`: it may place a part of a gang, which then holds it and waits."""

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


@runtime_checkable
class MovingStrategy(Strategy, Protocol):
    """A way to place gangs that also restarts running jobs elsewhere, within `limits`."""

    limits: MoveLimits

    def make_room(self, job: Job, running: Iterable[RunningJob], floor: Hall) -> list[MovedJob]:
        """Returns the jobs to restart so that `place` has room for this one; none if no moves achieve
        that.
        """
        ...
