"""Assigns the ranks of a PodSet to nodes, so that neighbouring ranks are neighbours in the topology.

Rank r is the pod with completion index r of an Indexed Job, or else the pod whose name ends in `-r`. A
placement lists its nodes in the order of the tree, so ranks fill one domain before they continue in the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.model.answer import Answer
from planner.model.podgroup import Assignment


def ranks(answer: Answer, pod_set: str) -> tuple[str, ...]:
    """Returns the nodes of ranks 0, 1, … of a PodSet; () if the gang has no place or no such PodSet."""
    return in_order(assignment for assignment in answer.assignments if assignment.pod_set == pod_set)


def in_order(assignments: Iterable[Assignment]) -> tuple[str, ...]:
    """Returns the nodes of ranks 0, 1, … of a PodSet, given all assignments of that PodSet."""
    return tuple(assignment.node for assignment in assignments for _ in range(assignment.count))


def runs(nodes: Sequence[str]) -> list[tuple[int, int, str]]:
    """Returns the nodes of ranks 0, 1, … as runs of equal nodes: (first rank, last rank, node)."""
    spans: list[tuple[int, int, str]] = []
    for rank, node in enumerate(nodes):
        if spans and spans[-1][2] == node:
            spans[-1] = (spans[-1][0], rank, node)
        else:
            spans.append((rank, rank, node))
    return spans
