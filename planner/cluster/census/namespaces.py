"""Who has which GPUs: by node, and by namespace of those that a gang may use.

    kind        nodes    research    inference        a gang that may use H100 nodes contests 64 GPUs,
    H100        8 x 8          48            8        of which research has 48 and inference 8;
    L4          4 x 1           -            4        what they have of other kinds counts for nothing

A gang has the GPUs that it holds, all of a node that is held whole; a pod has its own beside that. Parts of
GPUs (MIG, time slices) count for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.occupancy import Hold, unaccounted
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
    by_kind = snapshot.derived.get(_BY_KIND, "", lambda: _by_kind(snapshot))
    total: Counter[str] = Counter()
    for number in contested.kinds:
        total.update(by_kind.get(number, {}))
    return total


def gpus_by_node(snapshot: Snapshot) -> Mapping[str, Mapping[str, int]]:
    """By node the GPUs of each gang, and of each pod (NAMESPACE/NAME) beside what gangs hold; nodes of which
    nobody has any are left out."""
    return snapshot.derived.get(_BY_NODE, "", lambda: _by_node(snapshot))


@dataclass(frozen=True, slots=True)
class _NodeKinds:
    kinds: Sequence[NodeGroup]
    of_node: Mapping[str, int]


_KINDS: DerivedSection[str, _NodeKinds] = DerivedSection("node kinds")


_ADMITTING: DerivedSection[Hashable, dict[int, int]] = DerivedSection("nodes that admit GPUs", max_keys=64)
"""By what a pod asks of nodes. As many as a pass plans of those that wait."""


_BY_KIND: DerivedSection[str, dict[int, Counter[str]]] = DerivedSection("GPUs of namespaces by kind")


_BY_NODE: DerivedSection[str, Mapping[str, Mapping[str, int]]] = DerivedSection("GPUs of gangs by node")


_Counted = tuple[Node, tuple[BoundPod, ...], tuple[Hold, ...], Mapping[str, int]]


ON_NODES: CacheSection[str, dict[str, _Counted]] = CacheSection("GPUs of gangs on nodes", results=len)
"""By node what was counted there, and from which records: from one moment to the next few nodes change, and
each newcomer asks."""


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


def _by_kind(snapshot: Snapshot) -> dict[int, Counter[str]]:
    of_node = _node_kinds(snapshot.base).of_node
    total: dict[int, Counter[str]] = {}
    for name, gpus in gpus_by_node(snapshot).items():
        namespaces = total.setdefault(of_node[name], Counter())
        for holder, amount in gpus.items():
            namespaces[_namespace(holder)] += amount
    return total


def _by_node(snapshot: Snapshot) -> dict[str, Mapping[str, int]]:
    nodes, bound, holds = snapshot.nodes, snapshot.bound, snapshot.holds
    busy = [name for name in dict.fromkeys((*bound.by_node, *holds.by_node)) if name in nodes]
    cache = snapshot.base.plan_cache

    def counted() -> dict[str, Mapping[str, int]]:
        on_nodes = cache.entry(ON_NODES, "", dict)
        return {name: _on_node(on_nodes, nodes[name], bound.on(name), holds.on(name)) for name in busy}

    return {name: gpus for name, gpus in cache.exclusively(counted).items() if gpus}


def _on_node(
    on_nodes: dict[str, _Counted], node: Node, pods: tuple[BoundPod, ...], holds: tuple[Hold, ...]
) -> Mapping[str, int]:
    """Who has GPUs on one node, counted anew only where the records are others than last time."""
    before = on_nodes.get(node.name)
    if before is not None and before[0] is node and before[1] is pods and before[2] is holds:
        return before[3]
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
    gpus = +gpus
    on_nodes[node.name] = node, pods, holds, gpus
    return gpus


def _gpus(amounts: Resources) -> int:
    return sum(amounts.get(name, 0) for name in _WHOLE)


def _namespace(name: str) -> str:
    return name.partition("/")[0]
