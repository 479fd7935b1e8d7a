"""The links under a gang's GPUs: which GPUs share an NVLink domain, and the rates within and between domains.

An NVLink domain is the partition that `nvidia.com/gpu.clique` names (for example a whole NVL72), else the
host, or the parts of a host of size `gpu.topology/nvlink-domain-size`. Rates are nominal, in GB/s per GPU and
direction, by GPU family, product and interconnect label. If a label is missing, a rate is assumed, and
`Rates.words` says so. The network rate is the narrowest link that the Topology lists, else its
`bayplan.dev/adapter-gbps`, else that of InfiniBand NDR (HDR if all nodes have Ampere GPUs).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.bandwidth.model import NETWORK, NVLINK, PCIE, Links
from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import LeafSpine, Switch, cabled_leaf_spine
from planner.model.node import Node
from planner.model.resources import (
    CLIQUE_LABEL,
    FAMILY_LABEL,
    INTERCONNECT_LABEL,
    NVLINK_VERSION_LABEL,
    PRODUCT_LABEL,
)
from planner.model.topology import Domain, Topology
from planner.node.nvlink import stated_size

_NVLINKED = re.compile(r"\b(A100|A800|H100|H200|H800|H20|GH200|B100|B200|B300|GB200|GB300)\b")
"""Products with NVLink, unless they are cards (`_CARD`)."""


_CARD = re.compile(r"\b(PCIE|NVL)\b")
"""Cards (A100-PCIE-40GB, H100-NVL), whose GPUs have NVLink only where bridges join some of them: only node
labels tell.
"""


_NARROWER = ((re.compile(r"\b[AH]800\b"), 200.0), (re.compile(r"\bH100.*\b(PCIE|NVL)\b"), 300.0))
"""Products whose NVLink has a lower rate than that of their generation, with the rate."""


_GENERATION = {"ampere": "NVLink 3", "hopper": "NVLink 4", "blackwell": "NVLink 5"}


_BY_VERSION = {name.removeprefix("NVLink "): family for family, name in _GENERATION.items()}
"""The GPU family by NVLink generation ("3", "4", "5"), which a node label states."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a placement's links. `words`: the same as text, with what is assumed: "NVLink 4 450 GB/s,
    network 50 GB/s a GPU (NDR, assumed)".
    """

    links: Links
    words: str


def nvlink_domains(nodes: Mapping[str, Node], gpus: Mapping[str, int]) -> tuple[int, ...]:
    """Returns how many of the gang's GPUs are in each NVLink domain that it uses, the largest number first.
    `gpus`: the number of the gang's GPUs by node name. On a node with several NVLink domains, the GPUs fill
    one domain after the other.
    """
    shared: dict[str, int] = {}
    inside: list[int] = []
    for name, count in gpus.items():
        labels = nodes[name].labels
        size = stated_size(nodes[name])
        if clique := labels.get(CLIQUE_LABEL, ""):
            shared[clique] = shared.get(clique, 0) + count
        elif 0 < size < count:
            inside += [min(size, count - start) for start in range(0, count, size)]
        else:
            inside.append(count)
    return tuple(sorted((*shared.values(), *inside), reverse=True))


def rates_of(snapshot: Snapshot, topology: Topology, nodes: Sequence[str]) -> Rates:
    """Returns the rates for a gang on these nodes: the slowest within and between domains, with the highest
    oversubscription.
    """
    speed, link_name = min(_inside(snapshot.nodes[name]) for name in nodes)
    across, note = _across(snapshot, topology, nodes)
    ratio = max(_stated(snapshot, topology, nodes), _cabled(snapshot, topology, nodes))
    words = f"{link_name} {speed:g} GB/s, network {across:g} GB/s a GPU{note}"
    if ratio > 1:
        words += f", oversubscribed {ratio:g}:1"
    return Rates(Links(speed, across, ratio), words)


def _inside(node: Node) -> tuple[float, str]:
    """Returns the rate in GB/s between GPUs of one NVLink domain of the node, and the link's name."""
    family = node.labels.get(FAMILY_LABEL, "")
    product = node.labels.get(PRODUCT_LABEL, "").replace("-", " ").upper()
    linked = not product or (_NVLINKED.search(product) and not _CARD.search(product))
    interconnect = node.labels.get(INTERCONNECT_LABEL, "")
    if interconnect == "pcie" or (interconnect not in ("nvswitch", "nvlink") and not linked):
        generation = 5 if family in ("hopper", "blackwell") else 4
        return PCIE[generation], f"PCIe Gen{generation} ×16"
    stated = _BY_VERSION.get(node.labels.get(NVLINK_VERSION_LABEL, ""), family)
    if stated in NVLINK:
        narrower = (rate for pattern, rate in _NARROWER if pattern.search(product))
        return next(narrower, NVLINK[stated]), _GENERATION[stated]
    return NVLINK["hopper"], "NVLink 4 (assumed)"


def _across(snapshot: Snapshot, topology: Topology, nodes: Sequence[str]) -> tuple[float, str]:
    """Returns the network rate in GB/s per GPU, and its source in words. Topologies state rates in Gb/s."""
    spine = cabled_leaf_spine(snapshot, topology)
    if spine is not None:
        # A node that is not in the graph counts as its leaf switch.
        ends = [name if name in spine.graph else spine.switch_of(name) for name in nodes]
        slowest = spine.narrowest_among(ends)
        if slowest:
            return slowest / 8, " by the Topology's links"
    if topology.adapter_gbps:
        return topology.adapter_gbps / 8, " as the Topology says"
    old = all(snapshot.nodes[name].labels.get(FAMILY_LABEL) == "ampere" for name in nodes)
    kind = "hdr" if old else "ndr"
    return NETWORK[kind], f" ({kind.upper()}, assumed)"


def _stated(snapshot: Snapshot, topology: Topology, nodes: Sequence[str]) -> float:
    """Returns the largest oversubscription that the Topology states for a level at which the nodes are in
    several domains; 1 if it states none.
    """
    paths = [topology.path(name, snapshot.nodes[name].labels) for name in nodes]
    spanned = (level for level in range(len(topology.levels)) if _differ(paths, level))
    return max((topology.oversubscription.get(topology.levels[level], 1.0) for level in spanned), default=1.0)


def _differ(paths: Iterable[Domain], level: int) -> bool:
    return len({path[: level + 1] for path in paths}) > 1


def _cabled(snapshot: Snapshot, topology: Topology, nodes: Sequence[str]) -> float:
    """Returns the largest ratio of downlink to uplink speed among the gang's leaf switches; 1 for a single
    leaf, and if the Topology lists no link of known speed.
    """
    spine = cabled_leaf_spine(snapshot, topology)
    leaves = {spine.switch_of(name) for name in nodes} if spine is not None else set()
    if spine is None or len(leaves) < 2:
        return 1.0
    return max((_ratio(snapshot, spine, leaf) for leaf in leaves if leaf in spine.graph), default=1.0)


def _ratio(snapshot: Snapshot, spine: LeafSpine, leaf: Switch) -> float:
    """Returns the total speed of a leaf switch's cables to nodes, divided by that of its cables to other
    switches; at least 1, also if one of the two is not known.
    """
    down = up = 0.0
    for other, cable in spine.graph.adj[leaf].items():
        gbps = cable.get("gbps") or 0.0
        if other in snapshot.nodes:
            down += gbps
        else:
            up += gbps
    return max(1.0, down / up) if down and up else 1.0
