"""Known sources of topology labels, with their label keys from coarse to fine.

The keys are from the documentation of the sources (GPU feature discovery, Topograph, the clouds). The sources
number levels in different directions; here every row is from coarse to fine. `infer` adds the hostname.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.model.labels import selects
from planner.model.node import Node
from planner.model.resources import CLIQUE_LABEL
from planner.model.topology import HOSTNAME, NODE_LABELS, REGION, ZONE, Topology


@dataclass(frozen=True, slots=True)
class Preset:
    """One source of topology labels."""

    name: str
    levels: tuple[str, ...]


_TIERS = tuple(f"fabric.topograph.run/tier-{tier}" for tier in range(9, -1, -1))
"""Tier 0 is the closest to the node; a fabric has one tier for each layer of switches."""


_OCI = "oci.oraclecloud.com"


_TOPOGRAPH_OLD = "network.topology.nvidia.com"


_AWS = "topology.k8s.aws"


PRESETS = (
    Preset(
        "topograph",
        (*_TIERS, "accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"),
    ),
    Preset(
        "topograph-0.3",
        tuple(f"{_TOPOGRAPH_OLD}/{tier}" for tier in ("core", "spine", "leaf", "accelerator")),
    ),
    Preset(
        "topograph-0.1",
        tuple(f"{_TOPOGRAPH_OLD}/{tier}" for tier in ("datacenter", "spine", "block", "accelerator")),
    ),
    Preset(
        "aws",
        (*(f"{_AWS}/network-node-layer-{n}" for n in (1, 2, 3, 4)), f"{_AWS}/ultraserver-id"),
    ),
    Preset(
        "gcp", tuple(f"cloud.google.com/gce-topology-{part}" for part in ("block", "subblock", "host"))
    ),
    Preset(
        "oci-rdma",
        tuple(f"{_OCI}/rdma.{p}" for p in ("hpc_island_id", "network_block_id", "local_block_id", "host_id")),
    ),
    Preset("oci-host", (f"{_OCI}/host.network_block_id", f"{_OCI}/host.rack_id")),
    Preset(
        "coreweave",
        (
            *(f"backend.coreweave.cloud/{part}" for part in ("fabric", "superpod", "leafgroup")),
            "node.coreweave.cloud/rack",
            "ds.coreweave.com/nvlink.domain",
        ),
    ),
    Preset(
        "nebius", tuple(f"topology.nebius.com/{p}" for p in ("gpu-cluster-id", "tier-2", "tier-1", "tier-0"))
    ),
    Preset(
        "recipe",
        tuple(f"cloud.provider.com/topology-{part}" for part in ("block", "rack")),
    ),
)  # fmt: skip
"""The known sources. `infer` uses the one with the most labels on the nodes."""


GENERIC = (REGION, ZONE)
"""Labels that nodes of every source may have; they are coarser than the labels of the source."""


_WORDS = ("region", "zone", "datacenter", "superpod", "spine", "block", "row", "rack", "leaf", "chassis")
"""Suffixes of custom label keys, coarse to fine; used if no known source matches."""


def with_inferred_topology(objects: Sequence[Topology], nodes: Iterable[Node]) -> list[Topology]:
    """Returns the topologies in `objects`; without any, the one that the labels of all nodes give.

    If each object covers only a node pool (for example a Kueue Topology whose ResourceFlavor has node
    labels), the result also has a topology by the labels of the nodes with devices outside all pools, if
    there are such nodes. A Kueue queue without a topology uses them, and a gang there is placed by their
    labels.
    """
    if not objects:
        return [infer(nodes)]
    if not all(topology.node_selector for topology in objects):
        return list(objects)
    outside = [
        node
        for node in nodes
        if any("/" in resource for resource in node.allocatable)
        and not any(selects(topology.node_selector, node.labels) for topology in objects)
    ]
    return [*objects, infer(outside)] if outside else list(objects)


def infer(nodes: Iterable[Node]) -> Topology:
    """Returns the topology in the nodes' labels: region and zone, the best matching source, clique, host.

    Levels that no node has are left out. The source is the one with the most labels over all nodes; of equal
    sources, the first row. Without a known source, keys that end in a word such as "rack" are used. The
    topology has no name, because there is no object to name it after.
    """
    carried: Counter[str] = Counter()
    for node in nodes:
        carried.update(key for key, value in node.labels.items() if value)
    source = max(PRESETS, key=lambda preset: sum(carried[level] for level in preset.levels))
    source_levels = [level for level in source.levels if carried[level]] or _custom_levels(carried)
    levels = [
        *(level for level in GENERIC if carried[level]),
        *source_levels,
        *((CLIQUE_LABEL,) if carried[CLIQUE_LABEL] else ()),
    ]
    return Topology("", (*levels, HOSTNAME), source=NODE_LABELS)


def _custom_levels(carried: Counter[str]) -> list[str]:
    """Returns, for each word in `_WORDS`, the most frequent label key that ends in it."""
    result: list[str] = []
    for word in _WORDS:
        keys = [k for k in carried if re.fullmatch(rf"(.*[^a-z])?{word}", k) and k not in GENERIC]
        if keys:
            result.append(max(sorted(keys), key=lambda k: carried[k]))
    return result


NODE_POOL = "kai.scheduler/node-pool"
"""KAI's label for the node pool of a node."""
