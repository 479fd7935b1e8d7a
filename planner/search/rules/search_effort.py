"""The work that several level searches for one gang may do together: each is counted with its sums.

a tree of 504 nodes: a search costs 2,000 + 6 * 504 = 5,024 besides its sums; 3,000,000 allow some 600
"""

from __future__ import annotations

from planner.model.work_budget import BUDGET, WorkBudget

_EFFORT = BUDGET
"""The work of all searches for one gang together, in sums."""


_CLIMB, _NODE = 2000, 6
"""What a search costs besides its sums, and for each node that it looks at: so that many searches that try
few sums end in time as well."""


class SearchEffort:
    """The work that may still be done for one gang, over several climbs of a tree with so many
    `nodes`, each within `outer`. The first is always made."""

    def __init__(self, nodes: int, outer: WorkBudget, part: int = 1) -> None:
        self._cost = _CLIMB + _NODE * nodes
        self._outer = outer
        self._left = _EFFORT // part

    @property
    def over(self) -> bool:
        """Whether no more searches are to be made."""
        return self._left <= 0

    def budget(self, *, first: bool) -> WorkBudget:
        """For one search. Only a first one may go on where that ends, with what it then finds."""
        if self._outer.hard:
            return self._outer
        return WorkBudget() if first else WorkBudget(max(0, min(BUDGET, self._left)), hard=True)

    def spend(self, before: int, after: WorkBudget, *, ended: bool) -> None:
        """A search was made with a budget that had this much `before`; `ended`: it did not do."""
        self._left -= self._cost + (before if ended else before - after.left)
        if self._outer.hard:
            self._outer.left -= self._cost
