"""Tests clusters with an autoscaler: gangs that have no place now and would have one on added nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.build import snapshot
from planner.manifests.cluster import read
from planner.manifests.growth import condensed, pools_from_text
from planner.model.errors import InputError, Where
from planner.model.growth import GrowingPool
from planner.model.labels import Requirement, Toleration
from planner.model.pod import ClaimUse, PodShape, PodTerm, SpreadConstraint
from planner.planning.plan import plan
from tests.builders import cluster, gang, node, pod_set, shape, topology

Json = dict[str, Any]
H100 = "h100: nodes=4 nvidia.com/gpu=8 cpu=64 memory=512Gi label:pool=h100"


def growing(drawing: str, stated: str = H100):
    """A drawn cluster with the node pools of the parameter."""
    return cluster(drawing).with_stated_settings(pools_from_text(stated, Where()))


def test_a_gang_larger_than_the_cluster_waits_for_nodes():
    """The answer states number, pool and amounts of the new nodes; nothing is reserved."""
    answer = plan(growing("r1: a b gpu=8"), gang(5))
    assert (answer.decision, answer.reason, answer.waits_for_nodes) == ("queued", "WaitsForNodes", True)
    assert answer.message.startswith(
        "5 pods (40 GPUs) wait for 3 more nodes of pool h100 (8 nvidia.com/gpu each)."
    )
    assert not answer.assignments
    assert plan(cluster("r1: a b gpu=8"), gang(5)).decision == "rejected"


def test_it_is_refused_where_the_pool_may_not_grow_as_far():
    """Two nodes and four more are six."""
    assert plan(growing("r1: a b gpu=8"), gang(6)).reason == "WaitsForNodes"
    answer = plan(growing("r1: a b gpu=8"), gang(7))
    assert (answer.decision, answer.reason) == ("rejected", "TooLargeForCluster")


def test_a_gang_of_more_nodes_than_are_tried_waits_for_them():
    """Six hundred whole nodes of a pool without a limit; one that may not grow as far is no help."""
    answer = plan(growing("r1: a b gpu=8", "h100: nvidia.com/gpu=8"), gang(600))
    assert (answer.decision, answer.reason, answer.waits_for_nodes) == ("queued", "WaitsForNodes", True)
    assert "598 more nodes of pool h100" in answer.message
    assert (
        plan(growing("r1: a b gpu=8", "h100: nodes=597 nvidia.com/gpu=8"), gang(600)).decision == "rejected"
    )


def test_the_first_gpu_node_may_still_have_to_come():
    """A cluster of CPU nodes whose GPU pool is at zero."""
    answer = plan(growing("r1: a gpu=0"), gang(2))
    assert "2 more nodes of pool h100" in answer.message


def test_a_gang_that_fits_now_or_never_is_answered_as_before():
    """New nodes are considered only if nothing else helps."""
    assert plan(growing("r1: a b gpu=8"), gang(2)).decision == "admitted"
    assert plan(growing("r1: a b gpu=8"), gang(pod_set(1, shape(gpu=16)))).decision == "rejected"


def test_a_busy_cluster_that_may_grow_is_not_waited_for():
    """Both nodes are in use: an autoscaler would bring others at once, if the pods are not held back."""
    answer = plan(growing("r1: a b gpu=8 used=8"), gang(2))
    assert (answer.reason, answer.waits_for_nodes) == ("WaitsForNodes", True)
    waits = plan(growing("r1: a b gpu=8 used=8", "h100: nodes=0 nvidia.com/gpu=8"), gang(2))
    assert (waits.reason, waits.waits_for_nodes) == ("NoRoomNow", False)


def test_labels_taints_and_selectors_of_the_pool_count():
    """A pod whose selector no pool meets, or that does not tolerate its taint, never runs there."""
    tainted = f"{H100} taint:nvidia.com/gpu=present:NoSchedule"
    drawing = "r1: a gpu=0"
    selecting = gang(pod_set(1, shape(gpu=8, selector={"pool": "h100"})))
    other = gang(pod_set(1, shape(gpu=8, selector={"pool": "a100"})))
    tolerant = gang(pod_set(1, shape(gpu=8, tolerations=(Toleration("nvidia.com/gpu", "Exists"),))))
    assert plan(growing(drawing), selecting).reason == "WaitsForNodes"
    assert plan(growing(drawing), other).decision == "rejected"
    assert plan(growing(drawing, tainted), selecting).decision == "rejected"
    assert plan(growing(drawing, tainted), tolerant).reason == "WaitsForNodes"


def test_a_required_level_may_be_one_that_new_nodes_are_in_together():
    """Nobody knows the racks of nodes that do not exist; more pods than may come never share one."""
    assert plan(growing("r1: a b gpu=8"), gang(4, required="rack")).reason == "WaitsForNodes"
    assert plan(growing("r1: a b gpu=8"), gang(5, required="rack")).decision == "rejected"


def test_pools_grow_together_where_no_single_one_is_enough():
    """Workers of one pool, a launcher of many CPUs of another."""
    cpus = "cpus: nodes=2 cpu=200 memory=512Gi"
    group = gang(pod_set(2, shape(gpu=8), name="worker"), pod_set(1, shape(cpu=150), name="launcher"))
    answer = plan(growing("r1: a gpu=0 cpu=4", f"{H100}\n{cpus}"), group)
    assert "1 more node of pool cpus and 2 more nodes of pool h100 (8 nvidia.com/gpu each)" in answer.message


def documents(*objects: Json):
    """One GPU node of pool `gpus`, and these objects."""
    node = {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "gke-lab-gpus-1a2b-x1", "labels": {"pool": "gpus", "kubernetes.io/hostname": "x1"},
        },
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"nvidia.com/gpu": 8, "cpu": 64, "memory": "512Gi", "pods": 110}},
    }  # fmt: skip
    return read([("c.yaml", [node, *objects])])


def pods(count: int, **selector: str):
    """Pods of eight GPUs that tolerate GPU nodes."""
    pod = PodShape(
        {"nvidia.com/gpu": 8, "cpu": 1000, "pods": 1},
        selector,
        tolerations=(Toleration("nvidia.com/gpu", "Exists"),),
    )
    return gang(pod_set(count, pod))


def node_pool(**spec: Any) -> Json:
    """A NodePool of Karpenter."""
    requirements = [
        {
            "key": "node.kubernetes.io/instance-type",
            "operator": "In",
            "values": ["p5.48xlarge", "p4d.24xlarge"],
        }
    ]
    template = {"metadata": {"labels": {"team": "ml"}}, "spec": {"requirements": requirements}}
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"},
        "spec": {"template": template, **spec},
    }  # fmt: skip


def test_a_karpenter_node_pool_brings_whatever_node_a_pod_needs():
    """What its nodes have is not told; labels that it chooses, and well-known ones, are as the pod asks."""
    snapshot = documents(node_pool())
    assert "3 more nodes of pool gpu" in plan(snapshot, pods(4)).message
    asked = {"node.kubernetes.io/instance-type": "p4d.24xlarge", "topology.kubernetes.io/zone": "z"}
    assert plan(snapshot, pods(1, team="ml", **asked)).reason == "WaitsForNodes"
    assert plan(snapshot, pods(1, team="web")).decision == "rejected"
    assert plan(snapshot, pods(1, **{"node.kubernetes.io/instance-type": "m5.large"})).decision == "rejected"


ZONE = "topology.kubernetes.io/zone"
OWN = (Requirement("app", "In", ("train",)),)
APART = {"terms": (PodTerm(ZONE, OWN),)}
SPREAD = {"spread": (SpreadConstraint(ZONE, 1, OWN),)}
NEAR = {"terms": (PodTerm(ZONE, OWN, attracts=True),)}


@pytest.mark.parametrize("choices", [("a", "b", "c"), ()])
@pytest.mark.parametrize(
    ("rule", "count", "reason"),
    [
        (SPREAD, 7, "WaitsForNodes"),
        (APART, 3, "WaitsForNodes"),
        (APART, 4, "PodFitsNoNode"),
        (NEAR, 3, "WaitsForNodes"),
    ],
)
def test_new_nodes_come_in_each_zone_that_the_rules_of_the_pods_need(choices, rule, count, reason):
    """Karpenter chooses a zone for each node: of those in its NodePool, or else of those of the cluster."""
    zones = [node(zone, labels={ZONE: zone}, gpu=0) for zone in "abc"]
    pool = GrowingPool("gpu", choices={ZONE: choices})
    moment = snapshot(zones, [topology(ZONE)])
    grows = moment.evolve(base=replace(moment.base, growth=(pool,)), changed_nodes=frozenset())
    pod = replace(shape(gpu=8), labels={"app": "train"}, **rule)
    assert plan(grows, gang(pod_set(count, pod))).reason == reason


@pytest.mark.parametrize(("zones", "reason"), [(("a",), "WaitsForNodes"), (("a", "b"), "PodFitsNoNode")])
def test_new_nodes_come_in_a_zone_that_the_pods_do_not_exclude(zones, reason):
    """Karpenter's NodePool has two zones, of which the pods exclude the first, or both."""
    pool = GrowingPool("gpu", choices={ZONE: ("a", "b")})
    moment = cluster("r1: n")
    grows = moment.evolve(base=replace(moment.base, growth=(pool,)), changed_nodes=frozenset())
    pod = replace(shape(gpu=16), affinity=((Requirement(ZONE, "NotIn", zones),),))
    assert plan(grows, gang(pod_set(2, pod))).reason == reason


