"""Who has which GPUs: by node, and by namespace of those that a gang may use.

    kind        nodes    research    inference        a gang that may use H100 nodes contests 64 GPUs,
    H100        8 x 8          48            8        of which research has 48 and inference 8;
    L4          4 x 1           -            4        what they have of other kinds counts for nothing

A gang has the GPUs that it holds, all of a node that is held whole; a pod has its own beside that. Parts of
GPUs (MIG, time slices) count for nothing.

A census is made from the former one by the nodes that changed since: each admission changes the snapshot, and
counting all of 5,000 nodes again took four times as long as the rest of a decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.occupancy import Hold, unaccounted
from planner.cluster.persistent_map import PersistentMap, may_differ
from planner.cluster.plan_cache import CacheSection, DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import PodGroup
from planner.model.resources import CLAIMED_GPU, GPU_RESOURCES, Resources
from planner.node.node_groups import NodeGroup, node_groups

_WHOLE = (*GPU_RESOURCES, CLAIMED_GPU)


Kinds = frozenset[int]
"""Kinds of nodes, by their places among those of the cluster."""


@dataclass(frozen=True, slots=True)
class Contested:
    """The GPUs of all nodes that a gang's pods may be on, full or not: `total`, and of which `kinds`."""

    kinds: Kinds
    total: int


def contested_gpus(snapshot: Snapshot, group: PodGroup) -> Contested:
    """What the gang's pods with GPUs may use by labels, taints and size, whoever has it now."""
    kinds = _node_kinds(snapshot.base).kinds
    nodes: dict[int, int] = {}
    for shape in {id(part.shape): part.shape for part in group.pod_sets if part.shape.gpus}.values():
        for number, admitting in _admitting(snapshot.base, shape).items():
            nodes[number] = max(admitting, nodes.get(number, 0))
    return Contested(frozenset(nodes), sum(kinds[number].gpus * count for number, count in nodes.items()))


def gpus_of_node(snapshot: Snapshot, node: Node, contested: Contested) -> int:
    """All GPUs of a node that takes pods now and is of the contested kinds; 0 for any other."""
    node_kinds = _node_kinds(snapshot.base)
    number = node_kinds.of_node.get(node.name, -1)
    return (
        node_kinds.kinds[number].gpus if number in contested.kinds and node.ready and not node.cordoned else 0
    )


def gpus_of_namespaces(snapshot: Snapshot, contested: Contested) -> Mapping[str, int]:
    """By namespace what it has of the contested GPUs."""
    by_kind = _census(snapshot).by_kind
    total: Counter[str] = Counter()
    for number in contested.kinds:
        total.update(by_kind.get(number, {}))
    return total


def gpus_by_node(snapshot: Snapshot) -> Mapping[str, Mapping[str, int]]:
    """By node the GPUs of each gang, and of each pod (NAMESPACE/NAME) beside what gangs hold; nodes of which
    nobody has any are left out."""
    return _census(snapshot).by_node


@dataclass(frozen=True, slots=True)
class _NodeKinds:
    kinds: Sequence[NodeGroup]
    of_node: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Census:
    """What was counted, and the records of which it was counted."""

    nodes: Mapping[str, Node] = field(default_factory=PersistentMap)
    pods: PersistentMap[str, tuple[BoundPod, ...]] = field(default_factory=PersistentMap)
    holds: PersistentMap[str, tuple[Hold, ...]] = field(default_factory=PersistentMap)
    node_kinds: _NodeKinds | None = None
    by_node: PersistentMap[str, Mapping[str, int]] = field(default_factory=PersistentMap)
    """By node, the GPUs of each gang and pod. Nodes of which nobody has any are left out."""
    by_kind: Mapping[int, Counter[str]] = field(default_factory=dict)
    """By kind of node, the GPUs of each namespace."""


@dataclass(slots=True)
class _Latest:
    """The census that was made last."""

    census: _Census = field(default_factory=_Census)


_KINDS: DerivedSection[str, _NodeKinds] = DerivedSection("node kinds")


_ADMITTING: DerivedSection[Hashable, dict[int, int]] = DerivedSection("nodes that admit GPUs", max_keys=64)
"""By what a pod asks of nodes. As many as a pass plans of those that wait."""


_CENSUS: DerivedSection[str, _Census] = DerivedSection("GPUs of gangs and namespaces")


LATEST_CENSUS: CacheSection[str, _Latest] = CacheSection(
    "latest census", results=lambda latest: len(latest.census.by_node)
)
"""The census from which the next one is made."""


