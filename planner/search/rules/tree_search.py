"""The search of one tree, as the rules over labels see it.

    r1: a b  r2: c d         a and c have the label row=1, b and d row=2; two pods, no two in one row

The rules make a finer tree, of rack, row and host, and search it: a and b, in one rack and two rows.

`LevelSearch` is that search. Rules over labels only change where it looks (a finer tree, caps, exclusions),
so they take any search of a tree, and the search knows nothing of the rules.
"""

from __future__ import annotations

from typing import Protocol

from planner.model.pod_class import PodClass
from planner.model.podgroup import ReserveMode
from planner.model.work_budget import WorkBudget
from planner.search.packing.domain_packing import DomainPacking
from planner.search.result import LevelSearchResult
from planner.search.space import SearchSpace


class TreeSearch(Protocol):
    """The searches of one gang in one tree, within `budget`; `spare`: a budget for pooled pod classes."""

    space: SearchSpace
    mode: ReserveMode
    budget: WorkBudget
    spare: WorkBudget

    def search(self, pod_classes: tuple[PodClass, ...], required: int) -> LevelSearchResult:
        """The best placement of these pod classes inside one domain of the `required` level (ROOT: anywhere),
        and what was tried."""
        ...

    def packing(self, pod_classes: tuple[PodClass, ...]) -> DomainPacking:
        """What domains hold of these pod classes, where the gang may be in any of them."""
        ...

    def in_space(self, space: SearchSpace, budget: WorkBudget) -> TreeSearch:
        """A search for the same gang in another space."""
        ...