def test_new_nodes_come_in_racks_of_their_own_for_pods_that_must_be_apart():
    """Also if the gang requires one block: in this they are together."""
    pod = replace(shape(gpu=8), labels={"app": "train"}, terms=(PodTerm("rack", OWN),))
    grows = cluster("b1/r1: a", ("block", "rack")).with_stated_settings(pools_from_text(H100, Where()))
    assert plan(grows, gang(pod_set(4, pod), required="block")).reason == "WaitsForNodes"
    assert plan(grows, gang(pod_set(4, pod), required="rack")).decision == "rejected"


def test_the_limits_of_a_karpenter_node_pool_are_kept():
    """In all its nodes together, what it uses already included."""
    limited = node_pool(limits={"nvidia.com/gpu": 32})
    limited["status"] = {"resources": {"nvidia.com/gpu": "16"}}
    snapshot = documents(limited)
    assert plan(snapshot, pods(3)).reason == "WaitsForNodes"
    assert plan(snapshot, pods(4)).decision == "rejected"


def test_a_machine_deployment_with_the_autoscalers_annotations_grows():
    """Up to its maximal size, by nodes of its capacity, labels and taints."""
    prefix = "capacity.cluster-autoscaler.kubernetes.io/"
    annotations = {
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "3",
        f"{prefix}cpu": "96", f"{prefix}memory": "1Ti", f"{prefix}gpu-count": "8",
        f"{prefix}gpu-type": "nvidia.com/gpu", f"{prefix}labels": "pool=gpus,disk=nvme",
        f"{prefix}taints": "nvidia.com/gpu=present:NoSchedule",
    }  # fmt: skip
    deployment = {
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
        "metadata": {"name": "gpus", "namespace": "default", "annotations": annotations},
        "spec": {"replicas": 1},
    }  # fmt: skip
    snapshot = documents(deployment)
    assert "2 more nodes of pool gpus (8 nvidia.com/gpu each), which has 1" in plan(snapshot, pods(3)).message
    assert plan(snapshot, pods(4)).decision == "rejected"
    assert plan(snapshot, pods(2, disk="nvme")).reason == "WaitsForNodes"


