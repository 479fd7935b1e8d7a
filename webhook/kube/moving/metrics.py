"""The metrics of the leader's moves for waiting gangs, without a registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from prometheus_client import Counter

Outcome = Literal["done", "stopped", "none"]
"""`done`: the gang has its place. `stopped`: ended by a surprise. `none`: no moves were found within the
limits.
"""


@dataclass(frozen=True, slots=True)
class MoveMetrics:
    """The leader's counters: sets of moves by outcome, evicted pods, and the GPU-hours of work that these
    lost.
    """

    sets: Counter
    evicted: Counter
    lost_gpu_hours: Counter

    @staticmethod
    def new() -> MoveMetrics:
        """Returns counters at zero."""
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
        """Counts one set of moves."""
        self.sets.labels(outcome).inc()

    @property
    def all(self) -> tuple[Counter, ...]:
        """Returns all counters, for registration."""
        return self.sets, self.evicted, self.lost_gpu_hours
