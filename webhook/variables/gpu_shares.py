"""A GPU's share of its node: what a container gets per GPU if it states no cpu and memory.

Shares are those of empty nodes, so that as many pods fit as a node has GPUs, whatever runs there now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.model.node import Node
from planner.model.resources import GPU, GPU_RESOURCES, PRODUCT_LABEL
from planner.node.node_groups import RESERVE_CPU, RESERVE_MEMORY, claimable


def gpu_shares(nodes: Iterable[Node]) -> list[dict[str, object]]:
    """Returns for each product and GPU resource: GPUs per node, and whole cores and bytes per GPU.

    If nodes of one product differ, the smallest share counts, so that it fits on each of them. GPUs that a
    node offers only by device claims are known from the label of GPU feature discovery.
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
