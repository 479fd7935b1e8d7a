"""Statistics of a simulation: shares over time, and waits by gang size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.simulation.jobs import Job, quantile
from planner.simulation.simulate import WHOLE_RACKS, SimulationRun

SIZES = ((1, 4), (5, 32), (33, 64), (65, 1_000_000))
"""Classes of gangs by their GPUs, from and to."""


@dataclass(frozen=True, slots=True)
class WaitingTime:
    """Waiting times of one size class, in seconds.

    `gangs`: number of gangs. `never`: those that had not started at the end; they count with the time that
    they had waited by then.
    """

    size: str
    gangs: int
    mean: float
    p90: float
    never: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Averages over time and over the runs of several seeds, as shares.

    `running`: GPUs of running gangs. `held`: GPUs held and idle. `partly`: nodes partly used (nod-ai's
    fragmentation). `pristine`: empty racks. `startable`: of the time, in which a gang of each of
    `WHOLE_RACKS` could start at once. `slowdown`: mean all-reduce time of gangs of several nodes, relative to
    the fewest racks that could hold them. `by_seed`: `running` of each run.
    """

    strategy: str
    running: float
    held: float
    partly: float
    pristine: float
    startable: tuple[float, ...]
    slowdown: float
    waits: tuple[WaitingTime, ...]
    by_seed: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """Plain JSON, seconds and shares."""
        return {
            "strategy": self.strategy,
            "running": round(self.running, 4),
            "runningBySeed": [round(share, 4) for share in self.by_seed],
            "heldIdle": round(self.held, 4),
            "nodesPartlyUsed": round(self.partly, 4),
            "racksPristine": round(self.pristine, 4),
            "wholeRackGangsStartable": {
                str(racks): round(share, 4) for racks, share in zip(WHOLE_RACKS, self.startable, strict=True)
            },
            "allReduceSlowdown": round(self.slowdown, 4),
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


def outcome(runs: Sequence[SimulationRun]) -> SimulationResult:
    """The statistics of one strategy's runs, one run per seed; all gangs have equal weight."""

    def mean(of: Callable[[SimulationRun], float]) -> float:
        return mean_of([of(run) for run in runs])

    slow = [value for run in runs for value in run.slowdown.values()]
    return SimulationResult(
        strategy=runs[0].strategy,
        running=mean(lambda run: run.mean.running),
        held=mean(lambda run: run.mean.held),
        partly=mean(lambda run: run.mean.partly),
        pristine=mean(lambda run: run.mean.pristine),
        startable=tuple(map(mean_of, zip(*(run.mean.startable for run in runs), strict=True))),
        slowdown=sum(slow) / len(slow) if slow else 1.0,
        waits=tuple(_wait(runs, low, high) for low, high in SIZES),
        by_seed=tuple(run.mean.running for run in runs),
    )


def mean_of(values: Sequence[float]) -> float:
    """The mean; 0 for no values."""
    return sum(values) / len(values) if values else 0.0


def _wait(runs: Sequence[SimulationRun], low: int, high: int) -> WaitingTime:
    entries = [(run, job) for run in runs for job in run.jobs if low <= job.total <= high]
    measured = [(run, job) for run, job in entries if job.number in run.waits]
    waits = [run.waits[job.number] for run, job in measured]
    never_started = sum(1 for run, job in measured if job.number in run.never)
    label = _label([job for _, job in measured], low, high)
    return WaitingTime(label, len(waits), mean_of(waits), quantile(waits, 0.9), never_started)


def _label(jobs: list[Job], low: int, high: int) -> str:
    if high < 1_000_000:
        return f"{low}–{high}"
    return f"{low}–{max((job.total for job in jobs), default=low)}"
