"""The CEL variable `cluster`: what policies can read about the cluster, as plain JSON.

- `known`: true if there is a cluster
- `topologies`: the level keys of each topology, by its name ("" for one derived from node labels);
  `aliases`: by topology, the label key of each level by its other names; `hostless`: topologies whose object
  does not list the hostname level, which Bayplan adds
- `levels`: the level keys of all topologies
- `nodePools`: by name, `nodes` (their number), `selector` and `topology` ("" if not known) of each node pool,
  and whether KAI's node-pool label makes the pool (`byLabel`), not the selector of a Topology
- `largestFree`: by topology and level, the domain with the most free GPUs (`domain`), the number of these
  GPUs (`gpus`), and the most GPUs that any domain of the level has when it is empty (`gpusWhenEmpty`)
- `nodes`, `gpus`: number of nodes and of their GPUs; `resources`: the largest amount of each resource on any
  node
- `mig`: by GPU product, the MIG profiles of the board (`profiles`, empty for an unknown board), and the most
  slices of each profile that one node has when it is empty (`most`), and that are free on one node (`free`)
- `gpuShare`: for each product and GPU resource, one GPU's share of its node (`gpu_shares`)
- `domains`: every domain above the hosts; `gpuNodes`: the kinds of GPU nodes by labels (`cluster_inventory`)
- `watched`: true if the cluster is watched, so that an object that is not listed does not exist; false for
  files, which may be incomplete
- `schedulers`: by schedulerName (Kueue by "kueue"), the object or pod by which the scheduler was detected
  ("" for the default scheduler); `queues`: the known queues of each system, Kueue's as NAMESPACE/NAME;
  `followed`: by system ("bayplan" is Bayplan itself), the level keys of each Topology object that the system
  reads, by name (`planner.manifests.schedulers`); `queueTopologies`: by Kueue LocalQueue, the Topologies of
  its flavors, if known
- `nodeKinds`: nodes grouped by what they offer, an argument of policy functions (`planner.node.node_groups`)
- `numa`, `claims`, `cliques`, `limits`, `migNodes`: see `cluster_hardware`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, chain
from typing import Any, cast
from weakref import WeakValueDictionary

from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.tree import TopologyTree
from planner.manifests.topologies.label_presets import NODE_POOL
from planner.model.pod import DEFAULT_SCHEDULER
from planner.model.resources import GPU_RESOURCES, MIG_PREFIX, PRODUCT_LABEL, Resources
from planner.model.topology import Topology
from planner.node.mig import profiles_of
from planner.node.node_groups import node_groups
from webhook.variables.cluster_hardware import HARDWARE_OF_NODES, OF_RECORDS, SameRecords
from webhook.variables.cluster_inventory import domains, gpu_nodes
from webhook.variables.gpu_shares import gpu_shares

_NODE_KEYS: DerivedSection[str, object] = DerivedSection("keys of `cluster` that depend on nodes")
"""Caches the values of `_OF_NODES` by key; they depend only on nodes, topologies and schedulers."""


_OF_RECORDS: Mapping[str, DerivedSection[SameRecords, object]] = {
    name: DerivedSection(f"`cluster.{name}`", max_keys=2) for name in OF_RECORDS
}
"""Caches the values of `OF_RECORDS`: of the current records, and of those of decisions still in progress."""


_POD_KEYS: DerivedSection[str, object] = DerivedSection("keys of `cluster` that depend on pods")
"""Caches the values of `_OF_PODS` by key; they depend on the whole snapshot."""


NO_CLUSTER: Mapping[str, Any] = {
    "known": False,
    "topologies": {},
    "aliases": {},
    "hostless": [],
    "levels": [],
    "nodePools": [],
    "mig": {},
    "resources": {},
    "gpuShare": [],
    "nodeKinds": [],
    "largestFree": {},
    "domains": [],
    "gpuNodes": [],
    "nodes": 0,
    "gpus": 0,
    "numa": [],
    "claims": {"claims": {}, "templates": {}, "domains": {}},
    "cliques": {},
    "limits": {},
    "runtimeClasses": {},
    "migNodes": [],
    "watched": False,
    "schedulers": {},
    "queues": {},
    "followed": {},
    "queueTopologies": {},
}
"""The value of `cluster` without a cluster: the same keys, all empty."""


class ClusterVariable(Mapping[str, object]):
    """The variable `cluster` of one snapshot; each value is computed on first use, and cached with the
    snapshot.

    Values that do not depend on pods and reservations are cached with `snapshot.base`, most of them as
    `node_values`, so they are computed again only when nodes change.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __getitem__(self, name: str) -> object:
        if name in _OF_NODES:
            return self._snapshot.base.node_values.get(
                _NODE_KEYS, name, lambda: _OF_NODES[name](self._snapshot)
            )
        if name in OF_RECORDS:
            compute, paths = OF_RECORDS[name]
            base = self._snapshot.base
            key = SameRecords(base, paths)
            return base.node_values.get(_OF_RECORDS[name], key, lambda: compute(self._snapshot))
        return self._of_pods(name)

    def _of_pods(self, name: str) -> object:
        return self._snapshot.derived.get(_POD_KEYS, name, lambda: _OF_PODS[name](self._snapshot))

    def __iter__(self) -> Iterator[str]:
        return chain(_OF_NODES, OF_RECORDS, _OF_PODS)

    def __len__(self) -> int:
        return len(_OF_NODES) + len(OF_RECORDS) + len(_OF_PODS)


