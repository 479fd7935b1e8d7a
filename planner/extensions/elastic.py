"""Elastic gangs: as many pods as fit, between the minimum and the maximum requested."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from planner.model.podgroup import PodGroup
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, Place

T = TypeVar("T")


def most_pods(problem: PlacementProblem, minimum: Outcome, place: Place) -> Outcome:
    """Returns the placement with the most pods, by binary search. `minimum`: the placement of the minimum
    counts. `place`: the search for a problem with given counts."""

    def placed(extra: int) -> Outcome | None:
        outcome = place(problem.resized(counts_with(problem.gang, extra)))
        return outcome if outcome.best is not None else None

    return with_most(placed, 1, extra_pods(problem.gang)) or minimum


def with_most(attempt: Callable[[int], T | None], lowest: int, highest: int) -> T | None:
    """Returns the result of `attempt` for the largest number from `lowest` to `highest` for which it returns
    something, by binary search; None if there is no such number. What works for a number works for all
    smaller ones."""
    best, low, high = None, lowest - 1, highest
    middle = highest  # the maximum first: it is the most frequent result
    while low < high:
        result = attempt(middle)
        if result is not None:
            best, low = result, middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return best


def extra_pods(group: PodGroup) -> int:
    """Returns the number of pods that an elastic gang may have above its minimum."""
    return sum(max(0, pod_set.max_count - pod_set.count) for pod_set in group.pod_sets)


def counts_with(group: PodGroup, extra: int) -> dict[str, int]:
    """Returns the pod count of each PodSet if the gang has up to `extra` pods above its minimum.

    The elastic PodSets get the extra pods in order, each a number of complete slices. With more extra pods no
    PodSet has fewer, as the binary search requires: pods that do not complete a slice are therefore not given
    to the next PodSet.
    """
    counts: dict[str, int] = {}
    for pod_set in group.pod_sets:
        added = min(extra, max(0, pod_set.max_count - pod_set.count))
        extra -= added
        added -= added % max(1, pod_set.constraint.slice_size or group.constraint.slice_size)
        counts[pod_set.name] = pod_set.count + added
    return counts
