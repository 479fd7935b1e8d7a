"""The metrics of moves that the leader makes for gangs that wait; on no registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from prometheus_client import Counter

Outcome = Literal["done", "stopped", "none"]
"""`done`: the gang has its place. `stopped`: by a surprise. `none`: no moves were found within the limits."""


@dataclass(frozen=True, slots=True)
class MoveMetrics:
    """Counters of the leader: of sets of moves by outcome, of pods that were evicted, and of the GPU-hours of
    work that these lost."""

    sets: Counter
    evicted: Counter
    lost_gpu_hours: Counter

    @staticmethod
    def new() -> MoveMetrics:
        """All at zero."""
        sets = Counter(
            "bayplan_defragmentations",
            "Looks for moves for a gang that waits, by what came of them",
            ["outcome"],
            registry=None,
        )
        for outcome in get_args(Outcome):
            sets.labels(outcome)
        return MoveMetrics(
            sets,
            Counter("bayplan_defragmentation_evictions", "Pods evicted for gangs that wait", registry=None),
            Counter(
                "bayplan_defragmentation_lost_gpu_hours",
                "GPU-hours that evicted pods had worked since their start",
                registry=None,
            ),
        )

    def ended(self, outcome: Outcome) -> None:
        """Count one."""
        self.sets.labels(outcome).inc()

    @property
    def all(self) -> tuple[Counter, ...]:
        """Each of them, to be registered."""
        return self.sets, self.evicted, self.lost_gpu_hours