STATUS = """
autoscalerStatus: Running
time: "2026-11-22 10:00:00 +0000 UTC"
nodeGroups:
- name: https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-lab-gpus-1a2b-grp
  health: {cloudProviderTarget: 1, minSize: 0, maxSize: 3, lastProbeTime: "2026-11-22T10:00:00Z"}
- name: https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-lab-cpus-9f9f-grp
  health: {status: Healthy, cloudProviderTarget: 1, minSize: 1, maxSize: 9}
"""


def status(text: str) -> Json:
    """The ConfigMap that the Cluster Autoscaler writes."""
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"status": text}}


def test_a_group_of_the_cluster_autoscalers_status_grows_by_nodes_like_its_own():
    """A node tells its group by its name; of a group without nodes nobody knows what they are like."""
    snapshot = documents(status(STATUS))
    answer = plan(snapshot, pods(3, pool="gpus"))
    assert "2 more nodes of pool gke-lab-gpus-1a2b-grp (8 nvidia.com/gpu each), which has 1" in answer.message
    assert plan(snapshot, pods(4)).decision == "rejected"


def test_a_status_in_another_form_tells_of_no_group():
    """Before Kubernetes 1.30 the status is prose."""
    assert (
        plan(documents(status("Cluster-autoscaler status at 2020:\nHealth: Healthy")), pods(3)).decision
        == "rejected"
    )


def test_the_condensed_status_changes_only_with_its_groups():
    """Its times do not count; what is left is read as before."""
    first = condensed(status(STATUS), Where())
    assert condensed(status(STATUS.replace("10:00:00", "10:00:10")), Where()) == first
    assert condensed(status(STATUS.replace("maxSize: 3", "maxSize: 4")), Where()) != first
    assert documents(first).base.growth == documents(status(STATUS)).base.growth


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ("h100 nodes=4", "is no pool"),
        ("h100: nodes=many", "[h100]: expected a whole number"),
        ("h100: label:pool", "[h100]: 'pool' is no pair"),
        ("h100: taint:a=b", "[h100]: 'a=b' is no taint"),
        ("h100: cpu=x", "[h100].cpu"),
    ],
)
def test_an_invalid_pool_is_named(stated, complaint):
    """The message states a valid form."""
    with pytest.raises(InputError) as refused:
        pools_from_text(stated, Where("", "parameters", "growing.pools"))
    assert complaint in str(refused.value)


