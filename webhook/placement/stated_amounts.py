"""What the author of an object asked for, kept beside what policies have made of it. Pure.

A refusal must not blame an amount that nobody stated: the planner's words tell the two apart. What is stored
has the policies' amounts only, so the note of a gang that waits says what was stated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.model.podgroup import PodGroup, PodSet
from planner.model.resources import Resources
from webhook.workloads import Workload

StatedAmounts = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""By PodSet the amounts that its author stated, in base units, of resources that policies raised."""


def with_stated(workload: Workload, original: Workload) -> Workload:
    """The workload, with the amounts that `original` states where they differ; both of the same object."""
    stated = {
        (group.name, pod_set.name): {**pod_set.shape.requests, **pod_set.shape.raised}
        for group in original.gangs
        for pod_set in group.pod_sets
    }

    def with_amounts(group: PodGroup) -> PodGroup:
        amounts = (stated.get((group.name, pod_set.name)) for pod_set in group.pod_sets)
        return _with_sets(group, map(_with_amounts, group.pod_sets, amounts))

    gangs = tuple(map(with_amounts, workload.gangs))
    changed = any(group is not old for group, old in zip(gangs, workload.gangs, strict=True))
    return replace(workload, gangs=gangs) if changed else workload


def raised_in(groups: Iterable[PodGroup]) -> StatedAmounts:
    """What the authors of these gangs stated, where policies raised it."""
    raised = {
        pod_set.name: tuple(sorted(pod_set.shape.raised.items()))
        for group in groups
        for pod_set in group.pod_sets
        if pod_set.shape.raised
    }
    return tuple(sorted(raised.items()))


def as_noted(groups: Iterable[PodGroup], noted: StatedAmounts) -> tuple[PodGroup, ...]:
    """The gangs of a stored object, with the amounts that its note says were stated."""
    by_set = {name: dict(amounts) for name, amounts in noted}

    def with_note(pod_set: PodSet) -> PodSet:
        amounts = by_set.get(pod_set.name)
        return _with_amounts(pod_set, {**pod_set.shape.requests, **amounts} if amounts else None)

    return tuple(_with_sets(group, map(with_note, group.pod_sets)) for group in groups)


def _with_sets(group: PodGroup, sets: Iterable[PodSet]) -> PodGroup:
    new = tuple(sets)
    changed = any(pod_set is not old for pod_set, old in zip(new, group.pod_sets, strict=True))
    return replace(group, pod_sets=new) if changed else group


def _with_amounts(pod_set: PodSet, stated: Resources | None) -> PodSet:
    if stated is None or stated == pod_set.shape.requests:
        return pod_set
    return replace(pod_set, shape=replace(pod_set.shape, stated=stated))
