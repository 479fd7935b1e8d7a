"""How people really fail, and every word that kubectl then shows them.

The hall: two racks of four H100 nodes with RDMA (r1, r2), two A100 nodes split by MIG, three small T4 nodes
with a taint and no rack, two nodes without GPUs. In the namespace `small` little is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.policies.helpers import mutate
from tests.webhook.admission.test_refusal_words import deployment, job, pod, pod_of
from webhook.policy.engine.device_selectors import read_cluster

Json = dict[str, Any]
GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
RACK, BLOCK, HOSTNAME = (
    "cloud.provider.com/topology-rack",
    "cloud.provider.com/topology-block",
    "kubernetes.io/hostname",
)
H100S = [f"h100-{rack}-{number}" for rack in (1, 2) for number in range(4)]
IN_HALL = {"kai.scheduler/topology": "hall"}
REQUIRED = "kai.scheduler/topology-required-placement"
IN_RACK = {**IN_HALL, REQUIRED: RACK}


def node(name: str, labels: Json, offers: Json, *, tainted: bool = False) -> Json:
    """A node that is ready."""
    taint = {"key": "dedicated", "value": "infra", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, "kubernetes.io/arch": "amd64", **labels}},
        "spec": {"taints": [taint]} if tainted else {},
        "status": {
            "allocatable": {"cpu": "128", "memory": "1000Gi", "pods": "110", **offers},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def h100(name: str) -> Json:
    """Eight GPUs and an adapter in one rack of the block."""
    labels = {PRODUCT: "NVIDIA-H100-80GB-HBM3", BLOCK: "b1", RACK: f"r{name[5]}"}
    return node(name, labels, {GPU: "8", "rdma/hca_shared_devices_a": "1000"})


A100 = {PRODUCT: "NVIDIA-A100-SXM4-80GB", BLOCK: "b1", RACK: "r3"}
SLICES = {"nvidia.com/mig-1g.10gb": "14", "nvidia.com/mig-3g.40gb": "4"}
SMALL = {"cpu": "8", "memory": "30Gi", GPU: "1"}
OBJECTS = [
    *map(h100, H100S),
    *(node(f"a100-{number}", A100, SLICES) for number in range(2)),
    *(node(f"t4-{number}", {PRODUCT: "Tesla-T4"}, SMALL, tainted=True) for number in range(3)),
    *(node(f"cpu-{number}", {}, {"cpu": "32", "memory": "128Gi"}) for number in range(2)),
    {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "hall"},
        "spec": {"levels": [{"nodeLabel": key} for key in (BLOCK, RACK, HOSTNAME)]},
    },
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "small", "namespace": "small"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "4", "memory": "16Gi"}}]},
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "small"},
        "spec": {"hard": {f"requests.{GPU}": "4"}},
        "status": {"hard": {f"requests.{GPU}": "4"}, "used": {f"requests.{GPU}": "2"}},
    },
]


def hall(*added: Json, change: Callable[[Json], Json] = lambda obj: obj) -> Snapshot:
    """The hall, with nodes changed and more objects in it."""
    return read_cluster(("hall.yaml", obj) for obj in (*map(change, OBJECTS), *added))


HALL = hall()


def of(**limits: str | int) -> Json:
    """A pod's spec with one container of these limits."""
    return {"containers": [{"name": "main", "image": "trainer", "resources": {"limits": limits}}]}


def on(product: str, gpus: int = 8, **spec: Any) -> Json:
    """A pod's spec that selects a product."""
    return pod_of(gpus, nodeSelector={PRODUCT: product}, **spec)


