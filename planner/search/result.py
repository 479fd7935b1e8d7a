"""The climb: the finest level that has a domain for the whole gang, and the best domain of that level.

One domain of a finer level is always fewer domains than several, so the first level at which the gang fits
in one domain is where the optimum lies. In mode `domain` a domain must be clear of other gangs to be held;
above the reservable level only hosts whose reservable domain is clear may be used.

The planner's words: a reason, the numbers, and what would work, for a reader of kubectl's output.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.cluster.tree import Subtree, TopologyTree
from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass
from planner.request.topology_request import TopologyRequest
from planner.search.domain_packing import PodsByNode


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement: nodes with the number of pods of each kind, in the branch that was searched."""

    branch: Subtree
    kinds: tuple[PodClass, ...]
    placed: PodsByNode
    cost: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One topology's outcome: the tree that was searched, the request in it, and what was found."""

    tree: TopologyTree
    asked: TopologyRequest
    found: Placement | None
    attempts: tuple[LevelAttempt, ...]
    complete: bool
