"""Levels inside a host: the NVLink domain of some of its GPUs, and the NUMA node.

A topology ends at the host, so a request for one of these is one for the host, on nodes where one such domain
has as many GPUs as the request needs together: the whole gang, a PodSet, or a slice, whichever asks. The size
of an NVLink domain is the label `gpu.topology/nvlink-domain-size`; a node without it is one domain. That of a
NUMA node is known from its NodeResourceTopology or the label `bayplan.dev/gpus-per-numa-node`; a node of
which it is not known is none for such a request. Pods that must lie in one NVLink domain are a *bunch*, and
the bunches on a node are packed into its domains. Which GPUs of a domain are free no object tells: what is
free on a partly used node is taken to lie together.

Also here: which level a word of the request means in a topology, and every level and topology that a request
names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.model.labels import NODE_NAME_FIELD
from planner.model.node import Node
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.resolved import NodeExclusion, ResolvedPodGroup, ResolvedPodSet
from planner.model.topology import HOSTNAME, NVLINK_KEYS, Topology
from planner.node.nvlink import NVLINK_SIZE, SMALL, UNALIGNED, numa_size
from planner.node.topology_manager import NumaNode

NVLINK_DOMAIN = "gpu.topology/nvlink-domain"


NVLINK_WORDS = (NVLINK_DOMAIN, "nvlink-domain")


NUMA_WORDS = ("numa", "numa-node")


_MOST = 4096


def inside_host(level: str) -> bool:
    """Whether the level, if it is none of a topology's own, lies inside the host."""
    return level == NVLINK_DOMAIN or level in NUMA_WORDS


def needs(group: PodGroup, pod_set: PodSet, words: tuple[str, ...]) -> int:
    """The GPUs that must lie in one such domain with a pod of this PodSet; 0 where nothing asks for one."""

    constraint, gang = pod_set.constraint, group.constraint
    sliced = constraint if constraint.slice_level else gang
    together = (gang.required in words, constraint.required in words, sliced.slice_level in words)
    if not any(together):
        return 0
    gpus = pod_set.shape.gpus
    return max(
        group.gpus if together[0] else 0,
        gpus * pod_set.count if together[1] else 0,
        gpus * sliced.slice_size if together[2] else 0,
    )


def nvlink_bar(group: PodGroup, pod_set: PodSet, resolved: Mapping[str, str]) -> tuple[NodeExclusion, ...]:
    """The nodes whose NVLink domains are too small; `resolved`: the level that each word means here."""
    words = tuple(word for word in NVLINK_WORDS if resolved.get(word) == HOSTNAME)
    gpus = min(needs(group, pod_set, words), _MOST) if words else 0
    if gpus < 2:
        return ()
    smaller = frozenset(str(size) for size in range(1, gpus))
    return (NodeExclusion(NVLINK_SIZE, smaller, f"{SMALL}{gpus} GPUs", now=False),)


def nvlink_group_of(group: PodGroup, pod_set: PodSet, resolved: Mapping[str, str]) -> int:
    """How many of the PodSet's pods must lie in one NVLink domain inside the host; 0 where none must.

    A gang that is required in one as a whole is one bunch of all its PodSets, for which any node that has a
    domain so large and as many free GPUs will do.
    """
    words = tuple(word for word in NVLINK_WORDS if resolved.get(word) == HOSTNAME)
    constraint = pod_set.constraint
    sliced = constraint if constraint.slice_level else group.constraint
    if constraint.required in words:
        return pod_set.count
    return sliced.slice_size if sliced.slice_level in words else 0


def with_numa_nodes(
    group: ResolvedPodGroup, nodes: Mapping[str, Node], numa: Mapping[str, NumaNode]
) -> ResolvedPodGroup:
    """The gang, kept to nodes whose NUMA nodes are large enough where it asks for one."""
    needed = {pod_set.name: needs(group, pod_set, NUMA_WORDS) for pod_set in group.pod_sets}
    if not any(needed.values()):
        return group
    sizes = {name: numa_size(node, numa.get(name)) for name, node in nodes.items()}

    def restrict(pod_set: ResolvedPodSet) -> ResolvedPodSet:
        gpus = needed[pod_set.name]
        if not gpus:
            return pod_set
        names = frozenset(name for name, size in sizes.items() if size >= gpus)
        bar = NodeExclusion(NODE_NAME_FIELD, names, f"{UNALIGNED}{gpus} GPUs", inside=True, now=False)
        shape = pod_set.shape
        return replace(pod_set, shape=replace(shape, exclusions=(*shape.exclusions, bar)))

    return replace(group, pod_sets=tuple(map(restrict, group.pod_sets)))


_HOST_WORDS = ("gpu", "node", "host", "hostname")


def resolve(topology: Topology, level: str) -> str:
    """The level's label key in this topology for a key, an alias or a short word, "" where there is none.

    Short words: "gpu", "node" and "host" are the hostname; "nvlink-domain" the multi-node NVLink level, or
    the host where there is none; levels inside the host (planner.inside) are the hostname too; any other
    ("rack", "zone", …) the one level whose key ends in it.
    """
    if level in topology.levels:
        return level
    if level in topology.aliases:
        return topology.aliases[level]
    if inside_host(level):
        return HOSTNAME
    if "/" in level:
        return ""
    if level in _HOST_WORDS:
        return HOSTNAME
    if level == "nvlink-domain":
        return next((key for key in topology.levels if key.endswith(NVLINK_KEYS)), HOSTNAME)
    ending = [k for k in topology.levels if k.endswith(level) and not k[: -len(level)][-1:].isalnum()]
    return ending[0] if len(ending) == 1 else ""


def levels_asked(group: PodGroup) -> list[tuple[str, str]]:
    """Every level that the request names, as (where it stood, level)."""
    levels = [(field, value) for field, key, value in group.origins if key != "topology" and value]
    origin_values = {value for _, value in levels}
    for place, constraint in constraints(group):
        levels += [
            (f"{place}{name}", level)
            for name, level in (
                ("the required level", constraint.required),
                ("the preferred level", constraint.preferred),
                ("the slice level", constraint.slice_level),
            )
            if level and level not in origin_values
        ]
    return list(dict.fromkeys(levels))


def topologies_asked(group: PodGroup) -> list[tuple[str, str]]:
    """Every topology that the request names, as (where it stood, name)."""
    topologies = [(field, value) for field, key, value in group.origins if key == "topology" and value]
    origin_values = {value for _, value in topologies}
    topologies += [
        (f"{place}the topology", c.topology)
        for place, c in constraints(group)
        if c.topology and c.topology not in origin_values
    ]
    return list(dict.fromkeys(topologies))


def constraints(group: PodGroup) -> Iterable[tuple[str, Constraint]]:
    """The gang's constraint and each PodSet's, with a word that says whose it is."""
    yield "", group.constraint
    for pod_set in group.pod_sets:
        yield f"{pod_set.name}: ", pod_set.constraint
    for level, names in group.within:
        yield f"{' and '.join(names)}: ", Constraint(required=level)
