"""The protocol of the tree search that the rules over labels use.

    r1: a b  r2: c d         a and c have the label row=1, b and d row=2; two pods, no two in one row

The rules build a refined tree of racks, rows and hosts and search it: the result is a and b, in one rack and
two rows.

`LevelSearch` implements this protocol. Rules over labels only change the search space (a refined tree, caps)
and the pod classes (exclusions). They work with any tree search, and the search does not know the rules.
"""

from __future__ import annotations

from typing import Protocol

from planner.model.effort.work_budget import WorkBudget
from planner.model.pod_class import PodClass
from planner.model.podgroup import ReserveMode
from planner.model.topology import ROOT
from planner.search.packing.domain_packing import DomainPacking
from planner.search.result import LevelSearchResult
from planner.search.space import SearchSpace


class TreeSearch(Protocol):
    """Searches for one gang in one tree within `budget`; `spare`: a second budget, for pooled pod classes."""

    space: SearchSpace
    mode: ReserveMode
    budget: WorkBudget
    spare: WorkBudget

    def search(self, pod_classes: tuple[PodClass, ...], required: int) -> LevelSearchResult:
        """Returns the best placement of these pod classes inside one domain of the `required` level (ROOT:
        anywhere), and the attempts at each level.
        """
        ...

    def packing(self, pod_classes: tuple[PodClass, ...], level: int = ROOT) -> DomainPacking:
        """Returns the packing, which computes how many pods of these classes fit in a domain, on the nodes
        that the gang may use if its placement is at this level.
        """
        ...

    def in_space(self, space: SearchSpace, budget: WorkBudget) -> TreeSearch:
        """Returns a search for the same gang in another space, within this budget."""
        ...
