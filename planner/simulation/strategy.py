"""The interfaces of placement strategies: of all, and of those that move running gangs."""

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
    """A job with its GPUs, and the seconds that it has run there (`age`)."""

    job: Job
    taken: Taken
    age: float


@dataclass(frozen=True, slots=True)
class MovedJob:
    """A job that is restarted elsewhere, its new GPUs, and the GPU seconds of work that it loses."""

    job: Job
    taken: Taken
    lost: float


class Strategy(Protocol):
    """A placement strategy. `partial`: it may place a part of a gang, which the gang holds while it waits."""

    name: str
    partial: bool

    def place(self, job: Job, floor: Hall) -> Taken:
        """Returns the GPUs for the job; with `partial`, perhaps for only some of its pods that have none yet.
        Empty if there is no room.

        The caller takes these GPUs from `floor`.
        """
        ...

    def release(self, job: Job) -> None:
        """Removes what the strategy has recorded for the job. Called after the job has ended, or after a
        partly placed job has released its part.
        """
        ...

    def held_gpus(self, floor: Hall) -> int:
        """Returns the number of GPUs that are free but held, so that no other gang may use them."""
        ...


@runtime_checkable
class MovingStrategy(Strategy, Protocol):
    """A placement strategy that also restarts running jobs elsewhere, within `limits`."""

    limits: MoveLimits

    def make_room(self, job: Job, running: Iterable[RunningJob], floor: Hall) -> list[MovedJob]:
        """Returns the jobs to restart so that `place` finds room for this one; empty if no moves suffice."""
        ...
