"""Limits the work that several level searches for one gang may do together: the effort. Its unit is one step
of a `WorkBudget`.

Example: in a tree of 504 nodes a search costs 2,000 + 6 * 504 = 5,024 in addition to its steps, so the effort
of 3,000,000 allows at most about 600 searches.
"""

from __future__ import annotations

from planner.model.effort.work_budget import BUDGET, WorkBudget

_EFFORT = BUDGET
"""The effort for all searches for one gang together."""


_SEARCH, _NODE = 2000, 6
"""The fixed cost of a search, and its cost per node of the tree. Without them, many searches with few steps
each would take very long.
"""


class SearchEffort:
    """The remaining effort for one gang, over several searches of a tree with `nodes` nodes.

    `outer`: the budget of the whole search; if it is hard, all searches share it. `part`: the effort is
    divided by this number. The first search always runs.
    """

    def __init__(self, nodes: int, outer: WorkBudget, part: int = 1) -> None:
        self._cost = _SEARCH + _NODE * nodes
        self._outer = outer
        self._left = _EFFORT // part

    @property
    def is_used_up(self) -> bool:
        """Whether the effort is used up."""
        return self._left <= 0

    def budget(self, *, first: bool) -> WorkBudget:
        """Returns the budget of one search. Only the budget of a first search is not hard: if it ends, the
        search may continue with a beam.
        """
        if self._outer.hard:
            return self._outer
        return WorkBudget() if first else WorkBudget(max(0, min(BUDGET, self._left)), hard=True)

    def spend(self, before: int, after: WorkBudget, *, ended: bool) -> None:
        """Subtracts the work of a search. `before`: what was left of its budget at the start; `after`: the
        budget after the search; `ended`: whether the search used up its budget, which then counts in full.
        """
        self._left -= self._cost + (before if ended else before - after.left)
        if self._outer.hard:  # the search used `outer` itself, so its steps are already subtracted
            self._outer.left -= self._cost
