"""Levels inside a host: the NVLink domain of some of its GPUs, and the NUMA node.

A topology ends at the host, so a request for one of these is one for the host, on nodes where one such domain
has as many GPUs as the request needs together: the whole gang, a PodSet, or a slice, whichever asks. The size
of an NVLink domain is the label `gpu.topology/nvlink-domain-size`; a node without it is one domain. That of a
NUMA node is known from its NodeResourceTopology or the label `bayplan.dev/gpus-per-numa-node`; a node of
which it is not known is none for such a request. Which GPUs of a domain are free no object tells: what is
free on a partly used node is taken to lie together, and PodSets that each ask for a domain on one node to
share it well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.match import NODE_NAME_FIELD
from planner.node import Node
from planner.numa import GPUS_LABEL, NumaNode
from planner.podgroup import GPU_RESOURCES, Bar, Constraint, PodGroup, PodSet
from planner.quantity import Resources
from planner.topology import HOSTNAME

NVLINK_DOMAIN = "gpu.topology/nvlink-domain"
NVLINK_SIZE = "gpu.topology/nvlink-domain-size"
NVLINK_WORDS = (NVLINK_DOMAIN, "nvlink-domain")
NUMA_WORDS = ("numa", "numa-node")
SMALL = "NVLink domain inside the node of fewer than "
UNALIGNED = "no NUMA node known with "
_MOST = 4096


def inside_host(level: str) -> bool:
    """Whether the level, if it is none of a topology's own, lies inside the host."""
    return level == NVLINK_DOMAIN or level in NUMA_WORDS


def needs(group: PodGroup, pod_set: PodSet, words: tuple[str, ...]) -> int:
    """The GPUs that must lie in one such domain with a pod of this PodSet; 0 where nothing asks for one."""

    def asks(constraint: Constraint) -> bool:
        return constraint.required in words

    own, each = pod_set.constraint, pod_set.shape.gpus
    sliced = own if own.slice_level else group.constraint
    slice_size = sliced.slice_size if sliced.slice_level in words else 0
    return max(
        group.gpus if asks(group.constraint) else 0,
        each * pod_set.count if asks(own) else 0,
        each * slice_size,
    )


def nvlink_bar(group: PodGroup, pod_set: PodSet, resolved: Mapping[str, str]) -> tuple[Bar, ...]:
    """The nodes whose NVLink domains are too small; `resolved`: the level that each word means here."""
    words = tuple(word for word in NVLINK_WORDS if resolved.get(word) == HOSTNAME)
    gpus = min(needs(group, pod_set, words), _MOST) if words else 0
    if gpus < 2:
        return ()
    smaller = frozenset(str(size) for size in range(1, gpus))
    return (Bar(NVLINK_SIZE, smaller, f"{SMALL}{gpus} GPUs", now=False),)


def in_numa_nodes(group: PodGroup, nodes: Mapping[str, Node], numa: Mapping[str, NumaNode]) -> PodGroup:
    """The gang, kept to nodes whose NUMA nodes are large enough where it asks for one."""
    needed = {one.name: needs(group, one, NUMA_WORDS) for one in group.pod_sets}
    if not any(needed.values()):
        return group
    sizes = {name: numa_size(node, numa.get(name)) for name, node in nodes.items()}

    def kept(pod_set: PodSet) -> PodSet:
        gpus = needed[pod_set.name]
        if not gpus:
            return pod_set
        names = frozenset(name for name, size in sizes.items() if size >= gpus)
        bar = Bar(NODE_NAME_FIELD, names, f"{UNALIGNED}{gpus} GPUs", inside=True, now=False)
        shape = pod_set.shape
        return replace(pod_set, shape=replace(shape, barred=(*shape.barred, bar)))

    return replace(group, pod_sets=tuple(map(kept, group.pod_sets)))


def numa_size(node: Node, published: NumaNode | None) -> int:
    """The GPUs of the node's largest NUMA node, 0 where that is not known."""
    if published is not None and published.zones:
        return max(_gpus(zone.allocatable) for zone in published.zones)
    said = node.labels.get(GPUS_LABEL, "")
    return min(int(said), _gpus(node.allocatable)) if said.isdecimal() and len(said) < 5 else 0


def nvlink_size(node: Node) -> int:
    """The GPUs of one NVLink domain inside the node."""
    said = node.labels.get(NVLINK_SIZE, "")
    gpus = _gpus(node.allocatable)
    return min(int(said), gpus) if said.isdecimal() and 0 < len(said) < 5 else gpus


def _gpus(amounts: Resources) -> int:
    return max((amounts.get(name, 0) for name in GPU_RESOURCES), default=0)
