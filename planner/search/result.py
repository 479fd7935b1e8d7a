"""The result of searching one tree: the placement, the attempts level by level, and whether the search was
complete.

    b1: r1 ...  r2 ...        a dot is a free node; three pods that use a whole node each, rack required

There are two attempts: at the host level the best host takes one of three pods, and at the rack level r1
takes all three. The placement is in the branch b1/r1, on the nodes 0, 1 and 2 of the tree, with one pod of
the first class on each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import overload

from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass, PodClasses
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


class Attempts(Sequence[LevelAttempt]):
    """The attempts of one level search, from the finest level to the coarsest, each computed when it is read.

    How many pods would fit at a level without a placement takes longer than to know that there is none. Rules
    over labels and the alternatives of a refusal search many times and read the attempts of few searches.
    """

    def __init__(self, computations: Sequence[Callable[[], LevelAttempt]]) -> None:
        self._computations = computations
        self._computed: dict[int, LevelAttempt] = {}

    @overload
    def __getitem__(self, index: int) -> LevelAttempt: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LevelAttempt]: ...

    def __getitem__(self, index: int | slice) -> LevelAttempt | Sequence[LevelAttempt]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        if place not in self._computed:
            self._computed[place] = self._computations[place]()
        return self._computed[place]

    def __len__(self) -> int:
        return len(self._computations)


@dataclass(frozen=True, slots=True)
class LevelSearchResult:
    """The result of one level search.

    `attempts`: from the finest level to the coarsest. `complete`: whether the search finished within its
    budget; if so, and `placement` is None, no placement exists.
    """

    placement: Placement | None
    attempts: Sequence[LevelAttempt]
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
    attempts: Sequence[LevelAttempt]
    complete: bool


PodsByNode = list[tuple[int, tuple[int, ...]]]
"""Indexes of nodes, ascending, each with the number of pods of each pod class. A `Placement` counts the nodes
of the tree, a packing those of the domain that it packs.
"""


def rejoined(placement: Placement, pod_classes: PodClasses, cut_from: Sequence[int]) -> Placement:
    """Returns the placement in terms of the original pod classes, before the split.

    `cut_from`: for each class of the placement, the index of the original class.
    """
    pods_by_node = [
        (
            place,
            tuple(
                sum(n for n, original in zip(each, cut_from, strict=True) if original == index)
                for index in range(len(pod_classes))
            ),
        )
        for place, each in placement.pods_by_node
    ]
    return replace(placement, pod_classes=pod_classes, pods_by_node=pods_by_node)
