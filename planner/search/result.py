"""What a search of one tree hands over: the placement, what was tried level by level, whether it was
complete."""

from __future__ import annotations

from dataclasses import dataclass

from planner.cluster.tree import Subtree, TopologyTree
from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass
from planner.request.topology_request import TopologyRequest


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


PodsByNode = list[tuple[int, tuple[int, ...]]]
"""Nodes (by their place in the domain) with the number of pods of each kind."""
