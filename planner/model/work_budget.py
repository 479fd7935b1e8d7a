"""The work limit of one search, in steps instead of seconds: every answer is timely and reproducible."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.deadline import poll

BUDGET = 3_000_000
"""Sums of one kind of pods that one plan may try, about a second; one of several kinds counts twice."""


POLL_EVERY = 10_000
"""Steps between two looks at the deadline: some 3 ms."""


class BudgetEnded(Exception):  # noqa: N818
    """The search stopped before it was complete."""


@dataclass(slots=True)
class WorkBudget:
    """Remaining steps, shared by all searches for one gang; after a `hard` one's end no search starts."""

    left: int = BUDGET
    hard: bool = False
    unpolled: int = 0

    def spend(self, work: int) -> None:
        """Takes steps; raises `BudgetEnded` when none are left, `DeadlinePassed` when there is no time."""
        self.left -= work
        self.unpolled += work
        if self.unpolled >= POLL_EVERY:
            self.unpolled = 0
            poll("search")
        if self.left < 0:
            raise BudgetEnded
