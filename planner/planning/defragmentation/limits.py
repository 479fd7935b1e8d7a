"""Limits of moves that are made without being asked for: how often, for how much work, of whom again."""

from __future__ import annotations

from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """`after`: seconds that a gang has waited before anything is moved for it; 0: nothing ever is. `every`:
    seconds from the beginning of one set of moves to that of the next. `gpu_hours`: work that is lost for one
    gang at most, since the start of the pods that move. `rest`: seconds in which what was moved is not moved
    again: whoever began last loses the least, and would else be moved each time.
    """

    after: float = 0.0
    every: float = HOUR
    gpu_hours: float = 16.0
    rest: float = 24 * HOUR

    @property
    def max_lost(self) -> float:
        """The work in GPU seconds."""
        return self.gpu_hours * HOUR


NO_MOVES = MoveLimits()
"""The default."""
