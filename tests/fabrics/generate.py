"""Write the example clusters: `python tests/fabrics/generate.py` (from the checkout's root).

The shapes are those of real fabrics: one DGX H100 SuperPOD unit of 32 nodes; eight GB200 NVL72 racks as an
InfiniBand discovery saw them, with 18, 18, 17, 16, 15, 14, 11 and 10 visible trays and rail 3 missing in part
of rack 1; a pool of MIG boards; two zones with two racks each. Objects look as `kubectl get -o yaml` prints.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
CLUSTERS = Path(__file__).parents[2] / "manifests" / "examples" / "clusters"

BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
ZONE = "topology.kubernetes.io/zone"
CLIQUE = "nvidia.com/gpu.clique"
HOST = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
WHOLE = {GPU: "8", "cpu": "64", "memory": "512Gi"}
"""What a pod of a training job takes of a DGX H100: all its GPUs."""
VISIBLE_TRAYS = (18, 18, 17, 16, 15, 14, 11, 10)
RAIL_3_MISSING = range(10, 19)
"""Trays of rack 1 that show three adapters."""

H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.family": "hopper", "nvidia.com/gpu.machine": "DGXH100", "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0",
}  # fmt: skip
A100 = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960",
    "nvidia.com/gpu.family": "ampere", "nvidia.com/gpu.machine": "DGXA100", "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0",
}  # fmt: skip
GB200 = {
    "nvidia.com/gpu.product": "NVIDIA-GB200", "nvidia.com/gpu.memory": "189471",
    "nvidia.com/gpu.family": "blackwell", "nvidia.com/gpu.machine": "GB200-NVL", "nvidia.com/gpu.count": "4",
    "nvidia.com/gpu.compute.major": "10", "nvidia.com/gpu.compute.minor": "0",
}  # fmt: skip
COMMON = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.replicas": "1"}
DGX_H100 = {"cpu": "220", "ephemeral-storage": "1700Gi", "memory": "1980Gi", "pods": "110"}
DGX_A100 = {"cpu": "252", "ephemeral-storage": "1700Gi", "memory": "980Gi", "pods": "110"}
GB200_TRAY = {"cpu": "140", "ephemeral-storage": "850Gi", "memory": "860Gi", "pods": "110"}


def node(
    name: str,
    labels: Mapping[str, str],
    allocatable: Mapping[str, str],
    *,
    taints: Iterable[Json] = (),
    cordoned: bool = False,
    arch: str = "amd64",
) -> Json:
    """A Node, ready, with its labels sorted as the API server keeps them."""
    every = {**labels, **COMMON, HOST: name, "kubernetes.io/arch": arch, "kubernetes.io/os": "linux"}
    spec: Json = {}
    listed = list(taints)
    if cordoned:
        spec["unschedulable"] = True
        listed.append({"effect": "NoSchedule", "key": "node.kubernetes.io/unschedulable"})
    if listed:
        spec["taints"] = listed
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(sorted(every.items()))},
        "spec": spec,
        "status": {
            "allocatable": dict(sorted(allocatable.items())),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {"architecture": arch, "kubeletVersion": "v1.33.2"},
        },
    }


def bound_pod(name: str, on: str, resources: Mapping[str, str], namespace: str = "research") -> Json:
    """A running pod on a node; 8 cpus and 64Gi where `resources` says nothing else."""
    amounts = {"cpu": "8", "memory": "64Gi", **resources}
    container = {
        "name": "main",
        "image": "nvcr.io/nvidia/pytorch:25.06-py3",
        "resources": {"limits": amounts, "requests": amounts},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], "nodeName": on, "restartPolicy": "Never"},
        "status": {"phase": "Running"},
    }


def topology(name: str, *levels: str) -> Json:
    """A KAI Topology, coarse to fine, ending at the host."""
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": level} for level in (*levels, HOST)]},
    }


def superpod() -> list[Json]:
    """Four racks of eight DGX H100. Racks 1 and 2 are half used, rack 3 is untouched, rack 4 is odd."""
    taint = {"key": "example.com/burn-in", "value": "true", "effect": "NoSchedule"}
    objects = [topology("superpod", BLOCK, RACK)]
    for number in range(1, 33):
        name, rack = f"dgx-{number:02}", (number - 1) // 8 + 1
        labels = {
            **H100, BLOCK: "su-1", RACK: f"rack-{rack}", ZONE: "eu-north-1a",
            "nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "mixed",
            "gpu.topology/interconnect": "nvswitch", "gpu.topology/nvlink-domain-size": "8",
        }  # fmt: skip
        offers = {**DGX_H100, GPU: "8", "rdma/ib": "8"}
        objects.append(
            node(name, labels, offers, taints=[taint] if number == 31 else (), cordoned=number == 32)
        )
    whole = (1, 2, 3, 4, 9, 10, 11, 12)
    objects += [
        bound_pod(f"pretrain-a-{index}", f"dgx-{n:02}", {**WHOLE, "rdma/ib": "8"})
        for index, n in enumerate(whole)
    ]
    part = {25: "6", 26: "6", 27: "5", 28: "4", 29: "1", 30: "1"}
    objects += [bound_pod(f"notebook-{n}", f"dgx-{n:02}", {GPU: gpus}) for n, gpus in part.items()]
    return objects


def nvl72() -> list[Json]:
    """Eight NVL72 racks with the trays that a discovery saw, all free."""
    objects = [topology("nvl72", ZONE, RACK, CLIQUE)]
    for rack, trays in enumerate(VISIBLE_TRAYS, start=1):
        cluster = uuid.UUID(hashlib.sha256(f"nvl72 rack {rack}".encode()).hexdigest()[:32])
        labels = {**GB200, ZONE: "us-east-04a", RACK: f"nvl-{rack}", CLIQUE: f"{cluster}.1"}
        for tray in range(1, trays + 1):
            adapters = "3" if rack == 1 and tray in RAIL_3_MISSING else "4"
            offers = {**GB200_TRAY, GPU: "4", "rdma/ib": adapters}
            objects.append(node(f"nvl-{rack}-tray-{tray:02}", labels, offers, arch="arm64"))
    return objects


def nvl72_in_use() -> list[Json]:
    """Pods on two trays of each rack that shows 17 trays or more, so that 16 trays at most are free."""
    trays = [f"nvl-{rack}-tray-{tray:02}" for rack in (1, 2) for tray in (1, 2)] + ["nvl-3-tray-01"]
    return [bound_pod(f"eval-{n}", on, {GPU: "4", "rdma/ib": "3"}) for n, on in enumerate(trays)]


def _mig(strategy: str, config: str, state: str = "success") -> dict[str, str]:
    return {
        "nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": strategy,
        "nvidia.com/mig.config": config, "nvidia.com/mig.config.state": state,
    }  # fmt: skip


def mig_pool() -> list[Json]:
    """A100-40 and H100-80 boards: mixed, single, not yet split, and two nodes of whole GPUs."""
    sevenths = {GPU: "0", "nvidia.com/mig-1g.5gb": "56"}
    balanced = {GPU: "0", "nvidia.com/mig-1g.10gb": "16", "nvidia.com/mig-2g.20gb": "8",
                "nvidia.com/mig-3g.40gb": "8"}  # fmt: skip
    halves = {GPU: "0", "nvidia.com/mig-3g.40gb": "16"}
    single = {
        **A100, **_mig("single", "all-2g.10gb"), "nvidia.com/gpu.count": "24",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-2g.10gb", "nvidia.com/gpu.memory": "9856",
    }  # fmt: skip
    rows: list[tuple[str, str, Mapping[str, str], Mapping[str, str], Mapping[str, str]]] = [
        ("a100-mig-1", "mig-1", {**A100, **_mig("mixed", "all-1g.5gb")}, DGX_A100, sevenths),
        ("a100-mig-2", "mig-1", {**A100, **_mig("mixed", "all-1g.5gb")}, DGX_A100, sevenths),
        ("a100-single-1", "mig-1", single, DGX_A100, {GPU: "24"}),
        ("h100-mig-1", "mig-2", {**H100, **_mig("mixed", "all-balanced")}, DGX_H100, balanced),
        ("h100-mig-2", "mig-2", {**H100, **_mig("mixed", "all-balanced")}, DGX_H100, balanced),
        ("h100-mig-3", "mig-2", {**H100, **_mig("mixed", "all-3g.40gb", "pending")}, DGX_H100, halves),
        ("h100-whole-1", "mig-2", {**H100, **_mig("mixed", "all-disabled")}, DGX_H100, {GPU: "8"}),
        ("h100-whole-2", "mig-2", {**H100, **_mig("mixed", "all-disabled")}, DGX_H100, {GPU: "8"}),
    ]
    objects = [topology("mig-pool", ZONE, RACK)]
    for name, rack, labels, machine, devices in rows:
        place = {ZONE: "eu-north-1b", RACK: rack}
        objects.append(node(name, {**labels, **place}, {**machine, **devices}))
    objects += [
        bound_pod(f"embedder-{n}", "h100-mig-1", {"nvidia.com/mig-1g.10gb": "1"}, "inference")
        for n in range(6)
    ]
    return objects


def two_zones() -> list[Json]:
    """Two zones of two racks of four DGX H100; both zones call their racks rack-1 and rack-2."""
    objects = [topology("two-zones", ZONE, RACK)]
    for zone in ("eu-west-1a", "eu-west-1b"):
        for rack in (1, 2):
            for number in range(1, 5):
                name = f"h100-{zone[-2:]}-r{rack}-n{number}"
                offers = {**DGX_H100, GPU: "8", "rdma/ib": "8"}
                objects.append(node(name, {**H100, ZONE: zone, RACK: f"rack-{rack}"}, offers))
    busy = [f"h100-1a-r{rack}-n{n}" for rack in (1, 2) for n in (1, 2)]
    objects += [bound_pod(f"sweep-{n}", on, WHOLE) for n, on in enumerate(busy)]
    return objects


FILES = {
    "superpod-32.yaml": superpod,
    "nvl72-8racks.yaml": nvl72,
    "nvl72-in-use.yaml": nvl72_in_use,
    "mig-pool.yaml": mig_pool,
    "two-zones.yaml": two_zones,
}


class _Plain(yaml.SafeDumper):
    """Without anchors, as kubectl prints."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def text_of(objects: list[Json]) -> str:
    """A List as YAML."""
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    return yaml.dump(listed, Dumper=_Plain, sort_keys=False, default_flow_style=False)


def main() -> None:
    """Write every file."""
    CLUSTERS.mkdir(parents=True, exist_ok=True)
    for name, build in FILES.items():
        (CLUSTERS / name).write_text(text_of(build()))


if __name__ == "__main__":
    main()
