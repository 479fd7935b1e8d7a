"""Levels inside a host: the NVLink domain of some of its GPUs, and the NUMA node.

A topology ends at the host, so a request for one of these is one for the host, on nodes where one such domain
has as many GPUs as the request needs together: the whole gang, a PodSet, or a slice, whichever asks. The size
of an NVLink domain is the label `gpu.topology/nvlink-domain-size`; a node without it is one domain. That of a
NUMA node is known from its NodeResourceTopology or the label `bayplan.dev/gpus-per-numa-node`; a node of
which it is not known is none for such a request. Pods that must lie in one NVLink domain are a *bunch*, and
the bunches on a node are packed into its domains. Which GPUs of a domain are free no object tells: what is
free on a partly used node is taken to lie together.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.node import Node
from planner.model.quantity import Resources
from planner.model.resolved import ResolvedShape
from planner.model.resources import CLAIMED_GPU, GPU_RESOURCES
from planner.node.gpu_sharing import packs
from planner.node.topology_manager import GPUS_LABEL, NumaNode

NVLINK_SIZE = "gpu.topology/nvlink-domain-size"


SMALL = "NVLink domain inside the node of fewer than "


UNALIGNED = "no NUMA node known with "


def holds_bunches(size: int, free: Resources, bunches: Iterable[tuple[int, int, int]]) -> bool:
    """Whether the NVLink domains of `size` GPUs have room for these numbers of pods, each with the pods of a
    bunch and a pod's GPUs, on a node with these free amounts."""
    parts: list[tuple[int, int]] = []
    for count, bunch, gpus in bunches:
        parts += [(bunch * gpus, 1)] * (count // bunch)
        if rest := count % bunch:
            parts.append((rest * gpus, 1))
    parts = sorted((part for part in parts if part[0]), reverse=True)
    whole, rest = divmod(max(0, _gpus(free)), size)
    return packs((rest,) if rest else (), whole, size, tuple(parts))


def most_bunches(size: int, free: Resources, shape: ResolvedShape, limit: int) -> int:
    """The most pods in such bunches that a node's NVLink domains have room for, at most `limit`."""
    each = shape.nvlink_group * shape.gpus
    if not each:
        return limit
    whole, rest = divmod(max(0, _gpus(free)), size)
    return min(limit, (whole * (size // each) + rest // each) * shape.nvlink_group)


def numa_size(node: Node, published: NumaNode | None) -> int:
    """The GPUs of the node's largest NUMA node, 0 where that is not known."""
    if published is not None and published.zones:
        return max(_gpus(zone.allocatable) for zone in published.zones)
    said = node.labels.get(GPUS_LABEL, "")
    return min(int(said), _gpus(node.allocatable)) if said.isdecimal() and len(said) < 5 else 0


def nvlink_size(node: Node) -> int:
    """The GPUs of one NVLink domain inside the node."""
    gpus = _gpus(node.allocatable)
    return min(stated_size(node) or gpus, gpus)


def stated_size(node: Node) -> int:
    """The size of the node's NVLink domains by its label; 0 where it is one domain."""
    said = node.labels.get(NVLINK_SIZE, "")
    return int(said) if said.isdecimal() and said.isascii() and 0 < len(said) < 5 else 0


def _gpus(amounts: Resources) -> int:
    return max(amounts.get(name, 0) for name in (*GPU_RESOURCES, CLAIMED_GPU))
