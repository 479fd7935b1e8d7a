"""Kueue Workloads with an assignment, as stored and as read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.pod import BoundPod
from planner.model.reservation import reservation_id
from planner.model.topology import HOSTNAME
from tests.builders import amounts
from webhook.kube.state.kueue_places import KueuePlace, kueue_place

Json = dict[str, Any]


def domains(level: str, counts: Mapping[str, int]) -> Json:
    """An assignment in the older format."""
    listed = [{"values": [value], "count": count} for value, count in counts.items()]
    return {"levels": [level], "domains": listed}


def slices(level: str, counts: Mapping[str, int]) -> Json:
    """The same in the newer format, which states the common part of all names once."""
    values = list(counts)
    prefix = values[0][:1] if len({value[:1] for value in values}) == 1 else ""
    individual: Json = {"roots": [value.removeprefix(prefix) for value in values]}
    if prefix:
        individual["prefix"] = prefix
    part = {
        "domainCount": len(values),
        "valuesPerLevel": [{"individual": individual}],
        "podCounts": {"individual": list(counts.values())},
    }
    return {"levels": [level], "slices": [part]}


def workload(
    name: str,
    assignment: Json | None,
    *,
    gpu: int = 8,
    owner: str = "",
    pods: int = 2,
    status: Mapping[str, Any] | None = None,
) -> Json:
    """A stored Workload; `owner` is the Job that it belongs to."""
    resources = {"limits": {"nvidia.com/gpu": gpu}} if gpu else {}
    spec = {"containers": [{"name": "main", "resources": resources}]}
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": f"uid-{owner}"}]
    admission = {"podSetAssignments": [{"name": "main", "count": pods, "topologyAssignment": assignment}]}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "ownerReferences": owners if owner else [],
        },
        "spec": {"podSets": [{"name": "main", "count": pods, "template": {"spec": spec}}]},
        "status": {**({"admission": admission} if assignment else {}), **(status or {})},
    }


def assigned(name: str, counts: Mapping[str, int], *, level: str = HOSTNAME, **fields: Any) -> KueuePlace:
    """The place of a Workload whose pods go to these nodes, or to domains of another level."""
    place = kueue_place(workload(name, slices(level, counts), pods=sum(counts.values()), **fields), Where())
    assert place is not None, "it has a place"
    return place


def bound(place: KueuePlace, node: str, number: int = 0, gpu: int = 8) -> BoundPod:
    """A pod of the Workload on a node, as `planner.manifests.pods.bound_pod` reads it."""
    name = f"default/{place.ref.name}-{number}"
    return BoundPod(name, node, amounts(gpu=gpu) | {"pods": 1}, reservation_id(place.gang))


def seats(snapshot: Snapshot, gang: str) -> dict[str, int]:
    """The number of pods by node for which a gang has a reservation."""
    held = snapshot.holding(gang)
    return {seat.node: seat.count for seat in held.assignments} if held is not None else {}
