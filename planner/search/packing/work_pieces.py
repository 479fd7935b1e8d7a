"""The budget of one packing, divided over pieces of work and trials.

    piece (cost, class 7)    ends after 3,000,000 sums: asked for again, it ends at once
    piece (cost, class 8)    has 3,000,000 of its own
    trial of 60              of a shared budget of 100: it takes 40, so 60 are left afterwards

A packing that is cached for later plans has a budget for each piece of work, so that no answer depends on how
much an earlier plan has spent. A packing for a single search shares the budget of that search.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.model.work_budget import BUDGET, BudgetEnded, WorkBudget


class WorkPieces:
    """The work that a packing may still do. Without an external budget each piece of work has its own."""

    def __init__(self, budget: WorkBudget | None) -> None:
        self.own_budgets = budget is None
        self.budget = budget or WorkBudget()
        self._exhausted: set[object] = set()
        self._in_trial = False

    @contextmanager
    def piece(self, *work: object) -> Iterator[None]:
        """Runs a piece of work, with a budget of its own if the search has none.

        A piece that exceeded its budget is not tried again: another plan would spend the same without a
        result.
        """
        if not self.own_budgets or self._in_trial:
            yield
            return
        if work in self._exhausted:
            raise BudgetEnded
        outer, self.budget.left = self.budget.left, BUDGET
        try:
            yield
        except BudgetEnded:
            self._exhausted.add(work)
            raise
        finally:
            self.budget.left = outer

    @contextmanager
    def trial(self, work: int) -> Iterator[None]:
        """Runs work that may use at most `work` of the budget.

        Of a shared budget only the used part is gone afterwards; of a piece's own budget nothing.
        """
        left, own_budget = self.budget.left, self.own_budgets
        part = self.budget.left = work if own_budget else min(left, work)
        self._in_trial = True
        try:
            yield
        finally:
            self._in_trial = False
            self.budget.left = left if own_budget else self.budget.left + left - part
