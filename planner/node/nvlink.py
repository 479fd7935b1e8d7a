"""Levels inside a host: the NVLink domain of some of its GPUs, and the NUMA node.

The label `gpu.topology/nvlink-domain-size` states the number of GPUs in an NVLink domain; a node without the
label is one domain. The number of GPUs in a NUMA node comes from the NodeResourceTopology or from the label
`bayplan.dev/gpus-per-numa-node`. No object states which GPUs of a domain are free, so the free GPUs of a
partly used node are assumed to fill whole domains. `planner.request.levels` maps requests for these levels to
the host.

Pods that must be in one NVLink domain are an NVLink group. Example: a node of 8 GPUs in domains of 4, groups
of 3 pods of one GPU each. Each domain holds one group and has one GPU left, so the node holds 6 such pods,
not 8.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.node import Node
from planner.model.resolved import ResolvedShape
from planner.model.resources import WHOLE_GPUS, Resources
from planner.node.gpu_sharing import packs
from planner.node.topology_manager import GPUS_LABEL, NumaNode

NVLINK_SIZE = "gpu.topology/nvlink-domain-size"
"""The node label with the number of GPUs in one NVLink domain inside the node."""


SMALL = "NVLink domain inside the node of fewer than "
"""Prefix of the obstacle on nodes whose NVLink domains are too small."""


UNALIGNED = "no NUMA node known with "
"""Prefix of the obstacle on nodes whose NUMA nodes are too small or not known."""


def groups_fit(size: int, free: Resources, groups: Iterable[tuple[int, int, int]]) -> bool:
    """Reports whether NVLink groups fit on a node with these free amounts and NVLink domains of `size` GPUs.

    Each of `groups` describes the pods of one class: (number of pods, pods per group, GPUs per pod). The last
    NVLink group of a class may have fewer pods.
    """
    parts: list[tuple[int, int]] = []
    for count, group_size, gpus in groups:
        parts += [(group_size * gpus, 1)] * (count // group_size)
        if rest := count % group_size:
            parts.append((rest * gpus, 1))
    parts = sorted((part for part in parts if part[0]), reverse=True)
    whole, rest = divmod(max(0, _gpus(free)), size)
    return packs((rest,) if rest else (), whole, size, tuple(parts))


def max_pods_in_groups(size: int, free: Resources, shape: ResolvedShape, limit: int) -> int:
    """Returns how many pods of this shape fit, in whole NVLink groups, on a node with these free amounts and
    NVLink domains of `size` GPUs; at most `limit`.
    """
    group_gpus = shape.nvlink_group * shape.gpus
    if not group_gpus:
        return limit
    whole, rest = divmod(max(0, _gpus(free)), size)
    return min(limit, (whole * (size // group_gpus) + rest // group_gpus) * shape.nvlink_group)


def numa_size(node: Node, published: NumaNode | None) -> int:
    """Returns the number of GPUs in the node's largest NUMA node, 0 if not known."""
    if published is not None and published.zones:
        return max(_gpus(zone.allocatable) for zone in published.zones)
    label = node.labels.get(GPUS_LABEL, "")
    return min(int(label), _gpus(node.allocatable)) if label.isdecimal() and len(label) < 5 else 0


def nvlink_size(node: Node) -> int:
    """Returns the number of GPUs in one NVLink domain inside the node."""
    gpus = _gpus(node.allocatable)
    return min(stated_size(node) or gpus, gpus)


def stated_size(node: Node) -> int:
    """Returns the number of GPUs in an NVLink domain by the node's label, 0 without a valid label."""
    label = node.labels.get(NVLINK_SIZE, "")
    return int(label) if label.isdecimal() and label.isascii() and 0 < len(label) < 5 else 0


def _gpus(amounts: Resources) -> int:
    return max(amounts.get(name, 0) for name in WHOLE_GPUS)
