"""The result of searching one tree: the placement, the attempts level by level, and whether it was complete.

    b1: r1 ...  r2 ...        a dot is a free node; three pods of a node each, rack required

Tried were the host, the best of which takes one of three pods, then the rack, where r1 takes three. The
placement is in the branch b1/r1, with the nodes 0, 1 and 2 of the tree and one pod of the first class on
each.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass
from planner.request.topology_request import TopologyRequest


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement: nodes with the number of pods of each pod class, in the domain `branch`."""

    branch: Subtree
    pod_classes: tuple[PodClass, ...]
    pods_by_node: PodsByNode
    cost: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class LevelSearchResult:
    """The result of one level search. `attempts`: from the finest level to the coarsest. `complete`: no
    budget ended the search, so if it has no placement, there is none.
    """

    placement: Placement | None
    attempts: tuple[LevelAttempt, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result in one topology: the tree that was searched, the request in it, and the placement."""

    tree: TopologyTree
    request: TopologyRequest
    placement: Placement | None
    attempts: tuple[LevelAttempt, ...]
    complete: bool


PodsByNode = list[tuple[int, tuple[int, ...]]]
"""Nodes, by index in the domain, each with the number of pods of each class."""