class ClusterOfNodes(ClusterVariable):
    """The variable `cluster` with stand-ins for the values that change with pods and reservations, and with
    the limits of the object's own namespace alone. So a result that is computed without reading a stand-in is
    valid until the nodes, the claims or these limits change (`shared_limits`). `stand_in` returns a new one.
    """

    def __init__(self, snapshot: Snapshot, namespace: str, stand_in: Callable[[], object]) -> None:
        super().__init__(snapshot)
        self._stand_ins = {name: stand_in() for name in _OF_PODS}
        self._stand_ins["limits"] = _OwnLimits(snapshot, namespace, stand_in())

    def __getitem__(self, name: str) -> object:
        return self._stand_ins[name] if name in self._stand_ins else super().__getitem__(name)


class _OwnLimits(Mapping[str, object]):
    """`cluster.limits` of one namespace, with a stand-in for its ResourceQuotas: what they have left changes
    with each pod. Whatever is asked of another namespace reads the stand-in.
    """

    def __init__(self, snapshot: Snapshot, namespace: str, stand_in: object) -> None:
        self._namespace, self._stand_in = namespace, stand_in
        self._own = _limits_of(snapshot, namespace)

    def __getitem__(self, name: str) -> object:
        if name != self._namespace:
            len(self._stand_in)  # type: ignore[arg-type]
        if self._own is None:
            raise KeyError(name)
        return {**self._own, "quotas": self._stand_in} if self._own["quotas"] else self._own

    def __iter__(self) -> Iterator[str]:
        return iter(self._stand_in)  # type: ignore[call-overload, no-any-return]

    def __len__(self) -> int:
        return len(self._stand_in)  # type: ignore[arg-type]


def _limits_of(snapshot: Snapshot, namespace: str) -> Mapping[str, object] | None:
    limits: Any = cluster_variable(snapshot)["limits"]
    return cast("Mapping[str, object] | None", limits.get(namespace))


def shared_limits(snapshot: Snapshot, namespace: str) -> object:
    """Returns the limits of a namespace that `ClusterOfNodes` shows, as JSON: the bounds of its LimitRanges,
    and whether it has ResourceQuotas; None if it has neither.
    """
    own = _limits_of(snapshot, namespace)
    return own and [own["ranges"], bool(own["quotas"])]


_VARIABLES: DerivedSection[None, WeakValueDictionary[None, ClusterVariable]] = DerivedSection(
    "the variable `cluster`"
)
"""The variable of each snapshot while somebody uses it. The snapshot does not keep it: it refers to the
snapshot, and only the cycle collector would free both, which skips old objects (`gc.freeze`).
"""


