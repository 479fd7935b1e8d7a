"""Keeps the resource amounts that the author of an object stated beside those that policies set. Pure.

The message of a refusal distinguishes the two, so that it does not blame the author for an amount that a
policy set. A stored object has only the policies' amounts. The annotation of a waiting gang therefore records
the stated ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.model.effort.deadline import poll
from planner.model.podgroup import PodGroup, PodSet
from planner.model.resources import Resources
from webhook.workloads import Workload

StatedAmounts = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""For each PodSet, as (name, amounts), the amounts that its author stated, in base units, of the resources
that policies raised."""


def with_stated(workload: Workload, original: Workload) -> Workload:
    """Returns the workload; each PodSet whose amounts policies changed has those of `original` as its stated
    amounts.

    `original` is read from the object before policies changed it, `workload` afterwards."""
    stated: dict[str, tuple[PodSet, ...]] = {}
    for group in original.gangs:
        others = stated.get(group.name)
        stated[group.name] = group.pod_sets if others is None else (*others, *group.pod_sets)
    by_sets: dict[tuple[int, int], tuple[PodSet, ...]] = {}
    """Caches results by the identity (`id`) of PodSets and stated PodSets, because the replicas of an object
    share both, and an object may have thousands of replicas."""

    def with_amounts(group: PodGroup) -> PodGroup:
        poll("reading")
        stated_sets = stated.get(group.name, ())
        key = id(group.pod_sets), id(stated_sets)
        if key not in by_sets:
            amounts = {own.name: {**own.shape.requests, **own.shape.raised} for own in stated_sets}
            new = (_with_amounts(pod_set, amounts.get(pod_set.name)) for pod_set in group.pod_sets)
            by_sets[key] = _with_sets(group, new).pod_sets
        sets = by_sets[key]
        return group if sets is group.pod_sets else replace(group, pod_sets=sets)

    gangs = tuple(map(with_amounts, workload.gangs))
    changed = any(group is not old for group, old in zip(gangs, workload.gangs, strict=True))
    return replace(workload, gangs=gangs) if changed else workload


def raised_in(groups: Iterable[PodGroup]) -> StatedAmounts:
    """Returns the amounts that the author of these gangs stated, for the resources whose requests policies
    raised."""
    raised = {
        pod_set.name: tuple(sorted(pod_set.shape.raised.items()))
        for group in groups
        for pod_set in group.pod_sets
        if pod_set.shape.raised
    }
    return tuple(sorted(raised.items()))


def as_noted(groups: Iterable[PodGroup], noted: StatedAmounts) -> tuple[PodGroup, ...]:
    """Returns the gangs of a stored object with the stated amounts from its annotation."""
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
