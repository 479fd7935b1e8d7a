"""Limits the work that several level searches for one gang may do together. Work is counted in sums of a
packing.

Example: in a tree of 504 nodes a search costs 2,000 + 6 * 504 = 5,024 besides its sums, so the effort of
3,000,000 allows about 600 searches.
"""

from __future__ import annotations

from planner.model.work_budget import BUDGET, WorkBudget

_EFFORT = BUDGET
"""Work units of all searches for one gang together."""


_SEARCH, _NODE = 2000, 6
"""Fixed cost of a search, and its cost per node. Without them, many searches that try few sums would never
end.
"""


class SearchEffort:
    """The remaining work for one gang over several searches of a tree with `nodes` nodes. The first search
    always runs.
    """

    def __init__(self, nodes: int, outer: WorkBudget, part: int = 1) -> None:
        self._cost = _SEARCH + _NODE * nodes
        self._outer = outer
        self._left = _EFFORT // part

    @property
    def over(self) -> bool:
        """Whether the work is used up."""
        return self._left <= 0

    def budget(self, *, first: bool) -> WorkBudget:
        """Returns the budget of one search. Only a first search may continue after its budget with the best
        result so far.
        """
        if self._outer.hard:
            return self._outer
        return WorkBudget() if first else WorkBudget(max(0, min(BUDGET, self._left)), hard=True)

    def spend(self, before: int, after: WorkBudget, *, ended: bool) -> None:
        """Records a search whose budget had `before` units left at its start; `ended`: the budget was not
        sufficient.
        """
        self._left -= self._cost + (before if ended else before - after.left)
        if self._outer.hard:
            self._outer.left -= self._cost
