"""Finds the largest number of a gang's pods that has a placement.

8 pods asked for, up to 5 fit       tried: 5 no, 2 yes, 3 yes, 4 yes      so 4 pods would work

If one unit of the field that states the number is several pods (a Job of a JobSet, a worker of Ray with
several hosts), whole units are tried first: the user cannot write another number there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from planner.model.podgroup import PodGroup, PodSet
from planner.model.words import pods
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
    slices = {pod_set.name: _slice_size(asked, pod_set) for pod_set in sets}
    units = {pod_set.name: lcm(slices[pod_set.name], pod_set.count_field.pods) for pod_set in sets}
    counts = _fewer_by(problem, sets, fits, units, has_place)
    return counts or ({} if units == slices else _fewer_by(problem, sets, fits, slices, has_place))


def _fewer_by(
    problem: PlacementProblem,
    sets: Sequence[PodSet],
    fits: int,
    steps: Mapping[str, int],
    has_place: Callable[[PlacementProblem], bool],
) -> dict[str, int]:
    """Returns what `fewer_pods` returns, of reductions by these numbers of pods."""
    size = sum(pod_set.count for pod_set in sets)
    for pod_set in sets:
        # The other PodSets keep all their pods, so this PodSet has at most the rest of `fits`.
        step, room = steps[pod_set.name], min(pod_set.count - 1, fits - (size - pod_set.count))
        counts = _largest_count(problem, room // step, _Reduction((pod_set,), (step,)), has_place)
        if counts:
            return counts
    if len(sets) < 2:
        return {}
    reduction = _Reduction(tuple(sets), tuple(steps[pod_set.name] for pod_set in sets))
    return _largest_count(problem, sets[0].count - 1, reduction, has_place)


def fewer_words(group: PodGroup, counts: Mapping[str, int]) -> str:
    """Returns the pod counts that `fewer_pods` found as text: "7 pods of worker
    (spec.leaderWorkerTemplate.size: 8)".
    """
    several = sum(1 for pod_set in group.pod_sets if pod_set.count) > 1
    suffixes = {name: f" of {title}" if several else "" for name, title in group.titles.items()}
    parts = [
        f"{'a minimum of ' if pod_set.max_count > pod_set.count else ''}{pods(counts[pod_set.name])}"
        f"{suffixes[pod_set.name]}"
        for pod_set in group.pod_sets
        if counts.get(pod_set.name, pod_set.count) != pod_set.count
    ]
    return " and ".join(parts) + _fields_words(group, counts)


def _fields_words(group: PodGroup, counts: Mapping[str, int]) -> str:
    """Returns the fields that state the changed numbers of pods, with their new values: " (spec.parallelism:
    8)"; "" if no field states exactly these numbers.
    """
    after = {pod_set.name: counts.get(pod_set.name, pod_set.count) for pod_set in group.pod_sets}
    fields: dict[str, None] = {}
    for pod_set in group.pod_sets:
        field = pod_set.count_field
        pods_counted = sum(after.values()) if field.whole_gang else after[pod_set.name]
        if after[pod_set.name] == pod_set.count:
            continue
        if not field.path or pods_counted % field.pods:
            return ""
        fields[f"{field.name}: {pods_counted // field.pods}"] = None
    return f" ({', '.join(fields)})"


@dataclass(frozen=True, slots=True)
class _Reduction:
    """The reductions of some PodSets by whole slices, numbered: a larger number leaves more pods.

    `pod_sets`: largest first. `steps`: the pods in one slice of each PodSet, or in one unit of its field.
    With a single PodSet, the number of a reduction is the number of steps that are left. With several, it is
    the number of pods that are left of the first PodSet, before rounding to steps; the others are reduced in
    proportion.
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


def _slice_size(group: PodGroup, pod_set: PodSet) -> int:
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
