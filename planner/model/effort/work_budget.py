"""The work limit of a search, in steps instead of seconds, so that a request always gets the same answer."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.effort.deadline import poll

BUDGET = 3_000_000
"""Maximum number of steps of one plan, about a second of CPU time. In a step, the search adds the pods that
one more domain may hold to a sum over other domains (planner/search/packing/frontier.py); with several pod
classes, this costs two steps."""


POLL_EVERY = 10_000
"""Steps between two checks of the deadline, about 3 ms: so rare that the checks cost nothing measurable, and
so frequent that a search stops in time."""


class BudgetEnded(Exception):  # noqa: N818
    """The budget ran out before the search was complete."""


@dataclass(slots=True)
class WorkBudget:
    """The remaining steps (`left`), shared by all searches for one gang. `hard`: if the budget ends, no
    fallback search may follow with a budget of its own. `unpolled`: steps since the last deadline check."""

    left: int = BUDGET
    hard: bool = False
    unpolled: int = 0

    def spend(self, work: int) -> None:
        """Subtracts steps. Raises `BudgetEnded` if too few are left, `DeadlinePassed` after the deadline."""
        self.left -= work
        self.unpolled += work
        if self.unpolled >= POLL_EVERY:
            self.unpolled = 0
            poll("search")
        if self.left < 0:
            raise BudgetEnded