def records_of_cluster(snapshot: Snapshot) -> SameRecords:
    """Returns a cache key for the records that `ClusterOfNodes` depends on, except for `shared_limits`."""
    shown = [paths for name, (_, paths) in OF_RECORDS.items() if name != "limits"]
    return SameRecords(snapshot.base, [path for paths in shown for path in paths])


def cluster_variable(snapshot: Snapshot) -> ClusterVariable:
    """Returns the `cluster` of a snapshot, one for all its users, who must not modify it."""
    used = snapshot.derived.get(_VARIABLES, None, WeakValueDictionary)
    return used.setdefault(None, ClusterVariable(snapshot))


def _topologies(snapshot: Snapshot) -> list[Topology]:
    return [topology for topology in snapshot.topologies if topology.source != "none"]


def _all_largest(snapshot: Snapshot) -> dict[str, object]:
    free = {name: _free(snapshot, name) for name in snapshot.nodes}
    return {t.name: _largest(snapshot.base.trees[t.name], free) for t in _topologies(snapshot)}


def _free(snapshot: Snapshot, name: str) -> dict[str, int]:
    """Returns the node's free amounts by resource; {} if it is cordoned, not ready or held whole by a
    gang.
    """
    node = snapshot.nodes[name]
    if node.cordoned or not node.ready or name in snapshot.holders:
        return {}
    taken = snapshot.taken.get(name, {})
    return {
        resource: max(0, amount - taken.get(resource, 0)) for resource, amount in node.allocatable.items()
    }


def _gpus(amounts: Resources) -> int:
    return sum(amounts.get(name, 0) for name in GPU_RESOURCES)


def _largest(tree: TopologyTree, free: Mapping[str, Resources]) -> dict[str, object]:
    """Returns the entries of `largestFree` for one topology, by level key.

    `free`: the free amounts of each node, by name."""
    # Sums over the first n nodes of the tree. A domain is a range of nodes, so its sum is a difference.
    free_sums = [0]
    empty = [0]
    for node in tree.nodes:
        free_sums.append(free_sums[-1] + _gpus(free[node.name]))
        empty.append(empty[-1] + _gpus(node.allocatable))
    by_level: dict[str, object] = {}
    for level, branches in zip(tree.topology.levels, tree.levels, strict=True):
        ends = accumulate(map(len, branches), initial=0)
        spans = [(start, start + len(b), b) for start, b in zip(ends, branches, strict=False) if b.has_name]
        best = max(spans, key=lambda span: (free_sums[span[1]] - free_sums[span[0]], -span[0]), default=None)
        if best is not None:
            by_level[level] = {
                "gpus": free_sums[best[1]] - free_sums[best[0]],
                "domain": list(best[2].path),
                "gpusWhenEmpty": max(empty[end] - empty[start] for start, end, _ in spans),
            }
    return by_level


def _pools(snapshot: Snapshot) -> dict[str, object]:
    """Returns the node pools by name: topologies with a node selector, and the values of KAI's node pool
    label (`byLabel`). The latter have a topology if exactly one topology contains all of their nodes.
    """
    pools: dict[str, object] = {
        t.name: {
            "nodes": len(snapshot.base.trees[t.name].nodes),
            "selector": dict(t.node_selector),
            "topology": t.name,
            "byLabel": False,
        }
        for t in snapshot.topologies
        if t.node_selector
    }
    labelled: dict[str, list[str]] = {}
    for node in snapshot.nodes.values():
        if pool := node.labels.get(NODE_POOL, ""):
            labelled.setdefault(pool, []).append(node.name)
    homes = _homes(snapshot) if labelled else {}
    for pool, names in sorted(labelled.items()):
        shared = set.intersection(*(homes.get(name, set()) for name in names))
        entry = {"nodes": len(names), "selector": {NODE_POOL: pool}, "byLabel": True}
        pools.setdefault(pool, {**entry, "topology": next(iter(shared)) if len(shared) == 1 else ""})
    return pools