def test_new_nodes_leave_no_trace_in_the_cluster():
    """The snapshot is unchanged, and the next gang is planned on existing nodes."""
    snapshot = growing("r1: a b gpu=8")
    names = list(snapshot.nodes)
    plan(snapshot, gang(5))
    assert list(snapshot.nodes) == names
    assert {a.node for a in plan(snapshot, gang(2)).assignments} == set(names)


def test_what_only_waits_for_others_to_end_does_not_wait_for_nodes():
    """Four nodes, two of them busy, and one more that may come: a gang of four waits for the two."""
    snapshot = cluster("r1: a b gpu=8\nr1: c d gpu=8 used=8")
    with_pools = snapshot.with_stated_settings(pools_from_text("h100: nodes=1 nvidia.com/gpu=8", Where()))
    answer = plan(with_pools, gang(4))
    assert (answer.reason, answer.waits_for_nodes) == ("NoRoomNow", False)


def test_several_pods_share_a_new_node():
    """Sixteen pods of a GPU need two nodes of eight."""
    pool = "h100: nvidia.com/gpu=8 cpu=64 memory=512Gi"
    assert (
        "2 more nodes of pool h100"
        in plan(growing("r1: a gpu=0", pool), gang(pod_set(16, shape(gpu=1)))).message
    )


def offering(**class_spec: str) -> list[Json]:
    """Two nodes of pool h100 that offer their eight GPUs by DRA, and the DeviceClass of these."""
    objects: list[Json] = []
    for name in ("a", "b"):
        labels = {"kubernetes.io/hostname": name, "pool": "h100"}
        offers = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        node = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": offers}}
        devices = [
            {"name": f"gpu-{number}", "attributes": {"type": {"string": "gpu"}}} for number in range(8)
        ]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.nvidia.com", "nodeName": name, "pool": pool, "devices": devices}
        resource_slice = {"metadata": {"name": name}, "spec": spec}
        objects.append({"apiVersion": "v1", "kind": "Node", **node})
        objects.append({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", **resource_slice})
    device_class = {"metadata": {"name": "gpu.nvidia.com"}, "spec": class_spec}
    return [*objects, {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **device_class}]


def claiming(pods_count: int):
    """Pods of eight claimed GPUs each, on the nodes of `offering`."""
    request = {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 8}}
    template = {
        "metadata": {"name": "eight", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    objects = [
        *offering(),
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", **template},
    ]
    use = ClaimUse("eight", template=True)
    return read([("c.yaml", objects)]), gang(pod_set(pods_count, PodShape({"cpu": 1000}, claims=(use,))))


def limiting(pods_count: int):
    """Pods of eight GPUs in their limits, which the DeviceClass offers as an extended resource."""
    objects = offering(extendedResourceName="nvidia.com/gpu")
    return read([("c.yaml", objects)]), gang(pod_set(pods_count, shape(cpu=1, gpu=8)))


@pytest.mark.parametrize("requesting", [claiming, limiting])
@pytest.mark.parametrize(
    "pool", ["h100: nodes=4 cpu=64 memory=512Gi label:pool=h100", "h100: label:pool=h100"]
)
def test_new_nodes_have_the_devices_of_their_pools_nodes_for_claims(pool: str, requesting):
    """Two of four pods find theirs on the nodes that are there; two more nodes would do for the others."""
    snapshot, group = requesting(4)
    grown = snapshot.with_stated_settings(pools_from_text(pool, Where()))
    assert plan(snapshot, group).decision == "rejected"
    answer = plan(grown, group)
    assert (answer.reason, answer.waits_for_nodes) == ("WaitsForNodes", True)
    assert "wait for 2 more nodes of pool h100, which has 2" in answer.message


def test_the_slice_of_a_node_that_is_gone_says_nothing_about_new_nodes():
    """It is deleted some time after its node; the other node of the pool shows what new ones have."""
    snapshot, group = claiming(4)
    left = snapshot.without_node("a").with_stated_settings(pools_from_text("h100: label:pool=h100", Where()))
    assert "wait for 3 more nodes of pool h100, which has 1" in plan(left, group).message


def test_a_pool_whose_devices_nobody_knows_serves_no_claim():
    """None of its nodes is there, or it has no label by which one could be told."""
    snapshot, group = claiming(4)
    for pool in ("b200: cpu=64 memory=512Gi label:pool=b200", "h100: cpu=64 memory=512Gi"):
        assert (
            plan(snapshot.with_stated_settings(pools_from_text(pool, Where())), group).decision == "rejected"
        )
