"""Which gang a single pod belongs to, and how large that is."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.errors import InputError
from planner.model.labels import Requirement
from tests.webhook.workloads import objects as o
from webhook.workloads import read


def pod(spec: Any = None, labels: Any = None, **annotations: str) -> Any:
    manifest = o.annotated(o.POD, {key.replace("__", "/"): value for key, value in annotations.items()})
    manifest["metadata"] |= {"labels": labels} if labels else {}
    manifest["spec"] |= spec or {}
    return manifest


def group(spec: Any, kind: str = "PodGroup") -> Any:
    return {("team", "pg"): {"kind": kind, "metadata": {"name": "pg", "namespace": "team"}, "spec": spec}}


def test_a_pod_alone_is_a_gang_of_one() -> None:
    """The gang has the pod's name."""
    assert [(gang.name, gang.size) for gang in read(o.POD).gangs] == [("team/Pod/demo", 1)]


def test_bayplans_own_gang() -> None:
    """The annotation names the gang, gang-size its size; each pod of it names the same gang."""
    gang = read(o.annotated(o.POD, {"bayplan.dev/gang": "trio", "bayplan.dev/gang-size": "3"})).gangs[0]
    assert (gang.name, gang.size, gang.gpus) == ("team/Gang/trio", 3, 6)


def test_a_gang_without_a_size_is_told() -> None:
    """The pod is planned alone, and a warning names the missing key."""
    gang = read(o.annotated(o.POD, {"bayplan.dev/gang": "trio"})).gangs[0]
    assert (gang.name, gang.size) == ("team/Pod/demo", 1)
    assert "bayplan.dev/gang-size" in gang.warnings[0]


@pytest.mark.parametrize(
    "member",
    [
        o.annotated(o.POD, {"pod-group-name": "pg"}),
        o.annotated(o.POD, {"scheduling.run.ai/pod-group": "pg"}),
        o.annotated(o.POD, {"scheduling.k8s.io/group-name": "pg"}),
        pod(labels={"scheduling.run.ai/pod-group": "pg"}),
        pod(spec={"schedulingGroup": {"podGroupName": "pg"}}),
    ],
)
@pytest.mark.parametrize(
    "spec", [{"minMember": 4}, {"minCount": 4}, {"schedulingPolicy": {"gang": {"minCount": 4}}}]
)
def test_a_pod_groups_minimum_is_the_size(member: Any, spec: Any) -> None:
    """However the pod names its PodGroup and however that states its minimum, the gang is of that size."""
    gang = read(member, podgroups=group(spec)).gangs[0]
    assert (gang.name, gang.size) == ("team/PodGroup/pg", 4)


def test_a_pod_group_that_is_not_known_is_told() -> None:
    """Without the PodGroup object the pod is planned alone, under its own name, with a warning."""
    gang = read(o.annotated(o.POD, {"pod-group-name": "pg"})).gangs[0]
    assert (gang.name, gang.size) == ("team/Pod/demo", 1)
    assert "not known" in gang.warnings[0]


def test_a_workload_reference_counts_its_pod_group() -> None:
    """Kubernetes 1.35's Workload holds named pod groups."""
    member = pod(spec={"workloadRef": {"name": "pg", "podGroup": "workers"}})
    groups = group({"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 5}}}]}, "Workload")
    gang = read(member, podgroups=groups).gangs[0]
    assert (gang.name, gang.size) == ("team/Workload/pg/workers", 5)


def test_kueues_pod_group_counts_in_an_annotation() -> None:
    """Kueue's plain pods name the group in a label and its total in an annotation."""
    member = pod(labels={"kueue.x-k8s.io/pod-group-name": "set"})
    member["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "6"}
    gang = read(member).gangs[0]
    assert (gang.name, gang.size) == ("team/PodGroup/set", 6)


@pytest.mark.parametrize(
    ("scope", "level"),
    [
        ("gpu", "kubernetes.io/hostname"),
        ("node", "kubernetes.io/hostname"),
        ("nvlink-domain", "nvlink-domain"),
        ("rack", "rack"),
        ("zone", "zone"),
    ],
)
def test_a_run_ai_scope_is_a_required_level(scope: str, level: str) -> None:
    """topologyPolicy.scope constrains the pods of the group."""
    groups = group({"minMember": 2, "topologyPolicy": {"scope": scope}})
    gang = read(o.annotated(o.POD, {"pod-group-name": "pg"}), podgroups=groups).gangs[0]
    assert gang.constraint.required == level


def test_a_run_ai_affinity_is_a_node_requirement() -> None:
    """topologyPolicy.affinity.required holds for every pod of the group."""
    needed = {"key": "nvidia.com/gpu.family", "operator": "In", "values": ["hopper"]}
    groups = group({"minMember": 2, "topologyPolicy": {"affinity": {"required": [needed]}}})
    gang = read(o.annotated(o.POD, {"pod-group-name": "pg"}), podgroups=groups).gangs[0]
    assert gang.pod_sets[0].shape.affinity == ((Requirement("nvidia.com/gpu.family", "In", ("hopper",)),),)


def test_kais_pod_group_constrains_its_pods() -> None:
    """topologyConstraint names topology and levels."""
    asked = {"topology": "fabric", "requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"}
    groups = group({"minMember": 2, "topologyConstraint": asked})
    constraint = read(o.annotated(o.POD, {"pod-group-name": "pg"}), podgroups=groups).gangs[0].constraint
    assert (constraint.topology, constraint.required, constraint.preferred) == ("fabric", "zone", "rack")


def test_a_scope_that_does_not_exist_names_those_that_do() -> None:
    """A typing error in the PodGroup is refused."""
    groups = group({"topologyPolicy": {"scope": "row"}})
    with pytest.raises(InputError, match="gpu, nvlink-domain, node, rack, zone"):
        read(o.annotated(o.POD, {"pod-group-name": "pg"}), podgroups=groups)


def test_a_pod_that_somebody_made_is_planned_for_itself() -> None:
    """The planner decides what it reserves."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    workload = read(o.changed(o.POD, ("metadata", "ownerReferences"), [owner]))
    assert workload.owner == "team/ReplicaSet/web"
    assert (workload.gangs[0].size, workload.gangs[0].reserve) == (1, "auto")


def test_a_bound_pod_has_its_place() -> None:
    """A pod on a node is not planned again."""
    workload = read(pod(spec={"nodeName": "dgx-01"}))
    assert (workload.gangs, workload.holds) == ((), False)
