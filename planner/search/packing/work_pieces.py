"""The budget of one packing, divided into pieces of work and trials.

    piece (cost, class 7)    uses up its 3,000,000 steps: when it is requested again, it ends at once
    piece (cost, class 8)    has another 3,000,000
    trial of 60              of a shared budget of 100: it uses 40, so 60 are left afterwards

A packing that is cached for later plans has a budget for each piece of work, so that no answer depends on how
much an earlier plan has spent. A packing for a single search shares the budget of that search.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.model.effort.work_budget import BUDGET, BudgetEnded, WorkBudget


class WorkPieces:
    """The remaining budget of a packing. If `budget` is None, each piece of work has its own."""

    def __init__(self, budget: WorkBudget | None) -> None:
        self.own_budgets = budget is None
        self.budget = budget or WorkBudget()
        self._exhausted: set[object] = set()
        self._in_trial = False

    @contextmanager
    def piece(self, *work: object) -> Iterator[None]:
        """Runs a piece of work: with a budget of its own, unless the packing shares a budget or a trial runs.

        Raises `BudgetEnded` at once for a piece that used up its budget before: it would spend the same again
        without a result. `work`: identifies the piece.
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
        """Runs work that may use at most `work` steps of the budget.

        Afterwards a shared budget is reduced by what the trial has used; the budget of a piece is not.
        """
        left, own_budget = self.budget.left, self.own_budgets
        part = self.budget.left = work if own_budget else min(left, work)
        self._in_trial = True
        try:
            yield
        finally:
            self._in_trial = False
            self.budget.left = left if own_budget else self.budget.left + left - part
