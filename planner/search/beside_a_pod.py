"""Places pods with affinity to another PodSet together in one domain, with a single pod of that PodSet.

    rack r1: . .    rack r2: . . .       four workers of a whole node, a launcher with affinity to workers
    launcher and worker in r1, three workers in r2

The search cannot require that a domain has some pod of a class. But if one pod of that class is split off, it
can require that pod and the pods with affinity to be in a given domain. Each domain is tried in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.tree import TopologyTree
from planner.model.effort.work_budget import WorkBudget
from planner.model.labels import NODE_NAME_FIELD
from planner.model.natural_order import natural
from planner.model.pod_class import PodClass, PodClasses
from planner.model.podgroup import ReserveMode
from planner.model.resolved import ANTI_AFFINITY_CAUSE, Attraction, NodeExclusion
from planner.model.topology import ROOT
from planner.request.relaxation import relaxations
from planner.request.topology_request import TopologyRequest
from planner.search.level_search import LevelSearch
from planner.search.result import LevelSearchResult, Placement, rejoined
from planner.search.space import search_space

Run = Callable[[LevelSearch, PodClasses, int], LevelSearchResult]
"""Searches for pod classes in one domain of a level."""


def place_beside_a_pod(
    snapshot: Snapshot, tree: TopologyTree, request: TopologyRequest, mode: ReserveMode, run: Run
) -> Placement | None:
    """Returns the placement in the first domain that has one; None if there is none, or the request is of
    another kind: several classes or terms with affinity, or rules that relate the other pods to each other.

    All domains share the budget of one search.
    """
    pod_classes = relaxations(request)[-1]
    followers = [pod_class for pod_class in pod_classes if pod_class.attractions]
    if len(followers) != 1 or len(followers[0].attractions) != 1:
        return None
    attraction = followers[0].attractions[0]
    pieces = tuple(_pieces(pod_classes, attraction))
    if len(pieces) == len(pod_classes):
        return None
    budget = WorkBudget()
    space = replace(search_space(snapshot, tree, occupied=True), gpu_limit=request.gpu_limit)
    for value in _values(tree, attraction.key):
        placed = tuple([piece.placed_in(attraction.key, value) for piece in pieces])
        search = LevelSearch(space, replace(request, pod_classes=placed), mode, budget)
        placement = run(search, placed, request.required).placement
        if placement is not None:
            placement = rejoined(placement, pod_classes, [piece.class_index for piece in pieces])
            return replace(placement, exact=False)
        if budget.left <= 0:
            return None
    return None


class _Piece(NamedTuple):
    """Pods of the class with this index; `is_in_domain`: whether they must be in the domain."""

    pod_class: PodClass
    class_index: int
    is_in_domain: bool

    def placed_in(self, key: str, value: str) -> PodClass:
        """Returns the class of these pods, which is restricted to the domain if they must be there."""
        if not self.is_in_domain:
            return self.pod_class
        inside = NodeExclusion(key, frozenset((value,)), ANTI_AFFINITY_CAUSE, inside=True)
        return self.pod_class.excluding(inside)


def _pieces(pod_classes: PodClasses, attraction: Attraction) -> Iterator[_Piece]:
    """Yields the pieces of all classes: a pod is split off the first class that attracts and can be split."""
    is_split = False
    for index, pod_class in enumerate(pod_classes):
        names = {name for name, _ in pod_class.parts}
        if is_split or names.isdisjoint(attraction.pod_sets) or not _can_be_split(pod_class):
            yield _Piece(pod_class, index, bool(pod_class.attractions))
            continue
        is_split = True
        (name, count), *parts = pod_class.parts
        first = replace(pod_class, parts=((name, 1),), count=1)
        yield _Piece(first, index, is_in_domain=True)
        rest = ((name, count - 1), *parts) if count > 1 else tuple(parts)
        others = replace(pod_class, parts=rest, count=pod_class.count - 1, is_split=True)
        yield _Piece(others, index, is_in_domain=False)


def _can_be_split(pod_class: PodClass) -> bool:
    """Reports whether no rule and no level relates the pods to each other."""
    levels = (pod_class.required, pod_class.preferred, pod_class.slice_level)
    return pod_class.count > 1 and not pod_class.is_tied and levels == (ROOT, ROOT, ROOT)


def _values(tree: TopologyTree, key: str) -> list[str]:
    """Returns the domains of a label in the tree, in natural order."""
    if key == NODE_NAME_FIELD:
        return sorted(tree.places, key=natural)
    return sorted({value for node in tree.nodes if (value := node.labels.get(key, ""))}, key=natural)
