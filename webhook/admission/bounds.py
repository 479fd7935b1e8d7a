"""What one object may ask of a plan, so that no single request takes the others' time. Pure.

Checked before policies and plan, of what is new: an object that exists already is never refused for what it
asked for when it was let in. Each bound is far above what people ask for, and as high as a decision on a
small cluster can be within a second; on larger ones the deadline of the decision is what ends it.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.model.errors import InputError, Where
from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup
from webhook.workloads import Workload

MOST_POD_SETS = 512
"""PodSets of one gang. Each is a kind of pods to the search, and has its template mended by each policy."""


MOST_REQUIREMENTS = 1_000
"""Requirements in the node affinity of one template, of all its terms. A refusal looks at each of them for
the one to leave out, on each kind of nodes."""


MOST_CONSTRAINED = 5_000
"""Pods × (spread constraints and terms of pod affinity) of one gang: each pod that is placed is counted in
the domains of each constraint. One constraint may be on as many pods as Kubernetes supports nodes."""


MOST_CLAIMS = 64
"""Device claims and volume claims of one pod. Claims of devices are matched with the devices of each node."""


def check_bounds(workload: Workload) -> None:
    """Raise `InputError`, with bound and number, for a workload that asks for more than is planned."""
    # The replicas of one object share their PodSets, and there may be thousands of them.
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
