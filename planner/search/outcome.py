"""The result of searching a problem: its `Outcome`, and the hosts and assignments of a placement.

    a: 2 pods, d: 2 pods      one class of four pods, from the PodSets master (1) and worker (3)

The search only counts the pods of a class. These are then assigned to its PodSets in the order of the hosts:
master 1 on a; worker 1 on a and 2 on d.

`Place` is the type of functions that return an outcome: the search itself (`place`), or the search with the
extensions that a gang requests. Code that tries changed problems gets it as an argument: leaf-spine rules,
equal parts, alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from planner.model.effort.work_budget import WorkBudget
from planner.model.holding import Holding
from planner.model.pod_class import PodClasses
from planner.model.podgroup import Assignment
from planner.model.topology import Domain
from planner.request.resolve import PlacementProblem
from planner.search.result import SearchResult

Spot = TypeVar("Spot")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The problem that was searched, the result in each topology, and the `best` of these results; None if
    there is no placement.

    `notes`: warnings about the placement. `holding`: what the gang will hold, if that is decided already
    (`extensions.holding`); None before.
    """

    problem: PlacementProblem
    results: tuple[SearchResult, ...] = ()
    best: SearchResult | None = None
    notes: tuple[str, ...] = ()
    holding: Holding | None = None

    def noting(self, *notes: str) -> Outcome:
        """Returns the same outcome with additional notes."""
        return replace(self, notes=(*self.notes, *notes))


class Place(Protocol):
    """Finds the placement of a problem."""

    def __call__(self, problem: PlacementProblem, budget: WorkBudget | None = None) -> Outcome:
        """Returns the outcome. `budget`: shared by all searches; None gives each search its own."""
        ...


def domain_of(result: SearchResult) -> Domain:
    """Returns the path of the finest named domain that contains a whole placement; () for the topology."""
    assert result.placement is not None, "only a result with a placement has a domain"
    pods_by_node = result.placement.pods_by_node  # in the order of the nodes
    return result.tree.root.domain_with_hosts(pods_by_node[0][0], pods_by_node[-1][0]).path


def assignments_of(problem: PlacementProblem, result: SearchResult) -> tuple[Assignment, ...]:
    """Returns the number of pods of each PodSet on each node: PodSets in the order of the gang, nodes in that
    of the tree.
    """
    assert result.placement is not None, "only a result with a placement has assignments"
    pods_by_node = result.placement.pods_by_node
    by_set: dict[str, list[Assignment]] = {pod_set.name: [] for pod_set in problem.gang.pod_sets}
    hosts = result.tree.root.leaves_at([index for index, _ in pods_by_node])
    seats = [(host.node, counts) for host, (_, counts) in zip(hosts, pods_by_node, strict=True)]
    for name, node, count in deal_to_pod_sets(result.placement.pod_classes, seats):
        by_set[name].append(Assignment(name, node, count))
    return tuple([assignment for assignments in by_set.values() for assignment in assignments])


def deal_to_pod_sets(
    pod_classes: PodClasses, seats: Sequence[tuple[Spot, Sequence[int]]]
) -> Iterator[tuple[str, Spot, int]]:
    """Divides the pods of each class among the PodSets of the class, in the order of `seats`.

    `seats`: hosts or domains, each with the number of its pods of each class. Yields the name of a PodSet, a
    host or domain, and the number of pods of the PodSet there.
    """
    for class_index, pod_class in enumerate(pod_classes):
        parts = iter(pod_class.parts)
        name, wanted = "", 0
        for where, counts in seats:
            remaining = counts[class_index]
            while remaining:
                while not wanted:
                    name, wanted = next(parts)
                count = remaining if remaining < wanted else wanted
                yield name, where, count
                remaining -= count
                wanted -= count
