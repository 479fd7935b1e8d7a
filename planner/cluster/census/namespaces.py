"""Counts which GPUs each gang and namespace has, by node and by kind of node.

    kind        nodes    research    inference        a gang that may use H100 nodes competes for 64 GPUs,
    H100        8 x 8          48            8        of which research has 48 and inference 8;
    L4          4 x 1           -            4        GPUs on other kinds of nodes are not counted

A gang has the GPUs that it has reserved, and all GPUs of nodes that it holds whole. A pod has the GPUs that
its gang's reservation does not cover. GPU partitions and shares (MIG, time slices) are not counted.

A *census*, all these counts for one snapshot, is derived from the previous one: only nodes that have changed
since are counted. Each admission changes the snapshot, and counting all of 5,000 nodes again took four times
as long as the rest of a decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.plan_cache import CacheSection, DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import Hold, unaccounted
from planner.model.names import namespace_of
from planner.model.node import Node
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import PodGroup
from planner.model.resources import CLAIMED_GPU, GPU_RESOURCES, WHOLE_GPUS, Resources
from planner.node.node_groups import NodeGroup, node_groups
from planner.persistent.persistent_map import PersistentMap, may_differ

Kinds = frozenset[int]
"""Kinds of nodes (`planner.node.node_groups`), as indexes into the list of all kinds of the cluster."""


@dataclass(frozen=True, slots=True)
class Contested:
    """The GPUs on all nodes that a gang's pods may use, free or not: their `total`, and the `kinds` of the
    nodes.
    """

    kinds: Kinds
    total: int


def contested_gpus(snapshot: Snapshot, group: PodGroup) -> Contested:
    """Returns the GPUs, free or in use, of all nodes that the gang's pods may use: those whose labels and
    taints allow a pod, and that have as many GPUs as it requests.
    """
    kinds = _node_kinds(snapshot.base).kinds
    nodes: dict[int, int] = {}
    for shape in {id(part.shape): part.shape for part in group.pod_sets if part.shape.gpus}.values():
        for number, admitting in _admitting(snapshot.base, shape).items():
            nodes[number] = max(admitting, nodes.get(number, 0))
    return Contested(frozenset(nodes), sum(kinds[number].gpus * count for number, count in nodes.items()))


def gpus_of_node(snapshot: Snapshot, node: Node, contested: Contested) -> int:
    """Returns the number of the node's GPUs if its kind is one that the gang may use (`contested.kinds`); 0
    for other kinds, and if the node is cordoned or not ready.
    """
    node_kinds = _node_kinds(snapshot.base)
    number = node_kinds.of_node.get(node.name, -1)
    return (
        node_kinds.kinds[number].gpus if number in contested.kinds and node.ready and not node.cordoned else 0
    )


def gpus_of_namespaces(snapshot: Snapshot, contested: Contested) -> Mapping[str, int]:
    """Returns how many of the contested GPUs each namespace has."""
    by_kind = _census(snapshot).by_kind
    total: Counter[str] = Counter()
    for number in contested.kinds:
        total.update(by_kind.get(number, {}))
    return total


def gpus_by_node(snapshot: Snapshot) -> Mapping[str, Mapping[str, int]]:
    """Returns for each node the GPUs of each gang, and of each pod (NAMESPACE/NAME) beyond its gang's
    reservation.

    Nodes on which nobody has GPUs are left out.
    """
    return _census(snapshot).by_node


@dataclass(frozen=True, slots=True)
class _NodeKinds:
    kinds: Sequence[NodeGroup]
    of_node: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Census:
    """The counts, and the records from which they were computed."""

    nodes: Mapping[str, Node] = field(default_factory=PersistentMap)
    pods: PersistentMap[str, tuple[BoundPod, ...]] = field(default_factory=PersistentMap)
    holds: PersistentMap[str, tuple[Hold, ...]] = field(default_factory=PersistentMap)
    node_kinds: _NodeKinds | None = None
    by_node: PersistentMap[str, Mapping[str, int]] = field(default_factory=PersistentMap)
    """The GPUs of each gang and pod, by node. Nodes on which nobody has GPUs are left out."""
    by_kind: Mapping[int, Counter[str]] = field(default_factory=dict)
    """The GPUs of each namespace, by kind of node."""


@dataclass(slots=True)
class _Latest:
    """A cache entry with the latest census, which each new census replaces."""

    census: _Census = field(default_factory=_Census)


_KINDS: DerivedSection[str, _NodeKinds] = DerivedSection("node kinds")


_ADMITTING: DerivedSection[Hashable, dict[int, int]] = DerivedSection("nodes that admit GPUs", max_keys=64)
"""The result of `_admitting`, by a pod's node requirements. Bounded by the number of waiting gangs that the
controller plans in one pass."""


_CENSUS: DerivedSection[str, _Census] = DerivedSection("GPUs of gangs and namespaces")


LATEST_CENSUS: CacheSection[str, _Latest] = CacheSection(
    "latest census", results=lambda latest: len(latest.census.by_node)
)
"""The census from which the next one is derived."""


def _node_kinds(base: Infrastructure) -> _NodeKinds:
    def worked_out() -> _NodeKinds:
        kinds = node_groups(base.nodes.values(), resources_tolerated=base.tolerates_resources)
        return _NodeKinds(
            kinds, {node.name: number for number, kind in enumerate(kinds) for node in kind.nodes}
        )

    return base.node_values.get(_KINDS, "", worked_out)


def _admitting(base: Infrastructure, shape: PodShape) -> Mapping[int, int]:
    """Returns how many nodes of each kind the pod may use, by the index of the kind."""
    shape = base.runtime_classes.admitted(shape)

    def counted() -> dict[int, int]:
        kinds = enumerate(_node_kinds(base).kinds)
        nodes = {
            number: kind.admitting(shape) for number, kind in kinds if _large_enough(kind, shape.requests)
        }
        return {number: count for number, count in nodes.items() if count}

    gpus = tuple((name, shape.requests.get(name, 0)) for name in WHOLE_GPUS)
    selected = tuple(sorted(shape.node_selector.items()))
    return base.node_values.get(_ADMITTING, (selected, shape.affinity, shape.tolerations, gpus), counted)


def _large_enough(kind: NodeGroup, requests: Resources) -> bool:
    """Reports whether a node of the kind has as many GPUs as one pod requests, for claimed GPUs under any
    resource name.
    """
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
    """Returns the census of the snapshot, derived from another one by counting only the nodes that differ."""
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
    """Returns the GPUs of each namespace by kind, after the nodes in `changed` have these GPUs (None: no
    GPUs).
    """
    by_kind: dict[int, Counter[str]] = {}
    for name, gpus in changed.items():
        number = node_kinds.of_node[name]
        if number not in by_kind:
            by_kind[number] = Counter(former.by_kind.get(number, {}))
        by_kind[number].subtract(_of_namespaces(former.by_node.get(name, {})))
        by_kind[number].update(_of_namespaces(gpus or {}))
    # `+` drops the namespaces without GPUs.
    return {**former.by_kind, **{number: +namespaces for number, namespaces in by_kind.items()}}


def _of_namespaces(gpus: Mapping[str, int]) -> Counter[str]:
    namespaces: Counter[str] = Counter()
    for holder, amount in gpus.items():
        namespaces[namespace_of(holder)] += amount
    return namespaces


def _on_node(node: Node, pods: tuple[BoundPod, ...], holds: tuple[Hold, ...]) -> Mapping[str, int]:
    """Returns the GPUs of each gang and each pod on one node."""
    gpus: Counter[str] = Counter()
    for reservation, uses in holds:
        gpus[reservation.gang] += _gpus(node.allocatable if reservation.mode == "domain" else uses)
    covered: dict[str, list[BoundPod]] = {}
    for pod in pods:
        if amount := _gpus(pod.requests):
            if pod.reservation and holds:
                covered.setdefault(namespace_of(pod.name), []).append(pod)
            else:
                gpus[pod.name] += amount
    for own in covered.values():  # what a namespace's pods use beyond reservations counts for its first pod
        gpus[own[0].name] += _gpus(unaccounted(own, holds))
    return +gpus


def _gpus(amounts: Resources) -> int:
    return sum(amounts.get(name, 0) for name in WHOLE_GPUS)
