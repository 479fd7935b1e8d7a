"""The search of one tree, as the rules see it around which it is made again and again.

`LevelSearch` is that search. Rules over labels only change where it looks (a finer tree, caps, exclusions),
so they take whatever searches a tree, and the search knows nothing of them.
"""

from __future__ import annotations

from typing import Protocol

from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass
from planner.model.podgroup import ReserveMode
from planner.model.work_budget import WorkBudget
from planner.search.domain_packing import DomainPacking
from planner.search.result import Placement
from planner.search.space import SearchSpace


class TreeSearch(Protocol):
    """The searches of one gang in one tree. `attempts`: what was tried by the last one, fine to coarse;
    `complete`: whether none of them ended in the `budget`; `spare`: a budget for what is looked at pooled."""

    view: SearchSpace
    mode: ReserveMode
    budget: WorkBudget
    spare: WorkBudget
    attempts: list[LevelAttempt]
    complete: bool

    def climb(self, kinds: tuple[PodClass, ...], required: int) -> Placement | None:
        """The best placement with these kinds inside one domain of the `required` level (ROOT: anywhere)."""
        ...

    def packing(self, kinds: tuple[PodClass, ...]) -> DomainPacking:
        """What domains of the view hold of these kinds, where the gang may be in any of them."""
        ...

    def in_space(self, space: SearchSpace, budget: WorkBudget) -> TreeSearch:
        """A search for the same gang in another view, with attempts of its own."""
        ...
