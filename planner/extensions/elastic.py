"""Elastic gangs: as many pods as have a place, from the least to the most that were asked for."""

from __future__ import annotations

from planner.model.podgroup import PodGroup
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, Place


def most_pods(problem: PlacementProblem, least: Outcome, place: Place) -> Outcome:
    """The placement of the most pods, found by halving; `least`: that of the least, which is there. `place`
    searches the problems."""
    more = extra_pods(problem.gang)
    best, low, high = least, 0, more
    middle = more  # all of them first, which is the likeliest
    while low < high:
        outcome = place(problem.resized(_counts(problem.gang, middle)))
        if outcome.best is not None:
            best, low = outcome, middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return best


def extra_pods(group: PodGroup) -> int:
    """The pods that an elastic gang may have above the least."""
    return sum(max(0, pod_set.most - pod_set.count) for pod_set in group.pod_sets)


def _counts(group: PodGroup, extra: int) -> dict[str, int]:
    """The pods of each PodSet with so many pods more, given to the elastic sets in order, in whole slices."""
    counts: dict[str, int] = {}
    for pod_set in group.pod_sets:
        more = min(extra, max(0, pod_set.most - pod_set.count))
        extra -= more
        more -= more % max(1, pod_set.constraint.slice_size or group.constraint.slice_size)
        counts[pod_set.name] = pod_set.count + more
    return counts
