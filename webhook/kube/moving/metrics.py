"""The metrics of the leader's moves for waiting gangs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from prometheus_client import Counter

Outcome = Literal["done", "stopped", "none"]
"""The outcome of a search and of its moves. `done`: the gang has its place. `stopped`: a surprise or an error
ended the moves. `none`: no moves were found within the limits.
"""


@dataclass(frozen=True, slots=True)
class MoveMetrics:
    """Counters of searches for moves by outcome, of evicted pods, and of the GPU-hours of work that the
    evicted pods have lost.
    """

    sets: Counter
    evicted: Counter
    lost_gpu_hours: Counter

    @staticmethod
    def new() -> MoveMetrics:
        """Returns counters at zero, without a registry."""
        sets = Counter(
            "bayplan_defragmentations",
            "Searches for moves for a waiting gang, by result",
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
        """Counts one search for moves."""
        self.sets.labels(outcome).inc()

    @property
    def all(self) -> tuple[Counter, ...]:
        """All counters, for registration."""
        return self.sets, self.evicted, self.lost_gpu_hours
