"""The values `domains` and `gpuNodes` of the CEL variable `cluster`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.node import Node
from planner.model.resources import (
    CLIQUE_LABEL,
    COUNT_LABEL,
    FAMILY_LABEL,
    GPU_RESOURCES,
    INTERCONNECT_LABEL,
    MEMORY_LABEL,
    MIG_CONFIG_LABEL,
    MIG_PREFIX,
    MIG_STRATEGY_LABEL,
    NVSWITCH_LABEL,
    PRODUCT_LABEL,
    SHARING_LABEL,
)

GPU_LABELS = {
    "product": PRODUCT_LABEL,
    "family": FAMILY_LABEL,
    "memory": MEMORY_LABEL,
    "count": COUNT_LABEL,
    "sharing": SHARING_LABEL,
    "mig": MIG_STRATEGY_LABEL,
    "config": MIG_CONFIG_LABEL,
    "nvswitch": NVSWITCH_LABEL,
    "interconnect": INTERCONNECT_LABEL,
}
"""Node labels that GPU feature discovery sets, by the field of `gpuNodes`; `interconnect` is set by an
administrator.
"""


def domains(snapshot: Snapshot) -> list[dict[str, object]]:
    """Returns each named domain above the hosts: topology, level, name, path, number of nodes, and the speed
    of its uplink in Gb/s (`gbps`). The order is that of the topologies and their trees.

    The speed is that of the slowest link of the switch with the domain's name (`spec.links` of the Topology),
    0.0 if unknown.
    """
    rows: list[dict[str, object]] = []
    for topology in snapshot.topologies:
        if topology.source == "none":
            continue
        tree = snapshot.base.trees[topology.name]
        speeds = _slowest(snapshot, topology.name)
        rows.extend(
            {
                "topology": topology.name,
                "level": topology.levels[branch.level],
                "name": branch.path[-1],
                "path": list(branch.path),
                "nodes": len(branch),
                "gbps": speeds.get(branch.path[-1], 0.0),
            }
            for branch in _above_hosts(tree, tree.root)
        )
    return rows


def _above_hosts(tree: TopologyTree, branch: Subtree) -> Iterator[Subtree]:
    if 0 <= branch.level < tree.topology.host_index and branch.has_name:
        yield branch
    for child in branch.children:
        yield from _above_hosts(tree, child)


def _slowest(snapshot: Snapshot, topology: str) -> dict[str, float]:
    speeds: dict[str, float] = {}
    for link in snapshot.base.links.get(topology, ()):
        for end in (link.end_a, link.end_b):
            speeds[end] = min(speeds.get(end, link.gbps), link.gbps)
    return speeds


def gpu_nodes(nodes: Iterable[Node]) -> list[dict[str, object]]:
    """Returns the kinds of nodes with GPUs or MIG slices, each with the number of its nodes.

    The nodes of a kind have the same `GPU_LABELS` and GPUs. `memory` (MiB) and `count` are numbers, 0 if the
    label is missing or not a number; other labels are text, "" if missing. `clique`: whether the nodes are in
    a multi-node NVLink domain. `gpus`: whole GPUs of one node. `slices`: whether the nodes offer MIG slices.
    """
    counts: dict[tuple[tuple[str, object], ...], int] = {}
    for node in nodes:
        gpus = sum(node.allocatable.get(name, 0) for name in GPU_RESOURCES)
        slices = [amount for name, amount in node.allocatable.items() if name.startswith(MIG_PREFIX)]
        if gpus or slices:
            own = (("clique", bool(node.labels.get(CLIQUE_LABEL))), ("gpus", gpus), ("slices", any(slices)))
            kind = (*_labelled(node), *own)
            counts[kind] = counts.get(kind, 0) + 1
    return [{**dict(kind), "nodes": count} for kind, count in sorted(counts.items(), key=str)]


def _labelled(node: Node) -> Iterator[tuple[str, object]]:
    for name, key in GPU_LABELS.items():
        value = node.labels.get(key, "")
        yield name, _number(value) if name in ("memory", "count") else value


def _number(value: str) -> int:
    return int(value) if value.isdecimal() and len(value) < 12 else 0
