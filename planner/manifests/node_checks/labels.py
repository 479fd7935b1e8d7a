"""Labels of nodes held against each other and against what the nodes offer. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.manifests.node_checks.finding import NodeFinding
from planner.model.natural_order import natural
from planner.model.node import Node, divided
from planner.model.resources import CLIQUE_LABEL, COUNT_LABEL, GPU, MIG_PREFIX, PRODUCT_LABEL
from planner.model.topology import HOSTNAME, Domain, Topology, short

NODE_OF_FEATURES = "nfd.node.kubernetes.io/node-name"
"""The label of a NodeFeature that names its node; without it the object has the node's name."""

GPU_DRIVER = "gpu.nvidia.com"

_USUAL = 3
"""From so many nodes a domain on, by the median of its level, a domain of one node is odd."""


def check_labels(snapshot: Snapshot, objects: Iterable[Mapping[str, Any]]) -> list[NodeFinding]:
    """Everything that is odd, by node in natural order. `objects`: NodeFeatures and ResourceSlices among
    them are read."""
    objects = list(objects)
    of_objects = (*_features(snapshot, objects), *_slices(snapshot, objects))
    result = [*_gpus(snapshot), *_levels(snapshot), *of_objects]
    return sorted(dict.fromkeys(result), key=lambda finding: (natural(finding.node), finding.reason))


def _gpus(snapshot: Snapshot) -> Iterator[NodeFinding]:
    """GPU feature discovery and the device plugin of each node."""
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
                node.name, "GpuCountDiffers", f"has {stated} GPUs by {COUNT_LABEL} and offers {offered} {GPU}"
            )
        elif not _claimed(snapshot, node):
            words = f"has {stated} GPUs by {COUNT_LABEL} and offers none: the device plugin is absent"
            yield NodeFinding(node.name, "DevicePluginAbsent", words)


def _claimed(snapshot: Snapshot, node: Node) -> bool:
    """Whether a DRA driver offers the node's devices, so that no device plugin has to."""
    return node.name in snapshot.base.claims.slices.by_node


def _levels(snapshot: Snapshot) -> Iterator[NodeFinding]:
    """Each level of each topology, the host aside."""
    names = {topology.name: set(_names(snapshot, topology)) for topology in snapshot.topologies}
    strays = set(snapshot.nodes).difference(*names.values())  # of a topology that tells them by labels
    for topology in snapshot.topologies:
        mine = names[topology.name] if topology.node_selector else names[topology.name] | strays
        members = [node for name, node in snapshot.nodes.items() if name in mine and _has_gpus(node)]
        for level in topology.levels[:-1]:
            if level != CLIQUE_LABEL:
                yield from _unlabelled(level, members)
                yield from _torn_cliques(level, members)
        if len(topology.levels) > 1:
            yield from _alone(topology, members)


def _names(snapshot: Snapshot, topology: Topology) -> list[str]:
    tree = snapshot.base.trees[topology.name]
    return tree.names(tree.root)


def _has_gpus(node: Node) -> bool:
    return bool(node.allocatable.get(GPU) or node.labels.get(COUNT_LABEL) or node.labels.get(CLIQUE_LABEL))


def _unlabelled(level: str, members: list[Node]) -> Iterator[NodeFinding]:
    """Nodes without a level that others have; the nodes of the same NVLink clique tell which it is."""
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
    """Cliques in several domains: an NVLink partition has one rack, so one of the labels is wrong."""
    for clique, values in _values_by_clique(level, members).items():
        if len(values) < 2:
            continue
        places = Counter(
            node.labels[level] for node in members
            if node.labels.get(CLIQUE_LABEL) == clique and node.labels.get(level)
        )  # fmt: skip
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


def _alone(topology: Topology, members: list[Node]) -> Iterator[NodeFinding]:
    """Domains of one node where others have several: a label that is misspelt makes such a domain."""
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
        if len(names) == 1 and usual >= _USUAL:
            words = f"is alone in {short(level)} {path[-1]}; others have {usual:g} nodes"
            yield NodeFinding(names[0], "AloneInDomain", words)


def _features(snapshot: Snapshot, objects: list[Mapping[str, Any]]) -> Iterator[NodeFinding]:
    """Labels that a NodeFeature wants and its node does not carry: node-feature-discovery's master writes
    them, and one with a prefix that it may not write stays away."""
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


def _slices(snapshot: Snapshot, objects: list[Mapping[str, Any]]) -> Iterator[NodeFinding]:
    """GPUs of a node by its ResourceSlices and by its labels."""
    newest: dict[tuple[str, str], int] = defaultdict(int)
    gpus: Counter[tuple[str, str, int]] = Counter()
    for obj in objects:
        spec = obj.get("spec") or {}
        if obj.get("kind") != "ResourceSlice" or spec.get("driver") != GPU_DRIVER or not spec.get("nodeName"):
            continue
        pool = spec.get("pool") or {}
        key = (str(spec["nodeName"]), str(pool.get("name", "")))
        generation = int(pool.get("generation", 0))
        newest[key] = max(newest[key], generation)
        gpus[(*key, generation)] += sum(map(_is_gpu, spec.get("devices") or []))
    counts: Counter[str] = Counter()
    for (name, pool_name), generation in newest.items():
        counts[name] += gpus[name, pool_name, generation]
    for name, count in counts.items():
        node = snapshot.nodes.get(name)
        stated = node.labels.get(COUNT_LABEL, "") if node is not None else ""
        if stated.isdecimal() and int(stated) != count:
            words = f"has {stated} GPUs by {COUNT_LABEL} and {count} by its ResourceSlices"
            yield NodeFinding(name, "SlicesDiffer", words)


def _is_gpu(device: Mapping[str, Any]) -> bool:
    """A whole GPU; v1beta1 has its attributes one level deeper."""
    attributes = device.get("attributes") or (device.get("basic") or {}).get("attributes") or {}
    return bool((attributes.get("type") or {}).get("string") == "gpu")
