"""Finds the largest number of a gang's pods that has a placement.

8 pods asked for, up to 5 fit       tried: 5 no, 2 yes, 3 yes, 4 yes      so 4 pods would work
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.model.podgroup import PodGroup, PodSet
from planner.request.resolve import PlacementProblem


def fewer_pods(
    problem: PlacementProblem,
    names: Sequence[str],
    fits: int,
    has_place: Callable[[PlacementProblem], bool],
) -> dict[str, int]:
    """Returns by PodSet name the largest reduced pod counts with which the request has a placement; {} if
    there are none. `names`: the PodSets to reduce. `fits`: an upper bound of how many of their pods fit.

    Tries to reduce one PodSet alone, the largest first; if none of these reductions suffices, all the named
    PodSets together.
    """
    asked = problem.asked
    sets = sorted((s for s in asked.pod_sets if s.name in names), key=lambda pod_set: -pod_set.count)
    size = sum(pod_set.count for pod_set in sets)
    for pod_set in sets:
        # The other PodSets keep all their pods, so this PodSet has at most the rest of `fits`.
        step, room = _step(asked, pod_set), min(pod_set.count - 1, fits - (size - pod_set.count))
        counts = _largest_count(problem, room // step, _Reduction((pod_set,), (step,)), has_place)
        if counts:
            return counts
    if len(sets) < 2:
        return {}
    reduction = _Reduction(tuple(sets), tuple(_step(asked, pod_set) for pod_set in sets))
    return _largest_count(problem, sets[0].count - 1, reduction, has_place)


@dataclass(frozen=True, slots=True)
class _Reduction:
    """The reductions of some PodSets by whole slices, numbered: a larger number leaves more pods.

    `pod_sets`: largest first. `steps`: the pods in one slice of each PodSet. With a single PodSet, the number
    of a reduction is the number of slices that are left. With several, it is the number of pods that are left
    of the first PodSet, before rounding to slices; the others are reduced in proportion.
    """

    pod_sets: tuple[PodSet, ...]
    steps: tuple[int, ...]

    def counts(self, number: int) -> dict[str, int]:
        """Returns the pod counts of the reduction with this number, by PodSet name.

        Each of several PodSets keeps at least one slice.
        """
        if len(self.pod_sets) == 1:
            return {self.pod_sets[0].name: number * self.steps[0]}
        widest = self.pod_sets[0].count
        return {
            pod_set.name: max(1, pod_set.count * number // widest // step) * step
            for pod_set, step in zip(self.pod_sets, self.steps, strict=True)
        }


def _step(group: PodGroup, pod_set: PodSet) -> int:
    """Returns the number of pods that can only be removed together: those of one slice; 1 without slices."""
    return max(1, pod_set.constraint.slice_size or group.constraint.slice_size)


def _largest_count(
    problem: PlacementProblem, high: int, reduction: _Reduction, has_place: Callable[[PlacementProblem], bool]
) -> dict[str, int]:
    """Returns the pod counts of the largest reduction up to number `high` that has a placement; {} for none.

    The binary search assumes that if a number of pods fits, every smaller number fits too. It tries `high`
    first.
    """
    low, middle = 0, high
    while low < high:
        if has_place(problem.resized(reduction.counts(middle))):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return reduction.counts(low) if low else {}