def requiring(key: str, *values: str) -> Json:
    """A required node affinity."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


NEVER = "default/Job/train can never run: No node takes a pod of main: "
POD_NEVER = "default/Pod/train can never run: No node takes a pod of main: "
TAINTED = "3 carry the taint dedicated=infra:NoSchedule"

REFUSED: dict[str, tuple[Json, str]] = {
    "a product in short": (
        job(on("H100"), 2),
        NEVER + "all 15 nodes lack nvidia.com/gpu.product=H100 (there are NVIDIA-H100-80GB-HBM3 on 8, "
        "NVIDIA-A100-SXM4-80GB on 2, Tesla-T4 on 3). Would work: nvidia.com/gpu.product: "
        "NVIDIA-H100-80GB-HBM3.",
    ),
    "a product with letters swapped": (
        job(on("NVIDIA-H100-80GB-HMB3"), 2),
        NEVER + "all 15 nodes lack nvidia.com/gpu.product=NVIDIA-H100-80GB-HMB3 (there are NVIDIA-H100-80GB-"
        "HBM3 on 8, NVIDIA-A100-SXM4-80GB on 2, Tesla-T4 on 3). Would work: nvidia.com/gpu.product: "
        "NVIDIA-H100-80GB-HBM3.",
    ),
    "a product that is not there": (
        job(on("NVIDIA-B200"), 2),
        NEVER + "all 15 nodes lack nvidia.com/gpu.product=NVIDIA-B200 (there are NVIDIA-A100-SXM4-80GB on 2, "
        "NVIDIA-H100-80GB-HBM3 on 8, Tesla-T4 on 3). Would work: nvidia.com/gpu.product: "
        "NVIDIA-H100-80GB-HBM3.",
    ),
    "a label key with letters swapped": (
        job(pod_of(1, nodeSelector={"nvidia.com/gpu.prodcut": "NVIDIA-H100-80GB-HBM3"}), 2),
        NEVER + "all 15 nodes lack nvidia.com/gpu.prodcut=NVIDIA-H100-80GB-HBM3 (no node has this label; some"
        " have nvidia.com/gpu.product). Would work: nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3.",
    ),
    "a label that nobody has": (
        job(pod_of(8, nodeSelector={"pool": "train"}), 2),
        NEVER + "all 15 nodes lack pool=train (no node has this label). Would work: no pool: train.",
    ),
    "a product behind a taint": (
        pod(on("Tesla-T4", 1)),
        POD_NEVER + "of 15 nodes, 12 lack nvidia.com/gpu.product=Tesla-T4 and 3 carry the taint "
        "dedicated=infra:NoSchedule. Would work: nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, or a "
        "toleration of dedicated=infra:NoSchedule.",
    ),
    "more GPUs than a node has": (
        pod(pod_of(16)),
        POD_NEVER + "of 15 nodes, 12 have at most 8 of 16 nvidia.com/gpu and 3 carry the taint "
        "dedicated=infra:NoSchedule. Would work: at most 8 nvidia.com/gpu a pod.",
    ),
    "more GPUs than a node of the product has": (
        pod(on("Tesla-T4", 2, tolerations=[{"operator": "Exists"}])),
        POD_NEVER + "of 15 nodes, 12 lack nvidia.com/gpu.product=Tesla-T4 and 3 have at most 1 of 2 "
        "nvidia.com/gpu. Would work: at most 1 nvidia.com/gpu a pod.",
    ),
    "a Deployment of such pods": (
        deployment(pod_of(16)),
        (
            "default/Deployment/serve cannot run on the nodes that the cluster has now: No node takes a"
            " pod of main: of 15 nodes, 12 have at most 8 of 16 nvidia.com/gpu and 3 carry the taint "
            "dedicated=infra:NoSchedule. Would work: at most 8 nvidia.com/gpu a pod."
        ),
    ),
    "more nodes than there are": (
        job(pod_of(8), 10),
        (
            "default/Job/train can never run: 10 pods (80 GPUs) do not fit the empty cluster: the whole "
            "cluster has room for 8 of 10 pods (64 GPUs). Of 15 nodes, 4 have no nvidia.com/gpu, 3 carry "
            "the taint dedicated=infra:NoSchedule and 8 have room for a pod. Would work: 8 pods "
            "(spec.parallelism: 8)."
        ),
    ),
    "more nodes than a rack has": (
        job(pod_of(8), 5, annotations=IN_RACK),
        (
            "default/Job/train can never run: 5 pods (40 GPUs) required in one rack do not fit the empty "
            "cluster: the largest rack, b1/r1, has room for 4 of 5 pods (32 GPUs). Of 15 nodes, 5 are not"
            " in topology hall, 2 have no nvidia.com/gpu and 8 have room for a pod. Would work: 4 pods "
            "(spec.parallelism: 4), or required at cloud.provider.com/topology-block."
        ),
    ),
    "arm64 by selector": (
        job(pod_of(8, nodeSelector={"kubernetes.io/arch": "arm64"}), 2),
        NEVER + "all 15 nodes lack kubernetes.io/arch=arm64 (there is amd64 on 15). Would work: "
        "kubernetes.io/arch: amd64.",
    ),
    "arm64 by affinity": (
        job(pod_of(8, affinity=requiring("kubernetes.io/arch", "arm64")), 2),
        NEVER + "all 15 nodes fail the node affinity kubernetes.io/arch In [arm64] (there is amd64 on 15). "
        "Would work: kubernetes.io/arch: amd64.",
    ),
    "a host that is not there": (
        pod(pod_of(1, nodeSelector={HOSTNAME: "h100-1-9"})),
        POD_NEVER
        + "all 15 nodes lack kubernetes.io/hostname=h100-1-9 (there are h100-1-0, h100-1-1, h100-1-2 "
        "and 12 more). Would work: kubernetes.io/hostname: h100-1-0, or kubernetes.io/hostname: "
        "h100-1-1.",
    ),
    "too much memory": (
        pod(of(**{GPU: 1, "memory": "2Ti", "cpu": "8"})),
        POD_NEVER
        + "of 15 nodes, 8 have at most 1000Gi of 2Ti memory, 4 have no nvidia.com/gpu and 3 carry the "
        "taint dedicated=infra:NoSchedule. Would work: at most 1000Gi memory a pod.",
    ),
    "too many cores": (
        pod(of(**{GPU: 1, "cpu": "256"})),
        POD_NEVER
        + "of 15 nodes, 8 have at most 128 of 256 cpu, 4 have no nvidia.com/gpu and 3 carry the taint "
        "dedicated=infra:NoSchedule. Would work: at most 128 cpu a pod.",
    ),
    "hugepages": (
        pod(of(**{GPU: 1, "hugepages-1Gi": "8Gi", "memory": "8Gi", "cpu": "8"})),
        POD_NEVER + "of 15 nodes, 8 have no hugepages-1Gi, 4 have no nvidia.com/gpu and 3 carry the taint "
        "dedicated=infra:NoSchedule. No similar request fits either.",
    ),
    "an RDMA resource by another name": (
        job(of(**{GPU: 8, "rdma/hca": 1}), 2),
        NEVER + "of 15 nodes, 8 have no rdma/hca, 4 have no nvidia.com/gpu and 3 carry the taint "
        "dedicated=infra:NoSchedule. The cluster's devices: rdma/hca_shared_devices_a, "
        "nvidia.com/gpu, nvidia.com/mig-1g.10gb, nvidia.com/mig-3g.40gb. Would work: "
        "rdma/hca_shared_devices_a in place of rdma/hca.",
    ),
    "GPUs of another vendor": (
        job(of(**{"amd.com/gpu": 8}), 2),
        NEVER + "of 15 nodes, 12 have no amd.com/gpu and 3 carry the taint dedicated=infra:NoSchedule. The "
        "cluster's devices: nvidia.com/gpu, nvidia.com/mig-1g.10gb, nvidia.com/mig-3g.40gb, "
        "rdma/hca_shared_devices_a. No similar request fits either.",
    ),
    "a MIG profile that no node is split into": (
        pod(of(**{"nvidia.com/mig-2g.20gb": 1})),
        (
            "policy 'mig-feasibility': one pod asks for 1 × 2g.20gb, and all of a pod's slices come from "
            "one node: the most on any node is 0 × 2g.20gb. What would work: a profile that the nodes are"
            " split into (1g.10gb, 3g.40gb)"
        ),
    ),
    "more slices than a node has": (
        pod(of(**{"nvidia.com/mig-1g.10gb": 20})),
        (
            "policy 'mig-feasibility': one pod asks for 20 × 1g.10gb, and all of a pod's slices come from"
            " one node: the most on any node is 14 × 1g.10gb. What would work: at most that many in one "
            "pod, and the rest in further pods"
        ),
    ),
    "a level that is not there": (
        job(pod_of(8), 2, annotations={**IN_HALL, REQUIRED: "cloud.provider.com/topology-rak"}),
        (
            "policy 'multi-topology': there is no level cloud.provider.com/topology-rak "
            "(metadata.annotations[kai.scheduler/topology-required-placement]). Known: hall has "
            "cloud.provider.com/topology-block, cloud.provider.com/topology-rack, kubernetes.io/hostname"
        ),
    ),
    "a topology that is not there": (
        job(pod_of(8), 2, annotations={**IN_RACK, "kai.scheduler/topology": "hal"}),
        "policy 'multi-topology': there is no topology hal in this cluster. Known: hall",
    ),
    "a part of a GPU larger than one": (
        pod(pod_of(0), annotations={"gpu-fraction": "1.5"}),
        (
            "default/Pod/train: metadata.annotations.gpu-fraction: '1.5' is no fraction of a GPU; use a "
            "number above 0 and below 1 such as 0.5 (whole GPUs are asked for as nvidia.com/gpu)"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_why_with_numbers_and_what_would_work(case: str) -> None:
    """The whole message is compared."""
    obj, message = REFUSED[case]
    response = mutate(obj, on=HALL).response
    assert not response.allowed
    assert response.message == message


def test_what_would_work_is_admitted_when_it_is_applied() -> None:
    """A product, a toleration, an amount, a number of pods, a level: as the refusals above suggest them."""
    tolerating = [{"key": "dedicated", "operator": "Equal", "value": "infra", "effect": "NoSchedule"}]
    for obj in (
        job(on("NVIDIA-H100-80GB-HBM3"), 2),
        pod(on("Tesla-T4", 1, tolerations=tolerating)),
        pod(pod_of(8)),
        pod(of(**{GPU: 1, "memory": "1000Gi", "cpu": "8"})),
        job(of(**{GPU: 8, "rdma/hca_shared_devices_a": 1}), 2),
        job(pod_of(8), 4, annotations=IN_RACK),
        job(pod_of(8), 5, annotations={**IN_HALL, REQUIRED: BLOCK}),
        job(pod_of(8), 8),
    ):
        decision = mutate(obj, on=HALL)
        assert decision.response.allowed, decision.response.message
        assert decision.plan is not None
        assert decision.plan.decision == "admitted"


def using(names: Iterable[str], **requests: str) -> list[Json]:
    """A pod of somebody else on each of these nodes."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"on-{name}", "namespace": "other"},
            "spec": {
                "nodeName": name,
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
                ],
            },
            "status": {"phase": "Running"},
        }
        for name in names
    ]


