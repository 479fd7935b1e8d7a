"""Limits of moves that the controller makes without a request: how often it moves workloads, how much work
these may lose, and how long a moved workload then stays where it is."""

from __future__ import annotations

from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """Limits of automatic moves.

    `after`: seconds that a gang must have waited before workloads are moved for it; 0 disables moves.
    `every`: minimum seconds between the starts of two sets of moves. `gpu_hours`: the maximum work that the
    moves for one gang may lose, in GPU hours since the start of the moved pods. `rest`: seconds in which a
    moved workload is not moved again; without it the workload that started last would be moved each time,
    because it loses the least work.
    """

    after: float = 0.0
    every: float = HOUR
    gpu_hours: float = 16.0
    rest: float = 24 * HOUR

    @property
    def max_lost(self) -> float:
        """The maximum lost work, in GPU seconds."""
        return self.gpu_hours * HOUR


NO_MOVES = MoveLimits()
"""The default: moves are disabled."""