def _homes(snapshot: Snapshot) -> dict[str, set[str]]:
    """Returns the names of the topologies to which each node belongs, by node name."""
    homes: dict[str, set[str]] = {}
    for topology in snapshot.topologies:
        if topology.source != "none":
            for node in snapshot.base.trees[topology.name].nodes:
                homes.setdefault(node.name, set()).add(topology.name)
    return homes


def _resources(snapshot: Snapshot) -> dict[str, int]:
    largest: dict[str, int] = {}
    for node in snapshot.nodes.values():
        for name, amount in {**node.allocatable, **node.pending}.items():
            largest[name] = max(largest.get(name, 0), amount)
    return dict(sorted(largest.items()))


def _mig(snapshot: Snapshot) -> dict[str, object]:
    by_product: dict[str, dict[str, dict[str, int]]] = {}
    for name, node in snapshot.nodes.items():
        product = node.labels.get(PRODUCT_LABEL, "")
        offers = {**node.allocatable, **node.pending}
        slices = {r.removeprefix(MIG_PREFIX): n for r, n in offers.items() if r.startswith(MIG_PREFIX)}
        if not product and not slices:
            continue
        facts = by_product.setdefault(product, {"most": {}, "free": {}})
        free = _free(snapshot, name) if slices else {}
        for profile, count in slices.items():
            facts["most"][profile] = max(facts["most"].get(profile, 0), count)
            amount = free.get(MIG_PREFIX + profile, 0)
            facts["free"][profile] = max(facts["free"].get(profile, 0), amount)
    return {
        product: {"profiles": list(profiles_of(product)), **facts}
        for product, facts in sorted(by_product.items())
    }


def _followed(snapshot: Snapshot) -> dict[str, object]:
    """Returns the level keys of the Topology objects that each system reads, by system and object name."""
    topologies = snapshot.base.schedulers.topologies
    return {
        system: {name: list(levels) for name, levels in own.items()} for system, own in topologies.items()
    }


_Maker = Callable[[Snapshot], object]


_OF_NODES: dict[str, _Maker] = {
    "known": lambda snapshot: True,
    "topologies": lambda snapshot: {t.name: list(t.levels) for t in _topologies(snapshot)},
    "aliases": lambda snapshot: {t.name: dict(t.aliases) for t in _topologies(snapshot) if t.aliases},
    "hostless": lambda snapshot: [t.name for t in _topologies(snapshot) if t.hostless],
    "levels": lambda snapshot: sorted({level for t in _topologies(snapshot) for level in t.levels}),
    "nodePools": _pools,
    "resources": _resources,
    "nodeKinds": lambda snapshot: node_groups(
        snapshot.nodes.values(), resources_tolerated=snapshot.base.tolerates_resources
    ),
    "gpuShare": lambda snapshot: gpu_shares(snapshot.nodes.values()),
    "domains": domains,
    "gpuNodes": lambda snapshot: gpu_nodes(snapshot.nodes.values()),
    "nodes": lambda snapshot: len(snapshot.nodes),
    "gpus": lambda snapshot: sum(_gpus(node.allocatable) for node in snapshot.nodes.values()),
    "watched": lambda snapshot: snapshot.base.schedulers.watched,
    "schedulers": lambda snapshot: {DEFAULT_SCHEDULER: "", **snapshot.base.schedulers.shown},
    "queues": lambda snapshot: {s: sorted(names) for s, names in snapshot.base.schedulers.queues.items()},
    "followed": _followed,
    "queueTopologies": lambda snapshot: {
        queue: sorted(names) for queue, names in snapshot.base.schedulers.queue_topologies.items()
    },
    **HARDWARE_OF_NODES,
}
"""Functions that compute the values that change only with nodes, topologies and schedulers, by key."""


_OF_PODS: dict[str, _Maker] = {"largestFree": _all_largest, "mig": _mig}
"""Functions that compute the values that also change with pods and reservations, by key."""
