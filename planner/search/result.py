"""The result of searching one tree: the placement, the attempts level by level, and whether the search was
complete.

    b1: r1 ...  r2 ...        a dot is a free node; three pods that use a whole node each, rack required

There are two attempts: at the host level the best host takes one of three pods, and at the rack level r1
takes all three. The placement is in the branch b1/r1, on the nodes 0, 1 and 2 of the tree, with one pod of
the first class on each.
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
    """Nodes with the number of pods of each pod class, in the domain `branch`. `cost`: as in `objective`; 0
    if it was not computed. `exact`: whether the placement is proved best."""

    branch: Subtree
    pod_classes: tuple[PodClass, ...]
    pods_by_node: PodsByNode
    cost: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class LevelSearchResult:
    """The result of one level search.

    `attempts`: from the finest level to the coarsest. `complete`: whether the search finished within its
    budget; if so, and `placement` is None, no placement exists.
    """

    placement: Placement | None
    attempts: tuple[LevelAttempt, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result in one topology: the tree that was searched, the request in it, and the placement.

    `attempts`: those of the relaxation to which the placement belongs, or of the last one. `complete`:
    whether the budget ended no search on which the result depends.
    """

    tree: TopologyTree
    request: TopologyRequest
    placement: Placement | None
    attempts: tuple[LevelAttempt, ...]
    complete: bool


PodsByNode = list[tuple[int, tuple[int, ...]]]
"""Indexes of nodes, ascending, each with the number of pods of each pod class. A `Placement` counts the nodes
of the tree, a packing those of the domain that it packs.
"""
