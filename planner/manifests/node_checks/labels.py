"""Compares the labels of nodes with each other and with the devices that the nodes offer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.devices.pools import DRIVER
from planner.manifests.node_checks.finding import NodeFinding
from planner.model.natural_order import natural
from planner.model.node import Node, divided
from planner.model.resources import CLIQUE_LABEL, COUNT_LABEL, GPU, MIG_PREFIX, PRODUCT_LABEL
from planner.model.topology import HOSTNAME, Domain, Topology, short
from planner.model.words import counted

NODE_OF_FEATURES = "nfd.node.kubernetes.io/node-name"
"""The label of a NodeFeature that names its node; without it the object has the node's name."""

_MIN_MEDIAN = 3
"""If the domains of a level have a median of this many nodes or more, a domain with one node is
suspicious.
"""


def check_labels(snapshot: Snapshot, objects: Iterable[Mapping[str, Any]]) -> list[NodeFinding]:
    """Returns all findings, by node in natural order. `objects`: only the NodeFeatures among them are
    read.
    """
    result = [*_gpus(snapshot), *_levels(snapshot), *_features(snapshot, objects), *_slices(snapshot)]
    return sorted(dict.fromkeys(result), key=lambda finding: (natural(finding.node), finding.reason))


def _gpus(snapshot: Snapshot) -> Iterator[NodeFinding]:
    """Checks GPU feature discovery and the device plugin of each node."""
    for node in snapshot.nodes.values():
        offered, labels = node.allocatable.get(GPU, 0), node.labels
        if offered and not labels.get(PRODUCT_LABEL):
            words = f"offers {offered} {GPU} and has no {PRODUCT_LABEL}: GPU feature discovery is absent"
            yield NodeFinding(node.name, "FeatureDiscoveryAbsent", words)
        sliced = divided(labels) or any(name.startswith(MIG_PREFIX) for name in node.allocatable)
        stated = labels.get(COUNT_LABEL, "")
        if sliced or not stated.isdecimal() or int(stated) == offered:
            continue
        if offered:
            yield NodeFinding(
                node.name, "GpuCountDiffers", f"{_labelled(stated)}, and it offers {offered} {GPU}"
            )
        elif not _claimed(snapshot, node):
            words = f"{_labelled(stated)}, and it offers none: the device plugin is absent"
            yield NodeFinding(node.name, "DevicePluginAbsent", words)


def _claimed(snapshot: Snapshot, node: Node) -> bool:
    """Reports whether a DRA driver offers the node's devices, so that no device plugin is needed."""
    return node.name in snapshot.base.claims.slices.by_node


def _levels(snapshot: Snapshot) -> Iterator[NodeFinding]:
    """Checks each level of each topology, except the host."""
    names = {topology.name: set(_names(snapshot, topology)) for topology in snapshot.topologies}
    # Nodes in no topology: perhaps they lack a label of a topology without node selector and belong to it.
    strays = set(snapshot.nodes).difference(*names.values())
    for topology in snapshot.topologies:
        mine = names[topology.name] if topology.node_selector else names[topology.name] | strays
        members = [node for name, node in snapshot.nodes.items() if name in mine and _has_gpus(node)]
        for level in topology.levels[:-1]:
            if level != CLIQUE_LABEL:
                yield from _missing_levels(level, members)
                yield from _torn_cliques(level, members)
        if len(topology.levels) > 1:
            yield from _single_node_domains(topology, members)


def _names(snapshot: Snapshot, topology: Topology) -> list[str]:
    tree = snapshot.base.trees[topology.name]
    return tree.names(tree.root)


def _has_gpus(node: Node) -> bool:
    return bool(node.allocatable.get(GPU) or node.labels.get(COUNT_LABEL) or node.labels.get(CLIQUE_LABEL))


def _missing_levels(level: str, members: list[Node]) -> Iterator[NodeFinding]:
    """Finds nodes without a label of a level that other nodes have. If the other nodes of the same NVLink
    clique have one value of the label, this value corrects the fault.
    """
    by_clique = _values_by_clique(level, members)
    if not any(node.labels.get(level) for node in members):
        return
    for node in members:
        if node.labels.get(level):
            continue
        clique = node.labels.get(CLIQUE_LABEL, "")
        values = by_clique.get(clique, set())
        if not clique:
            yield NodeFinding(node.name, "LevelMissing", f"has no label {level}, which others have")
        elif len(values) == 1:
            (value,) = values
            words = f"is in clique {clique} and has no {level}; the others of its clique are in {value}"
            yield NodeFinding(node.name, "CliqueWithoutLevel", words, (level, value))
        else:
            words = f"is in clique {clique} and has no {level}"
            yield NodeFinding(node.name, "CliqueWithoutLevel", words)


