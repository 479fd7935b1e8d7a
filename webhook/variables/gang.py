"""The CEL variable `gang`: the gang of an object, and what it requests, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.pod import DEFAULT_SCHEDULER, PodShape
from planner.model.podgroup import Constraint, PodGroup
from planner.model.reservation import Reservation
from planner.node.runtime_class import NO_RUNTIME_CLASSES, RuntimeClasses
from webhook.placement.group_members import GroupMember
from webhook.placement.service_roles import places_of_service, role_of
from webhook.workloads import Template, Workload
from webhook.workloads.templates import pod_specs, value_at

_OBJECT = Template((), "", 0, ("metadata",), ("spec",))
"""Describes the object itself as if it were a template, so that its labels are read as those of templates."""


_NOTHING: Mapping[str, Any] = {}


def gang_variable(
    workload: Workload,
    namespace: str,
    pod_set: str,
    obj: Mapping[str, Any] = _NOTHING,
    members: Iterable[GroupMember] = (),
    reservations: Iterable[Reservation] = (),
    snapshot: Snapshot | None = None,
) -> dict[str, Any]:
    """Returns the variable `gang`: the gang of an object, and what it requests. If the object has several
    gangs (replicas), the first is returned; gangs of one object differ only if it is a JobSet with exclusive
    topology.

    `size`, `gpus`: numbers of pods and whole GPUs of the gang. Amounts in `podSets` are per pod, cpu in
    millicores, the rest in base units, with the overhead of its RuntimeClass in `snapshot`. `podSet`: the
    name of the PodSet whose template the policy runs on, "" on the workload itself. `labels`, `annotations`:
    those of the workload, in both cases. `queue`: the queue of the PodGroup that a pod names. `schedulers`:
    the schedulerNames in the templates, without the default scheduler. `constraint` of a PodSet: applies in
    addition to that of the gang. `fellows`: pods of other objects in its Kubernetes PodGroups (`members`).
    `role`: prefill, decode or router, by label or name.
    `beside`: the places of the other roles of the same service (`webhook.placement.service_roles`).
    """
    group = workload.gangs[0] if workload.gangs else workload.planned_elsewhere
    return {
        "name": group.name,
        "namespace": namespace,
        "kind": workload.kind,
        "podSet": pod_set,
        "queue": workload.queue,
        **_size(workload, group, snapshot.base.runtime_classes if snapshot else NO_RUNTIME_CLASSES),
        **_metadata_of(workload, obj),
        **_neighbours(workload, members, reservations),
        **_placement_request(group),
    }


def _size(workload: Workload, group: PodGroup, runtime_classes: RuntimeClasses) -> dict[str, Any]:
    """Returns the number of pods and GPUs, the PodSets, and the number of gangs."""
    # Computed once for each mapping of requests: templates with equal containers and RuntimeClass, which may
    # be hundreds, share one mapping (`shape_of`).
    amounts: dict[int, dict[str, Any]] = {}
    for pod_set in group.pod_sets:
        if id(pod_set.shape.requests) not in amounts:
            amounts[id(pod_set.shape.requests)] = _amounts_json(runtime_classes.admitted(pod_set.shape))
    return {
        "size": group.size,
        "gpus": group.gpus,
        "replicas": len(workload.gangs),
        "suspended": workload.suspended,
        "perPod": workload.per_pod or bool(workload.planned_elsewhere.pod_sets),
        "podSets": [
            {
                "name": pod_set.name,
                "count": pod_set.count,
                **amounts[id(pod_set.shape.requests)],
                "constraint": _constraint_json(pod_set.constraint),
            }
            for pod_set in group.pod_sets
        ],
    }


def _amounts_json(shape: PodShape) -> dict[str, Any]:
    """Returns the requests of one pod: whole GPUs, all amounts by resource, and MIG slices."""
    return {"gpus": shape.gpus, "resources": dict(shape.requests), "mig": shape.mig_slices}


def _metadata_of(workload: Workload, obj: Mapping[str, Any]) -> dict[str, Any]:
    """Returns labels, annotations, schedulers and role of the object and its templates."""
    metadata = obj.get("metadata")
    return {
        "labels": _texts(metadata, "labels"),
        "annotations": _texts(metadata, "annotations"),
        "schedulers": _schedulers(workload, obj),
        "role": role_of(workload.name.rpartition("/")[2], *_all_labels(workload, obj)),
    }


def _neighbours(
    workload: Workload, members: Iterable[GroupMember], reservations: Iterable[Reservation]
) -> dict[str, Any]:
    """Returns `fellows` and `beside`: pods of the same PodGroups, and places of the service's other roles."""
    gangs = (group.name for group in workload.gangs)
    return {
        "fellows": [
            {"group": member.group, "scheduler": member.scheduler, "who": member.who} for member in members
        ],
        "beside": places_of_service(workload.name, gangs, reservations) if workload.name else [],
    }


def _placement_request(group: PodGroup) -> dict[str, Any]:
    """Returns the requested placement, the keys that request it, and what happens if there is no place."""
    return {
        "constraint": _constraint_json(group.constraint),
        "topologies": sorted({value for _, kind, value in group.origins if kind == "topology"}),
        "keys": [{"field": field, "kind": kind, "value": value} for field, kind, value in group.origins],
        "reserve": group.reserve,
        "onUnavailable": group.on_unavailable,
    }


def _texts(metadata: Any, part: str) -> dict[str, str]:
    values = metadata.get(part) if isinstance(metadata, Mapping) else None
    return {key: str(value) for key, value in values.items()} if isinstance(values, Mapping) else {}


def _schedulers(workload: Workload, obj: Any) -> list[str]:
    """Returns the schedulers that pod templates name, in order, each once, without the default scheduler."""
    names = dict.fromkeys(str(spec.get("schedulerName") or "") for spec in pod_specs(obj, workload))
    return [name for name in names if name not in ("", DEFAULT_SCHEDULER)]


def _all_labels(workload: Workload, obj: Any) -> Iterator[Any]:
    """Yields the labels of the object and of its templates."""
    for template in (_OBJECT, *workload.templates):
        metadata = value_at(obj, template.metadata_path)
        yield metadata.get("labels") if isinstance(metadata, Mapping) else None


def _constraint_json(constraint: Constraint) -> dict[str, Any]:
    return {
        "topology": constraint.topology,
        "required": constraint.required,
        "preferred": constraint.preferred,
        "sliceLevel": constraint.slice_level,
        "sliceSize": constraint.slice_size,
    }
