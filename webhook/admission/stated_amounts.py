"""What the author of an object asked for, kept beside what policies have made of it. Pure.

A refusal must not blame an amount that nobody stated: the planner's words tell the two apart.
"""

from __future__ import annotations

from dataclasses import replace

from planner.model.podgroup import PodGroup, PodSet
from planner.model.resources import Resources
from webhook.workloads import Workload


def with_stated(workload: Workload, original: Workload) -> Workload:
    """The workload, with the amounts that `original` states where they differ; both of the same object."""
    stated = {
        (group.name, pod_set.name): pod_set.shape.requests
        for group in original.gangs
        for pod_set in group.pod_sets
    }

    def with_amounts(group: PodGroup) -> PodGroup:
        sets = tuple(
            _with_amounts(pod_set, stated.get((group.name, pod_set.name))) for pod_set in group.pod_sets
        )
        changed = any(new is not old for new, old in zip(sets, group.pod_sets, strict=True))
        return replace(group, pod_sets=sets) if changed else group

    return replace(workload, gangs=tuple(map(with_amounts, workload.gangs)))


def _with_amounts(pod_set: PodSet, stated: Resources | None) -> PodSet:
    if stated is None or stated == pod_set.shape.requests:
        return pod_set
    return replace(pod_set, shape=replace(pod_set.shape, stated=stated))
