"""Limits how much one object may request, so that no decision keeps other requests waiting. Pure.

The bounds are checked before policies and plan, and only for new objects and changed templates: an existing
object is never refused for a size that was allowed when it was created. Each bound is far above real
workloads. A decision at the bound takes up to a second on a small cluster; on a larger cluster the deadline
of the decision ends it.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.model.errors import InputError, Where
from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup
from webhook.workloads import Workload

MOST_POD_SETS = 512
"""Maximum number of PodSets of one gang, because each policy runs on each PodSet's template, and the search
handles PodSets with different pods separately."""

MOST_REQUIREMENTS = 1_000
"""Maximum number of requirements in the node affinity of one template, over all terms. To find the
requirement that excludes the nodes, which the message of a refusal names, each is left out in turn, on each
kind of node.
"""

MOST_CONSTRAINED = 5_000
"""Maximum of pods × (spread constraints + pod affinity terms) of one gang, because the search counts each
placed pod in the domains of each constraint. 5,000 is the number of nodes that Kubernetes supports: one pod
with one constraint on each node is allowed.
"""

MOST_CLAIMS = 64
"""Maximum number of device and volume claims of one pod: they are matched with the devices of each node."""


def check_bounds(workload: Workload) -> None:
    """Raises `InputError`, which names the bound and the number, for a workload above a bound."""
    # Gangs with the same tuple of PodSets are checked once: the replicas of an object, which may be
    # thousands, share theirs.
    for group in {id(group.pod_sets): group for group in workload.gangs}.values():
        for problem in _problems(group):
            raise InputError(problem, Where(object=workload.name))


def _problems(group: PodGroup) -> Iterator[str]:
    if len(group.pod_sets) > MOST_POD_SETS:
        yield (
            f"has {len(group.pod_sets)} PodSets; at most {MOST_POD_SETS} in one gang are planned. "
            "What would work: fewer PodSets with more pods each, or several objects"
        )
    for pod_set in group.pod_sets:
        shape = pod_set.shape
        requirements = _requirements(shape)
        if requirements > MOST_REQUIREMENTS:
            yield (
                f"{pod_set.name}: node affinity has {requirements} requirements in {len(shape.affinity)} "
                f"required and {len(shape.preferences)} preferred terms; at most {MOST_REQUIREMENTS} are "
                "planned. What would work: fewer terms, or one requirement with several values"
            )
        claims = len(shape.claims) + len(shape.volumes)
        if claims > MOST_CLAIMS:
            yield (
                f"{pod_set.name}: a pod has {claims} claims; at most {MOST_CLAIMS} are planned. "
                "What would work: one claim with several devices"
            )
    constrained = sum(pod_set.count * _constraints(pod_set.shape) for pod_set in group.pod_sets)
    if constrained > MOST_CONSTRAINED:
        yield (
            f"has {group.size} pods with spread constraints and terms of pod affinity, {constrained} pods × "
            f"constraints; at most {MOST_CONSTRAINED} pods × constraints are planned. What would work: fewer "
            "constraints, or the gang's own required level in their place"
        )


def _requirements(shape: PodShape) -> int:
    preferred = (term for _, term in shape.preferences)
    return sum(map(len, (*shape.affinity, *preferred)))


def _constraints(shape: PodShape) -> int:
    return len(shape.spread) + len(shape.terms)
