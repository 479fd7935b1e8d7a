"""The result of searching a problem: its `Outcome`, and the hosts and assignments of a placement.

`Place` is a function that gives an outcome: the search itself, or the search by the rules that a gang asks
for. It is handed to what tries changed problems: leaf-spine rules, equal parts, alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from planner.cluster.tree import Subtree
from planner.model.holding import Holding
from planner.model.podgroup import Assignment
from planner.model.work_budget import WorkBudget
from planner.request.resolve import PlacementProblem
from planner.search.result import SearchResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was searched, what came of it in each topology, and the `best` of that; None for no place.

    `notes`: what there is to say of the placement. `holding`: what the gang holds there, where that is
    decided (`extensions.holding`).
    """

    problem: PlacementProblem
    results: tuple[SearchResult, ...] = ()
    best: SearchResult | None = None
    notes: tuple[str, ...] = ()
    holding: Holding | None = None

    def noting(self, *notes: str) -> Outcome:
        """The same with more to say."""
        return replace(self, notes=(*self.notes, *notes))


class Place(Protocol):
    """Finds the placement of a problem."""

    def __call__(self, problem: PlacementProblem, budget: WorkBudget | None = None) -> Outcome:
        """`budget`: one for all that is searched; without it each search has its own."""
        ...


def hosts_of(result: SearchResult) -> list[Subtree]:
    """The hosts of a placement, in the order of the tree."""
    assert result.placement is not None, "only a placement has hosts"
    return list(result.tree.root.leaves_at([host for host, _ in result.placement.pods_by_node]))


def assignments_of(
    problem: PlacementProblem, result: SearchResult, hosts: Sequence[Subtree]
) -> tuple[Assignment, ...]:
    """The pods of each pod class dealt to its PodSets in the order of the hosts; then by PodSet."""
    by_set: dict[str, list[Assignment]] = {pod_set.name: [] for pod_set in problem.gang.pod_sets}
    for name, host, count in dealt(result, hosts):
        by_set[name].append(Assignment(name, host.node, count))
    return tuple([assignment for assignments in by_set.values() for assignment in assignments])


def dealt(result: SearchResult, hosts: Sequence[Subtree]) -> Iterator[tuple[str, Subtree, int]]:
    """The same as PodSet, host and number of pods, by pod class."""
    assert result.placement is not None, "only a placement has pods"
    for class_index, pod_class in enumerate(result.placement.pod_classes):
        parts = iter(pod_class.parts)
        name, wanted = "", 0
        for host, (_, counts) in zip(hosts, result.placement.pods_by_node, strict=True):
            remaining = counts[class_index]
            while remaining:
                while not wanted:
                    name, wanted = next(parts)
                count = remaining if remaining < wanted else wanted
                yield name, host, count
                remaining -= count
                wanted -= count
