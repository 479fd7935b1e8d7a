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

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.match import NODE_NAME_FIELD
from planner.node import Node
from planner.numa import GPUS_LABEL, NumaNode
from planner.podgroup import CLAIMED_GPU, GPU_RESOURCES, Bar, Constraint, PodGroup, PodSet, PodShape
from planner.quantity import Resources
from planner.sharing import packs
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


def bunch_of(group: PodGroup, pod_set: PodSet, resolved: Mapping[str, str]) -> int:
    """How many of the PodSet's pods must lie in one NVLink domain inside the host; 0 where none must.

    A gang that is required in one as a whole is one bunch of all its PodSets, for which any node that has a
    domain so large and as many free GPUs will do.
    """
    words = tuple(word for word in NVLINK_WORDS if resolved.get(word) == HOSTNAME)
    own = pod_set.constraint
    sliced = own if own.slice_level else group.constraint
    if own.required in words:
        return pod_set.count
    return sliced.slice_size if sliced.slice_level in words else 0


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


def most_bunches(size: int, free: Resources, shape: PodShape, limit: int) -> int:
    """The most pods in such bunches that a node's NVLink domains have room for, at most `limit`."""
    each = shape.bunch * shape.gpus
    if not each:
        return limit
    whole, rest = divmod(max(0, _gpus(free)), size)
    return min(limit, (whole * (size // each) + rest // each) * shape.bunch)


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
    gpus = _gpus(node.allocatable)
    return min(stated_size(node) or gpus, gpus)


def stated_size(node: Node) -> int:
    """The size of the node's NVLink domains by its label; 0 where it is one domain."""
    said = node.labels.get(NVLINK_SIZE, "")
    return int(said) if said.isdecimal() and said.isascii() and 0 < len(said) < 5 else 0


def _gpus(amounts: Resources) -> int:
    return max(amounts.get(name, 0) for name in (*GPU_RESOURCES, CLAIMED_GPU))
