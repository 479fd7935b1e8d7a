"""The snapshot of a watched cluster, updated by the changes since it was last read.

A changed pod, claim or quota, and a node whose fields changed, are applied to the previous snapshot, so that
cached results for all other nodes stay valid. The trees (of domains, one for each topology) are rebuilt only
if topologies, links or settings change, if nodes are added, removed or relabelled, or if more than `MANY`
objects have changed. Pure: the caller holds the lock.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping

from planner.cluster.build import snapshot
from planner.cluster.facts import RECORDS, fact, with_facts, with_records
from planner.cluster.hardware_update import with_hardware
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.manifests.cluster import aliased
from planner.manifests.topologies.label_presets import with_inferred_topology
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.topology import Topology

MANY = 4000
"""Number of changed pods and nodes above which a new snapshot is built: applying them would cost about the
same.
"""


MANY_NEW = 4
"""Number of added and removed nodes above which a new snapshot is built: each may rebuild the trees."""


class LiveSnapshot:
    """Keeps a snapshot current. `nodes` and `pods` are the current objects by key; `described` returns the
    current topologies, slices, settings and schedulers.

    Changes are recorded by key; `snapshot` applies them. Claims, volumes, quotas and all else that has a
    record for each object (`RECORDS`) begins empty, and `record_changed` states each of these records:
    reading 40,000 volumes again after one of them has changed took 0.4 s of each decision.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node],
        pods: Mapping[str, BoundPod],
        described: Callable[[], Infrastructure],
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._described = described
        self._fabric = described()
        self._snapshot: Snapshot | None = None
        self._bound_pods: dict[str, BoundPod] = {}
        """The pods in the snapshot, by key."""
        self._moved: dict[str, None] = {}
        self._changed_keys: dict[str, None] = {}
        """`_moved`, `_changed_keys`: the keys of nodes and of pods that changed since the last snapshot."""
        self._records: dict[str, dict[str, object]] = {}
        """The records that changed since the last snapshot, by fact and key."""
        self._redescribed = False

    def node_changed(self, key: str) -> None:
        """Records that a node was added, removed or changed."""
        self._moved[key] = None

    def pod_changed(self, key: str) -> None:
        """Records that a bound pod was added, removed or changed."""
        self._changed_keys[key] = None

    def record_changed(self, path: str, key: str, record: object) -> None:
        """Records that the record of an object under this fact (`RECORDS`) changed; None: it is gone."""
        self._records.setdefault(path, {})[key] = record

    def redescribe(self) -> None:
        """Records that anything changed that `described` returns."""
        self._redescribed = True

    def snapshot(self) -> Snapshot:
        """Returns the current snapshot. Its reservations are undefined: the caller adds those of the current
        book.
        """
        if self._redescribed or self._records:
            self._snapshot = self._with_current_facts(self._snapshot and self._snapshot.latest)
        if self._snapshot is None or self._is_new(self._snapshot):
            self._snapshot = self._anew()
        elif self._moved or self._changed_keys:
            self._snapshot = self._brought_up(self._snapshot.latest)
        return self._snapshot

    def _with_current_facts(self, former: Snapshot | None) -> Snapshot | None:
        """Returns `former` with the current facts; None if its trees must be built again."""
        redescribed, self._redescribed = self._redescribed, False
        if redescribed:
            kept = {path: fact(self._fabric, path) for path in RECORDS}
            self._fabric = with_facts(self._described(), kept)
        records, self._records = self._records, {}
        self._fabric = with_records(self._fabric, records)
        if former is None or (redescribed and not self._has_places_of(former)):
            return None
        return with_hardware(former, self._fabric)

    def _is_new(self, former: Snapshot) -> bool:
        """Returns whether so much has changed since `former` that building a new snapshot is cheaper."""
        if len(self._moved) + len(self._changed_keys) > MANY:
            return True
        return sum((key in self._nodes) != (key in former.nodes) for key in self._moved) > MANY_NEW

    def _anew(self) -> Snapshot:
        self._moved, self._changed_keys = {}, {}
        nodes = list(self._nodes.values())
        base = snapshot(nodes, self._topologies()).base
        # The trees are built here, under the caller's lock, and shared by all decisions.
        base.trees  # noqa: B018
        # These objects live as long as the snapshot. Visited by the garbage collector, they would
        # occasionally stop a decision for a tenth of a second at 100,000 nodes. What has ended in cycles is
        # freed first: frozen, it would stay for ever, and there are new snapshots for weeks.
        gc.collect()
        gc.freeze()
        self._bound_pods = dict(self._pods)
        return with_hardware(Snapshot(base, tuple(self._bound_pods.values())), self._fabric)

    def _brought_up(self, latest: Snapshot) -> Snapshot:
        moved, self._moved = self._moved, {}
        relabelled = False
        for key in moved:
            former_node, node = latest.nodes.get(key), self._nodes.get(key)
            relabelled |= former_node is None or node is None or former_node.labels != node.labels
            latest = latest.without_node(key) if node is None else latest.with_node(node)
        if relabelled and latest.topologies != tuple(self._topologies()):
            return self._anew()  # topologies that are derived from labels have changed
        latest.base.trees  # noqa: B018 - as in `_anew`
        changed_keys, self._changed_keys = self._changed_keys, {}
        for key in changed_keys:
            former, pod = self._bound_pods.pop(key, None), self._pods.get(key)
            if former is not None and (pod is None or pod.node != former.node):
                latest = latest.without_pod(former)
            if pod is not None:
                latest = latest.with_pod(pod)
                self._bound_pods[key] = pod
        return latest

    def _has_places_of(self, former: Snapshot) -> bool:
        """Returns whether the topologies, and the settings by which they are read, are the same as in
        `former`.
        """
        fabric, base = self._fabric, former.base
        if not fabric.settings.differ_only_in_history(base.settings):
            return False
        return (tuple(self._topologies()), fabric.links) == (former.topologies, base.links)

    def _topologies(self) -> list[Topology]:
        with_names = [topology for topology in self._fabric.topologies if topology.name]
        topologies = with_inferred_topology(with_names, self._nodes.values())
        return [t if t.name else aliased(t, self._fabric.settings) for t in topologies]
