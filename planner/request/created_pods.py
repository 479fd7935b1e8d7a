"""What a gang's pods get when they are created in one cluster, and what their templates lack. Pure.

Sources: three admission plugins of Kubernetes, which run before webhooks. LimitRanger gives each container
without a request of a resource the one that a LimitRange of the namespace has for it.
ExtendedResourceToleration adds for each extended resource that a container requests a toleration with the
resource's name as key, operator Exists and effect NoSchedule. RuntimeClass: see
`planner.node.runtime_class`. Created pods have all of this; the template of a Job does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Toleration
from planner.model.names import namespace_of
from planner.model.pod import PodShape, peak_request
from planner.model.podgroup import PodGroup
from planner.model.quantity import show
from planner.model.resolved import ResolvedPodGroup
from planner.model.resources import Resources
from planner.model.words import listed
from planner.node.runtime_class import RuntimeClasses
from planner.request.device_claims import with_devices
from planner.request.shared_claims import with_claims_of_replicas


def as_created(snapshot: Snapshot, group: PodGroup) -> ResolvedPodGroup:
    """Returns the gang with its pods as the API server admits them, and with their device claims resolved.

    Raises `Refusal` for devices that no node offers.
    """
    return with_claims_of_replicas(snapshot, with_devices(snapshot, as_admitted(snapshot, group)))


def as_admitted(snapshot: Snapshot, group: PodGroup) -> PodGroup:
    """Returns the gang with what the API server's admission plugins add to its pods: default requests of
    LimitRanges, tolerations of the extended resources that they request, if the cluster runs that plugin, and
    what their RuntimeClass states.
    """
    classes, tolerates = snapshot.base.runtime_classes, snapshot.base.tolerates_resources
    requests = _default_requests(snapshot.base, namespace_of(group.name)) if snapshot.base.bounds else {}

    def admitted(shape: PodShape) -> PodShape:
        shape = _with_requests(shape, requests) if requests else shape
        return classes.admitted(_tolerating(shape) if tolerates else shape)

    shapes = [admitted(pod_set.shape) for pod_set in group.pod_sets]
    if all(shape is pod_set.shape for shape, pod_set in zip(shapes, group.pod_sets, strict=True)):
        return group
    sets = zip(group.pod_sets, shapes, strict=True)
    return replace(group, pod_sets=tuple(replace(pod_set, shape=shape) for pod_set, shape in sets))


_MAX_KEYS = 1024
"""Namespaces whose default requests are kept: anybody may name one."""
_DEFAULT_REQUESTS: DerivedSection[str, Resources] = DerivedSection("default requests", max_keys=_MAX_KEYS)


def _default_requests(base: Infrastructure, namespace: str) -> Resources:
    """Returns what containers of a namespace get that do not request it. Of several LimitRanges that have an
    amount of a resource, the API server takes any; here it is the first by name.
    """

    def of_all() -> Resources:
        own = (base.bounds[key] for key in sorted(base.bounds) if namespace_of(key) == namespace)
        result: dict[str, int] = {}
        for bound in (bound for bounds in own for bound in bounds):
            result = {**bound.requests, **result}
        return result

    return base.derived.get(_DEFAULT_REQUESTS, namespace, of_all)


def _with_requests(shape: PodShape, defaults: Resources) -> PodShape:
    """Returns the shape with these requests in each container that does not state the resource; unchanged for
    a pod that was created with them.
    """
    before = peak_request(shape.containers)
    containers = tuple(replace(each, requests={**defaults, **each.requests}) for each in shape.containers)
    added = {
        name: amount - before.get(name, 0)
        for name, amount in peak_request(containers).items()
        if amount > before.get(name, 0)
    }
    return replace(shape.requesting_also(added), containers=containers) if added else shape


def _tolerating(shape: PodShape) -> PodShape:
    extended = (name for name in sorted(shape.requests) if "/" in name and "kubernetes.io/" not in name)
    added = (Toleration(name, "Exists", "", "NoSchedule") for name in extended)
    return replace(shape, tolerations=tuple(dict.fromkeys((*shape.tolerations, *added))))


def runtime_class_notes(snapshot: Snapshot, group: PodGroup) -> tuple[str, ...]:
    """Returns a warning for each RuntimeClass with which the API server will refuse the pods. `group`: as it
    was read.
    """
    classes = snapshot.base.runtime_classes
    return tuple(dict.fromkeys(note for s in group.pod_sets for note in _notes(classes, s.shape)))


def _notes(classes: RuntimeClasses, shape: PodShape) -> Iterator[str]:
    name, runtime_class = shape.runtime_class, classes.by_name.get(shape.runtime_class)
    if name and runtime_class is None and classes.complete:
        others = f"use {listed(sorted(classes.by_name))}, or leave" if classes.by_name else "leave"
        yield (
            f"RuntimeClass {name!r} is not in this cluster, so the API server refuses the pods; {others} "
            "runtimeClassName out"
        )
    overhead = runtime_class.overhead if runtime_class is not None else {}
    if shape.overhead and shape.overhead != overhead and (runtime_class is not None or not name):
        means = (
            f"RuntimeClass {name!r} has {_amounts(overhead)}" if name else "no runtimeClassName means none"
        )
        yield (
            f"spec.overhead is {_amounts(shape.overhead)}, and {means}, so the API server refuses the pods; "
            "leave spec.overhead out"
        )
    for key, value in runtime_class.node_selector.items() if runtime_class is not None else ():
        if shape.node_selector.get(key, value) != value:
            stated = f"nodeSelector {key}={shape.node_selector[key]}"
            yield (
                f"{stated} contradicts RuntimeClass {name!r}, which selects {key}={value}, so the API server "
                f"refuses the pods; leave {key} out of the nodeSelector"
            )


def _amounts(amounts: Resources) -> str:
    return listed([f"{show(name, amount)} {name}" for name, amount in amounts.items()]) or "none"