def _torn_cliques(level: str, members: list[Node]) -> Iterator[NodeFinding]:
    """Finds cliques in several domains. An NVLink clique lies within one rack, so one of the
    labels is wrong.
    """
    for clique, values in _values_by_clique(level, members).items():
        if len(values) < 2:
            continue
        places = Counter(
            node.labels[level] for node in members
            if node.labels.get(CLIQUE_LABEL) == clique and node.labels.get(level)
        )  # fmt: skip
        # If no two nodes of the clique agree (count 1), each of them may be the wrong one.
        usual, count = places.most_common(1)[0]
        for node in members:
            value = node.labels.get(level, "")
            if node.labels.get(CLIQUE_LABEL) == clique and value and (value != usual or count == 1):
                words = f"is in {short(level)} {value}, and {count} others of its clique {clique} in {usual}"
                yield NodeFinding(node.name, "CliqueAcrossDomains", words)


def _values_by_clique(level: str, members: list[Node]) -> Mapping[str, set[str]]:
    result: dict[str, set[str]] = defaultdict(set)
    for node in members:
        if (clique := node.labels.get(CLIQUE_LABEL, "")) and (value := node.labels.get(level, "")):
            result[clique].add(value)
    return result


def _single_node_domains(topology: Topology, members: list[Node]) -> Iterator[NodeFinding]:
    """Finds domains with a single node at the level above the host, if the median of its domains has
    `_MIN_MEDIAN` nodes or more: a misspelt label creates such a domain.
    """
    depth = len(topology.levels) - 1
    level = topology.levels[depth - 1]
    if level == HOSTNAME:
        return
    inside: dict[Domain, list[str]] = defaultdict(list)
    for node in members:
        if node.labels.get(level):
            inside[topology.path(node.name, node.labels)[:depth]].append(node.name)
    usual = median(len(names) for names in inside.values()) if inside else 0
    for path, names in inside.items():
        if len(names) == 1 and usual >= _MIN_MEDIAN:
            words = f"is alone in {short(level)} {path[-1]}; others have {usual:g} nodes"
            yield NodeFinding(names[0], "AloneInDomain", words)


def _features(snapshot: Snapshot, objects: Iterable[Mapping[str, Any]]) -> Iterator[NodeFinding]:
    """Finds labels of a NodeFeature that its node does not have.

    The master of node-feature-discovery writes these labels, except those with a prefix that it may not
    write.
    """
    for obj in objects:
        if obj.get("kind") != "NodeFeature":
            continue
        name = (obj["metadata"].get("labels") or {}).get(NODE_OF_FEATURES) or obj["metadata"]["name"]
        node = snapshot.nodes.get(str(name))
        for key, value in sorted(((obj.get("spec") or {}).get("labels") or {}).items()):
            if node is not None and node.labels.get(key) != str(value):
                carried = f"carries {node.labels[key]!r}" if key in node.labels else "does not carry it"
                words = f"has {key}={value} by its NodeFeature and {carried}"
                yield NodeFinding(node.name, "NodeFeatureNotApplied", words, (key, str(value)))


def _labelled(stated: str) -> str:
    return f"the label {COUNT_LABEL} says {counted(int(stated), 'GPU')}"


def _slices(snapshot: Snapshot) -> Iterator[NodeFinding]:
    """Compares the GPUs of a node in its ResourceSlices with its labels."""
    for name, slices in snapshot.base.claims.slices.by_node.items():
        devices = [offer.device for offer in slices.offers().values()]
        count = sum(device.driver == DRIVER and device.attribute("type") == "gpu" for device in devices)
        node = snapshot.nodes.get(name)
        stated = node.labels.get(COUNT_LABEL, "") if node is not None else ""
        if stated.isdecimal() and int(stated) != count:
            words = f"{_labelled(stated)}, and its ResourceSlices have {count}"
            yield NodeFinding(name, "SlicesDiffer", words)
