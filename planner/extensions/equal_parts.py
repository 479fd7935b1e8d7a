"""Balanced gangs: the same number of pods in each domain of the reservable level that the gang uses.

Only the largest PodSet is divided. The reservable level is by default the one above the host (racks):

24 pods, racks with room for 16 pods:   fewest racks     16 + 8
                                        equal parts      12 + 12: slices of 12 pods, each within a rack
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.effort.work_budget import WorkBudget
from planner.model.podgroup import Assignment
from planner.model.topology import HOSTNAME, Domain, Topology
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, Place, assignments_of


def in_equal_parts(problem: PlacementProblem, place: Place, budget: WorkBudget | None = None) -> Outcome:
    """Returns a placement with equal parts of the largest PodSet, in as few domains as possible.

    If no equal parts fit, returns the placement without equal parts, with a warning. `place`: the search.
    """
    plain = place(problem, budget)
    if plain.best is None:
        return plain
    topology = plain.best.tree.topology
    level = topology.levels[topology.reservable_index]
    largest = max(problem.gang.pod_sets, key=lambda pod_set: pod_set.count)
    parts = _parts(plain, largest.name)
    if level == HOSTNAME or len(set(parts.values())) < 2 or largest.constraint.slice_level:
        return plain
    for count in range(len(parts), largest.count + 1):
        if largest.count % count == 0:
            sliced = _sliced(problem, largest.name, level, largest.count // count)
            outcome = place(sliced, budget)
            if outcome.best is not None and len(set(_parts(outcome, largest.name).values())) == 1:
                return outcome
    uneven = " + ".join(str(count) for count in parts.values())
    return plain.noting(
        f"balanced slices: no equal parts of {largest.count} pods have a place; placed as {uneven}"
    )


def _parts(outcome: Outcome, pod_set: str) -> dict[Domain, int]:
    """Returns the result of `shares` for a placement."""
    assert outcome.best is not None, "only a placement has parts"
    assignments = assignments_of(outcome.problem, outcome.best)
    return shares(outcome.problem.snapshot, outcome.best.tree.topology, assignments, pod_set)


def shares(
    snapshot: Snapshot, topology: Topology, assignments: Iterable[Assignment], pod_set: str
) -> dict[Domain, int]:
    """Returns the pods of a PodSet by domain of the reservable level, in the order of the assignments."""
    counts: dict[Domain, int] = {}
    for assignment in assignments:
        if assignment.pod_set == pod_set:
            node = snapshot.nodes[assignment.node]
            domain = topology.path(node.name, node.labels)[: topology.reservable_index + 1]
            counts[domain] = counts.get(domain, 0) + assignment.count
    return counts


def _sliced(problem: PlacementProblem, name: str, level: str, size: int) -> PlacementProblem:
    """Returns the problem with the named PodSet in slices of `size` pods, each in one domain of the level."""
    sets = tuple(
        replace(pod_set, constraint=replace(pod_set.constraint, slice_level=level, slice_size=size))
        if pod_set.name == name
        else pod_set
        for pod_set in problem.asked.pod_sets
    )
    return problem.changed(replace(problem.asked, pod_sets=sets))