def cordoned(obj: Json) -> Json:
    """The first rack, cordoned."""
    inside = obj["metadata"]["name"].startswith("h100-1")
    return {**obj, "spec": {**obj["spec"], "unschedulable": True}} if inside else obj


def not_ready(obj: Json) -> Json:
    """All H100 nodes, out of order."""
    if not obj["metadata"]["name"].startswith("h100"):
        return obj
    return {**obj, "status": {**obj["status"], "conditions": [{"type": "Ready", "status": "False"}]}}


QUEUED: dict[str, tuple[Json, Snapshot, str]] = {
    "half of the nodes cordoned": (
        job(pod_of(8), 6),
        hall(change=cordoned),
        (
            "6 pods (48 GPUs) fit the empty cluster but not now: the cluster has room for 4 of 6 pods (32"
            " GPUs) now. Of 15 nodes, 4 are cordoned, 4 have no nvidia.com/gpu free, 3 carry the taint "
            "dedicated=infra:NoSchedule and 4 have room for a pod. Would work now: 4 pods "
            "(spec.parallelism: 4)."
        ),
    ),
    "nodes that are not ready": (
        job(pod_of(8), 2),
        hall(change=not_ready),
        (
            "2 pods (16 GPUs) fit the empty cluster but not now: the cluster has room for 0 of 2 pods "
            "now. Of 15 nodes, 8 are not ready, 4 have no nvidia.com/gpu free and 3 carry the taint "
            "dedicated=infra:NoSchedule. No similar request fits now."
        ),
    ),
    "GPUs in use": (
        pod(pod_of(8)),
        hall(*using(H100S, **{GPU: "1"})),
        (
            "1 pod (8 GPUs) fits the empty cluster but not now: the cluster has room for 0 of 1 pod now. "
            "Of 15 nodes, 12 have at most 7 of 8 nvidia.com/gpu free and 3 carry the taint "
            "dedicated=infra:NoSchedule. Would work now: at most 7 nvidia.com/gpu a pod."
        ),
    ),
    "a rack in use": (
        job(pod_of(8), 3, annotations=IN_RACK),
        hall(*using([*H100S[:2], *H100S[4:6]], **{GPU: "1"})),
        (
            "3 pods (24 GPUs) required in one rack fit the empty cluster but not now: the best rack, "
            "b1/r1, has room for 2 of 3 pods (16 GPUs) now. Of 15 nodes, 6 have at most 7 of 8 "
            "nvidia.com/gpu free, 5 are not in topology hall and 4 have room for a pod. Would work now: 2"
            " pods (spec.parallelism: 2), or required at cloud.provider.com/topology-block."
        ),
    ),
    "cores in use, of which the pod states none": (
        pod(pod_of(1)),
        hall(*using(H100S, cpu="125")),
        (
            "1 pod (1 GPU) fits the empty cluster but not now: the cluster has room for 0 of 1 pod now. "
            "Of 15 nodes, 8 have at most 3 cpu free of the 15 that policies give a pod (it states none), "
            "4 have no nvidia.com/gpu free and 3 carry the taint dedicated=infra:NoSchedule. Would work "
            "now: limits of 3 cpu a pod."
        ),
    ),
}


@pytest.mark.parametrize("case", QUEUED)
def test_a_queued_gang_is_told_what_is_in_the_way_now(case: str) -> None:
    """The whole message is compared, and never says "can never run"."""
    obj, moment, message = QUEUED[case]
    response = mutate(obj, on=moment).response
    assert response.allowed
    assert f"default/{obj['kind']}/train is queued: {message}" in response.warnings


ADVISED: dict[str, tuple[Json, str]] = {
    "a LimitRange": (
        job(of(**{GPU: 1, "cpu": "8"}), 2, namespace="small"),
        "policy 'guaranteed-qos-limits': container main has 8 cpu, and LimitRange small allows at most 4",
    ),
    "a ResourceQuota": (
        job(pod_of(8), 2, namespace="small"),
        (
            "policy 'guaranteed-qos-limits': its pods ask for 16 nvidia.com/gpu, and ResourceQuota gpus has "
            "2 of 4 left"
        ),
    ),
}


@pytest.mark.parametrize("case", ADVISED)
def test_what_others_will_refuse_is_told(case: str) -> None:
    """It is a warning, because Bayplan does not refuse it."""
    obj, warning = ADVISED[case]
    assert warning in mutate(obj, on=HALL).response.warnings