def _node_kinds(base: Infrastructure) -> _NodeKinds:
    def worked_out() -> _NodeKinds:
        kinds = node_groups(base.nodes.values(), resources_tolerated=base.tolerates_resources)
        return _NodeKinds(
            kinds, {node.name: number for number, kind in enumerate(kinds) for node in kind.nodes}
        )

    return base.derived.get(_KINDS, "", worked_out)


def _admitting(base: Infrastructure, shape: PodShape) -> Mapping[int, int]:
    """How many nodes of each kind the pod may be on."""

    def counted() -> dict[int, int]:
        kinds = enumerate(_node_kinds(base).kinds)
        nodes = {
            number: kind.admitting(shape) for number, kind in kinds if _large_enough(kind, shape.requests)
        }
        return {number: count for number, count in nodes.items() if count}

    gpus = tuple((name, shape.requests.get(name, 0)) for name in _WHOLE)
    selected = tuple(sorted(shape.node_selector.items()))
    return base.derived.get(_ADMITTING, (selected, shape.affinity, shape.tolerations, gpus), counted)


def _large_enough(kind: NodeGroup, requests: Resources) -> bool:
    """Whether a node has as many GPUs as one pod asks for; claimed ones are of whatever name."""
    offered = all(kind.allocatable.get(name, 0) >= requests.get(name, 0) for name in GPU_RESOURCES)
    return offered and max(1, requests.get(CLAIMED_GPU, 0)) <= kind.gpus


def _census(snapshot: Snapshot) -> _Census:
    cache = snapshot.base.plan_cache

    def counted() -> _Census:
        latest = cache.entry(LATEST_CENSUS, "", _Latest)
        latest.census = _census_after(latest.census, snapshot)
        return latest.census

    return snapshot.derived.get(_CENSUS, "", lambda: cache.exclusively(counted))


def _census_after(former: _Census, snapshot: Snapshot) -> _Census:
    """The census of the snapshot, from that of any other: only nodes that differ are counted."""
    nodes, pods, holds = snapshot.nodes, snapshot.bound.by_node, snapshot.holds.by_node
    changed: dict[str, Mapping[str, int] | None] = {}
    pairs = ((former.nodes, nodes), (former.pods, pods), (former.holds, holds))
    for name in {name for before, after in pairs for name in may_differ(before, after)}:
        if all(before.get(name) is after.get(name) for before, after in pairs):
            continue
        node = nodes.get(name)
        gpus = _on_node(node, snapshot.bound.on(name), snapshot.holds.on(name)) if node is not None else {}
        if gpus != former.by_node.get(name, {}):
            changed[name] = gpus or None
    node_kinds = _node_kinds(snapshot.base)
    by_node = former.by_node.updated(changed)
    if node_kinds is former.node_kinds:
        by_kind = _by_kind_after(former, node_kinds, changed)
    else:
        by_kind = _by_kind_after(_Census(), node_kinds, by_node)
    return _Census(nodes, pods, holds, node_kinds, by_node, by_kind)


def _by_kind_after(
    former: _Census, node_kinds: _NodeKinds, changed: Mapping[str, Mapping[str, int] | None]
) -> Mapping[int, Counter[str]]:
    """By kind, the GPUs of each namespace, once the nodes have what `changed` says (None: nothing)."""
    by_kind: dict[int, Counter[str]] = {}
    for name, gpus in changed.items():
        number = node_kinds.of_node[name]
        if number not in by_kind:
            by_kind[number] = Counter(former.by_kind.get(number, {}))
        by_kind[number].subtract(_of_namespaces(former.by_node.get(name, {})))
        by_kind[number].update(_of_namespaces(gpus or {}))
    return {**former.by_kind, **{number: +namespaces for number, namespaces in by_kind.items()}}


def _of_namespaces(gpus: Mapping[str, int]) -> Counter[str]:
    namespaces: Counter[str] = Counter()
    for holder, amount in gpus.items():
        namespaces[_namespace(holder)] += amount
    return namespaces


def _on_node(node: Node, pods: tuple[BoundPod, ...], holds: tuple[Hold, ...]) -> Mapping[str, int]:
    """Who has GPUs on one node."""
    gpus: Counter[str] = Counter()
    for reservation, uses in holds:
        gpus[reservation.gang] += _gpus(node.allocatable if reservation.mode == "domain" else uses)
    covered: dict[str, list[BoundPod]] = {}
    for pod in pods:
        if amount := _gpus(pod.requests):
            if pod.reservation and holds:
                covered.setdefault(_namespace(pod.name), []).append(pod)
            else:
                gpus[pod.name] += amount
    for own in covered.values():
        gpus[own[0].name] += _gpus(unaccounted(own, holds))
    return +gpus


def _gpus(amounts: Resources) -> int:
    return sum(amounts.get(name, 0) for name in _WHOLE)


def _namespace(name: str) -> str:
    return name.partition("/")[0]
