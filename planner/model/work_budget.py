"""The work that one search may do, counted in sums that it tries, so that every answer comes in time."""

from __future__ import annotations

from dataclasses import dataclass

BUDGET = 3_000_000
"""Sums of one kind of pods that one plan may try, about a second; one of several kinds counts twice."""


class BudgetEnded(Exception):  # noqa: N818
    """The search was stopped before it was complete."""


@dataclass(slots=True)
class WorkBudget:
    """Work left, shared by every search for one gang; past the end of a `hard` one nothing is tried."""

    left: int = BUDGET
    hard: bool = False

    def spend(self, work: int) -> None:
        """Take some; raises `BudgetEnded` when there is none left."""
        self.left -= work
        if self.left < 0:
            raise BudgetEnded
