"""Computes a GPU's share of its node: the cpu and memory per GPU for a container that states none.

The share is that of an empty node, less a reserve, so that as many one-GPU pods fit as a node has GPUs,
whatever runs there now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.model.node import Node
from planner.model.resources import GPU, GPU_RESOURCES, PRODUCT_LABEL
from planner.node.node_groups import RESERVE_CPU, RESERVE_MEMORY, claimable


def gpu_shares(nodes: Iterable[Node]) -> list[dict[str, object]]:
    """Returns, for each product and GPU resource: GPUs per node, and per GPU whole cores and bytes of memory.

    If nodes of one product differ, the smallest values count, so that the share fits on each node. The number
    of GPUs that a node offers only by device claims comes from a label of GPU feature discovery.
    """
    shares: dict[tuple[str, str], tuple[int, int, int]] = {}
    for node in nodes:
        for resource in GPU_RESOURCES:
            gpus = node.allocatable.get(resource, 0) or (claimable(node) if resource == GPU else 0)
            if gpus > 0:
                cpu = max(0, node.allocatable.get("cpu", 0) - RESERVE_CPU) // (1000 * gpus)
                memory = max(0, node.allocatable.get("memory", 0) - RESERVE_MEMORY) // gpus
                key = (node.labels.get(PRODUCT_LABEL, ""), resource)
                smallest = shares.get(key, (gpus, cpu, memory))
                shares[key] = (min(gpus, smallest[0]), min(cpu, smallest[1]), min(memory, smallest[2]))
    return _listed(shares)


def _listed(shares: Mapping[tuple[str, str], tuple[int, int, int]]) -> list[dict[str, object]]:
    return [
        {"product": product, "resource": resource, "gpus": gpus, "cpu": cpu, "memory": memory}
        for (product, resource), (gpus, cpu, memory) in sorted(shares.items())
    ]
