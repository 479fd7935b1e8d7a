"""Maps the level names of a request to level keys, and handles levels inside a host (NVLink domain, NUMA
node).

The finest level of a topology is the host. A request for a level inside the host is planned as a request for
the host, restricted to nodes on which one such domain has enough GPUs for the pods that must be together: the
whole gang, a PodSet or a slice.

- NVLink domain: its number of GPUs is the label `gpu.topology/nvlink-domain-size`; a node without the label
  is one domain. Pods that must share a domain form an NVLink group, and the groups on a node are packed into
  its domains.
- NUMA node: its size comes from the NodeResourceTopology or the label `bayplan.dev/gpus-per-numa-node`. Nodes
  of unknown size are excluded.

No object says which GPUs of a domain are free. The plan assumes that the free GPUs of a partly used node are
in one domain.
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
"""The names by which requests state an NVLink domain as level. The second can also mean a level of several
hosts.
"""


NUMA_WORDS = ("numa", "numa-node")
"""The names by which requests state a NUMA node as level."""


_MAX_GPUS = 4096
"""Maximum number of GPUs in the exclusion of small NVLink domains, which lists every smaller size as a label
value. No host has as many GPUs.
"""


def inside_host(level: str) -> bool:
    """Reports whether the level lies inside the host, so that it is not a level of a topology."""
    return level == NVLINK_DOMAIN or level in NUMA_WORDS


def needs(group: PodGroup, pod_set: PodSet, words: tuple[str, ...]) -> int:
    """Returns how many GPUs one domain inside a host must have for all pods that must share it with a pod of
    this PodSet; 0 if no constraint names such a level.

    `words`: the names by which requests state that level.
    """

    constraint, gang = pod_set.constraint, group.constraint
    sliced = constraint if constraint.slice_level else gang
    applies = (gang.required in words, constraint.required in words, sliced.slice_level in words)
    if not any(applies):
        return 0
    gpus = pod_set.shape.gpus
    return max(
        group.gpus if applies[0] else 0,
        gpus * pod_set.count if applies[1] else 0,
        gpus * sliced.slice_size if applies[2] else 0,
    )


def nvlink_exclusions(
    group: PodGroup, pod_set: PodSet, resolved: Mapping[str, str]
) -> tuple[NodeExclusion, ...]:
    """Returns the exclusion of nodes whose NVLink domains are too small for the PodSet; () if it needs none.

    `resolved`: maps each of `NVLINK_WORDS` to its level key in the topology.
    """
    words = tuple(word for word in NVLINK_WORDS if resolved.get(word) == HOSTNAME)
    gpus = min(needs(group, pod_set, words), _MAX_GPUS) if words else 0
    if gpus < 2:  # a single GPU fits in a domain of every node
        return ()
    smaller = frozenset(str(size) for size in range(1, gpus))
    return (NodeExclusion(NVLINK_SIZE, smaller, f"{SMALL}{gpus} GPUs", passing=False),)


def nvlink_group_of(group: PodGroup, pod_set: PodSet, resolved: Mapping[str, str]) -> int:
    """Returns how many pods of the PodSet must share one NVLink domain inside the host; 0 if there is no such
    constraint.

    The result is also 0 if the whole gang must share one domain: the gang is then the only group, so it fits
    on any node with domains of that size and enough free GPUs.
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
    """Returns the gang; PodSets with pods that must share a NUMA node are restricted to nodes whose NUMA
    nodes have enough GPUs for these pods.
    """
    needed = {pod_set.name: needs(group, pod_set, NUMA_WORDS) for pod_set in group.pod_sets}
    if not any(needed.values()):
        return group
    sizes = {name: numa_size(node, numa.get(name)) for name, node in nodes.items()}

    def restrict(pod_set: ResolvedPodSet) -> ResolvedPodSet:
        gpus = needed[pod_set.name]
        if not gpus:
            return pod_set
        names = frozenset(name for name, size in sizes.items() if size >= gpus)
        exclusion = NodeExclusion(
            NODE_NAME_FIELD, names, f"{UNALIGNED}{gpus} GPUs", inside=True, passing=False
        )
        shape = pod_set.shape
        return replace(pod_set, shape=replace(shape, exclusions=(*shape.exclusions, exclusion)))

    return replace(group, pod_sets=tuple(map(restrict, group.pod_sets)))


_HOST_WORDS = ("gpu", "node", "host", "hostname")
"""The names by which requests state the host as level."""


def level_key(topology: Topology, level: str) -> str:
    """Returns the label key of a level, given by key, alias or short word; "" if the topology has no such
    level.

    Short words: "gpu", "node" and "host" mean the hostname label. "nvlink-domain" means the multi-node NVLink
    level, or the hostname if the topology has none. Levels inside the host mean the hostname. Any other word
    ("rack", "zone", …) means the level whose key ends with the word, if there is exactly one.
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
    # Whole words only: "block" means "…/gce-topology-block", not "…/gce-topology-subblock".
    ending = [k for k in topology.levels if k.endswith(level) and not k[: -len(level)][-1:].isalnum()]
    return ending[0] if len(ending) == 1 else ""


def levels_asked(group: PodGroup) -> list[tuple[str, str]]:
    """Returns every level that the request names, each as a pair: the field, for messages; the level."""
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
    """Returns every topology that the request names, each as a pair: the field, for messages; the name."""
    topologies = [(field, value) for field, key, value in group.origins if key == "topology" and value]
    origin_values = {value for _, value in topologies}
    topologies += [
        (f"{place}the topology", c.topology)
        for place, c in constraints(group)
        if c.topology and c.topology not in origin_values
    ]
    return list(dict.fromkeys(topologies))


def constraints(group: PodGroup) -> Iterable[tuple[str, Constraint]]:
    """Yields the constraints of the gang, of each PodSet and of each set of PodSets in `within`, each with
    the prefix that messages use for it.
    """
    yield "", group.constraint
    for pod_set in group.pod_sets:
        yield f"{pod_set.name}: ", pod_set.constraint
    for level, names in group.within:
        yield f"{' and '.join(names)}: ", Constraint(required=level)
