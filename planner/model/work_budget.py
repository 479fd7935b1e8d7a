"""The work limit of a search, in steps instead of seconds: the same request always gets the same answer."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.deadline import poll

BUDGET = 3_000_000
"""Sums that one plan may try, about a second of CPU; a sum of several pod classes counts as two."""


POLL_EVERY = 10_000
"""Steps between two checks of the deadline, about 3 ms: rare enough to cost nothing, often enough to stop."""


class BudgetEnded(Exception):  # noqa: N818
    """The budget ran out before the search was complete."""


@dataclass(slots=True)
class WorkBudget:
    """Remaining steps, shared by all searches for one gang. After a `hard` budget ends no other search
    starts."""

    left: int = BUDGET
    hard: bool = False
    unpolled: int = 0

    def spend(self, work: int) -> None:
        """Uses up steps. Raises `BudgetEnded` if none are left, and `DeadlinePassed` after the deadline."""
        self.left -= work
        self.unpolled += work
        if self.unpolled >= POLL_EVERY:
            self.unpolled = 0
            poll("search")
        if self.left < 0:
            raise BudgetEnded
