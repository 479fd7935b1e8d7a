"""What a simulation comes to, in the numbers of its table: shares over time, and waits by gang size."""

from __future__ import annotations

from dataclasses import dataclass

from planner.simulated_jobs import Job, quantile
from planner.simulation import Run

SIZES = ((1, 4), (5, 32), (33, 64), (65, 1_000_000))
"""Classes of gangs by their GPUs, from and to."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds that the gangs of one class waited; of `gangs`, `never` had not started at the end (and count
    with what they had waited by then)."""

    size: str
    gangs: int
    mean: float
    p90: float
    never: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Averages over time as shares: `running` (GPUs of running gangs), `held` (GPUs held and idle), `partly`
    (nodes partly used: nod-ai's fragmentation), `pristine` (racks with nothing in them). `slowdown`: the mean
    all-reduce time of gangs of several nodes beside that in as few racks as could hold them."""

    strategy: str
    running: float
    held: float
    partly: float
    pristine: float
    slowdown: float
    waits: tuple[Wait, ...]

    def to_json(self) -> dict[str, object]:
        """Plain JSON, seconds and shares."""
        return {
            "strategy": self.strategy,
            "running": round(self.running, 4),
            "heldIdle": round(self.held, 4),
            "nodesPartlyUsed": round(self.partly, 4),
            "racksPristine": round(self.pristine, 4),
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


def outcome(run: Run) -> Outcome:
    """The numbers of one run."""
    slow = run.slowdown.values()
    return Outcome(
        strategy=run.strategy,
        running=run.mean.running,
        held=run.mean.held,
        partly=run.mean.partly,
        pristine=run.mean.pristine,
        slowdown=sum(slow) / len(slow) if slow else 1.0,
        waits=tuple(_wait(run, low, high) for low, high in SIZES),
    )


def _wait(run: Run, low: int, high: int) -> Wait:
    here = [job for job in run.jobs if low <= job.total <= high and job.number in run.waits]
    waits = [run.waits[job.number] for job in here]
    never = sum(1 for job in here if job.number in run.never)
    mean = sum(waits) / len(waits) if waits else 0.0
    return Wait(_label(here, low, high), len(here), mean, quantile(waits, 0.9), never)


def _label(here: list[Job], low: int, high: int) -> str:
    if high < 1_000_000:
        return f"{low}–{high}"
    return f"{low}–{max((job.total for job in here), default=low)}"
