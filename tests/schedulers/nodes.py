"""The nodes of the runs: two blocks of two racks of four hosts, and their topology."""

from __future__ import annotations

from tests.e2e.api import Json

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
HOSTNAME = "kubernetes.io/hostname"
LEVELS = (ZONE, BLOCK, RACK, HOSTNAME)
TOPOLOGY = "cluster-topology"
GPU = "nvidia.com/gpu"
GPUS = 8
"""Of a host."""
POOL, SHARED_POOL = "placed", "counted"
"""With Kueue: the pool whose nodes it assigns itself, and the one in which it counts quota alone."""


def topology(name: str = TOPOLOGY) -> Json:
    """KAI's Topology of these nodes."""
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": level} for level in LEVELS]},
    }


def hosts(racks: int, size: int, *, pools: bool = False) -> list[Json]:
    """Racks r1 …, two in a block, of hosts r1-n1 …; with `pools` the first half of the racks is Kueue's."""
    return [
        _host(f"r{rack}-n{host}", rack, pools and (POOL if rack <= racks // 2 else SHARED_POOL))
        for rack in range(1, racks + 1)
        for host in range(1, size + 1)
    ]


def _host(name: str, rack: int, pool: str | bool) -> Json:
    labels = {
        REGION: "eu-west",
        ZONE: "eu-west-1a",
        BLOCK: f"block-{(rack + 1) // 2}",
        RACK: f"r{rack}",
        HOSTNAME: name,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": str(GPUS),
        "nvidia.com/nvswitch.present": "true",
        "nvidia.com/nvlink.version": "4",
        "gpu.topology/nvlink-domain-size": str(GPUS),
        "gpu.topology/interconnect": "nvswitch",
    }
    if pool:
        labels["pool"] = str(pool)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}
    amounts = {"cpu": "128", "memory": "2Ti", "pods": "110", GPU: str(GPUS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }
