"""Proposes Topology objects for the labels of nodes: the output of `bayplan topology propose`.

Nodes are grouped by the source of most of their labels (a row of
`planner.manifests.topologies.label_presets`) and by the levels of that source that they have. Each group with
a level above the host gets a proposal of its own, because a node pool has one topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.manifests.topologies.label_presets import NODE_POOL, PRESETS, infer
from planner.manifests.topologies.objects import SELECTOR_KEY
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.topology import Topology
from planner.model.words import counted

HAND_MADE = "labels"
"""The source of a proposal for nodes without labels of a preset: its levels are the region, the zone, or
label keys that end in a word such as "rack".
"""


API_VERSIONS: Mapping[str, str] = {
    "kai": "kai.scheduler/v1alpha1",
    "kueue": "kueue.x-k8s.io/v1beta2",
    "bayplan": "bayplan.dev/v1alpha1",
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed topology, the source of its labels (the name of a preset, or `HAND_MADE`), the nodes that it
    covers, and notes for the user.
    """

    topology: Topology
    source: str
    members: tuple[Node, ...]
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """The number of nodes that the topology covers."""
        return len(self.members)

    @property
    def summary(self) -> str:
        """The number of nodes that the topology covers and the source of its labels, in words."""
        labels = (
            "labels whose names end like rack or zone"
            if self.source == HAND_MADE
            else f"labels of {self.source}"
        )
        return f"{counted(self.nodes, 'node')}, {labels}"


def propose(nodes: Iterable[Node]) -> tuple[Proposal, ...]:
    """Returns a proposal for each group of nodes, the largest group first. Groups whose only level is the
    host get none.
    """
    groups = _groups(sorted(nodes, key=lambda node: natural(node.name)))
    inferred = [(source, infer(members), members) for source, members in groups]
    kept = [(source, topology, members) for source, topology, members in inferred if topology.host_index > 0]
    result: list[Proposal] = []
    for source, topology, members in kept:
        member_names = {node.name for node in members}
        outsiders = [node for _, group in groups for node in group if node.name not in member_names]
        earlier_count = sum(1 for proposal in result if proposal.source == source)
        name = f"{source}-{earlier_count + 1}" if earlier_count else source
        result.append(_proposal(source, replace(topology, name=name), members, outsiders))
    return tuple(result)


def _groups(nodes: Iterable[Node]) -> list[tuple[str, list[Node]]]:
    """Returns the nodes by source and level keys, the largest group first.

    Nodes whose keys are a subset of another group's keys are added to that group: they lack some labels. If
    there are several such groups, they are added to the largest.
    """
    by_keys: dict[tuple[str, frozenset[str]], list[Node]] = {}
    for node in nodes:
        keys = frozenset(infer([node]).levels[:-1])
        by_keys.setdefault((_source(node), keys), []).append(node)
    groups: dict[tuple[str, frozenset[str]], list[Node]] = {}
    for (source, keys), members in sorted(by_keys.items(), key=lambda item: (-len(item[0][1]), item[0][0])):
        wider = [group for group in groups if keys <= group[1]]
        home = max(wider, key=lambda group: len(groups[group]), default=(source, keys))
        groups.setdefault(home, []).extend(members)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0][0], sorted(item[0][1])))
    return [(source, members) for (source, _), members in ordered]


def _source(node: Node) -> str:
    best = max(PRESETS, key=lambda preset: sum(1 for key in preset.levels if node.labels.get(key)))
    return best.name if any(node.labels.get(key) for key in best.levels) else HAND_MADE


def _proposal(
    source: str, inferred: Topology, members: Sequence[Node], outsiders: Sequence[Node]
) -> Proposal:
    selector = _pool(members, outsiders)
    topology = replace(inferred, node_selector=selector, source="bayplan.dev")
    notes = [note for level in topology.levels[:-1] for note in _notes(topology, level, members)]
    if outsiders:
        covered = len(members)
        notes.append(f"{covered} of {covered + len(outsiders)} nodes carry these labels")
    return Proposal(topology, source, tuple(members), tuple(notes))


def _pool(members: Sequence[Node], outsiders: Sequence[Node]) -> dict[str, str]:
    """Returns the node-pool label that all members and no other node have; {} if there is none."""
    values = {node.labels.get(NODE_POOL, "") for node in members}
    other_values = {node.labels.get(NODE_POOL, "") for node in outsiders}
    if len(values) == 1 and "" not in values and not values & other_values:
        return {NODE_POOL: values.pop()}
    return {}


def _notes(topology: Topology, level: str, members: Sequence[Node]) -> list[str]:
    """Returns notes on one level: how many nodes lack its label, whether values repeat under different
    parents, and whether each domain above it contains only one of its domains.
    """
    depth = topology.index(level) + 1
    paths = {topology.path(node.name, node.labels)[:depth] for node in members if node.labels.get(level)}
    bare = sum(1 for node in members if not node.labels.get(level))
    result = []
    if bare:
        lack = "lacks it and is" if bare == 1 else "lack it and are"
        result.append(f"{level}: {bare} of {len(members)} nodes {lack} placed by the other levels only")
    if len({path[-1] for path in paths}) < len(paths):
        result.append(f"{level}: values repeat under different parents; a domain is its whole path")
    above = {path[:-1] for path in paths}
    if depth > 1 and len(above) == len(paths) and not bare:
        result.append(f"{level}: one value for each domain above it, so that it divides nothing further")
    return result


def topology_manifest(topology: Topology, kind: str) -> dict[str, object]:
    """Returns the Topology object for a system in `API_VERSIONS`.

    Only Bayplan's kind has a field for the node selector; the others get it as an annotation. Raises
    `KeyError` for another system.
    """
    metadata: dict[str, object] = {"name": topology.name}
    spec: dict[str, object] = {"levels": [{"nodeLabel": level} for level in topology.levels]}
    if topology.node_selector and kind == "bayplan":
        spec["nodeSelector"] = dict(topology.node_selector)
    elif topology.node_selector:
        pairs = ",".join(f"{key}={value}" for key, value in topology.node_selector.items())
        metadata["annotations"] = {SELECTOR_KEY: pairs}
    return {"apiVersion": API_VERSIONS[kind], "kind": "Topology", "metadata": metadata, "spec": spec}
