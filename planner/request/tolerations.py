"""Tolerations that the API server adds to pods when they are created, and that pod templates lack. Pure.

Source: Kubernetes' admission plugin ExtendedResourceToleration. For each extended resource that a container
requests, it adds a toleration with the resource's name as key, operator Exists and effect NoSchedule. The
plugin runs before webhooks, so created pods have these tolerations; the template of a Job does not.
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.labels import Toleration
from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup


def with_resource_tolerations(snapshot: Snapshot, group: PodGroup) -> PodGroup:
    """Returns the gang with a toleration for each extended resource that its pods request.

    The gang is unchanged if the cluster's API server does not run the plugin.
    """
    if not snapshot.base.tolerates_resources:
        return group
    sets = tuple(replace(pod_set, shape=tolerating(pod_set.shape)) for pod_set in group.pod_sets)
    return replace(group, pod_sets=sets)


def tolerating(shape: PodShape) -> PodShape:
    """Returns the shape of a pod with the tolerations that the plugin adds."""
    extended = (name for name in sorted(shape.requests) if "/" in name and "kubernetes.io/" not in name)
    added = (Toleration(name, "Exists", "", "NoSchedule") for name in extended)
    return replace(shape, tolerations=tuple(dict.fromkeys((*shape.tolerations, *added))))
