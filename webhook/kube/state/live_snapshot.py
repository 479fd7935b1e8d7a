"""The snapshot of a cluster that is watched, kept up with what changed since it was last asked for.

A pod that came or went, and a node whose words changed, are put into the snapshot of before; so what a plan
worked out about all other nodes still serves. Only topologies, and nodes that come or go, have the trees
built anew. Pure: who calls holds the lock.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import replace

from planner.cluster.hardware_update import with_hardware
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot, snapshot
from planner.manifests.cluster import aliased
from planner.manifests.topologies.label_presets import with_labels_beside_pools
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.topology import Topology

MANY = 4000
"""Changed pods and nodes from which on all is built anew, which costs about as much."""


MANY_NEW = 4
"""Nodes that came or went, likewise: each of them would have the trees built anew."""


class LiveSnapshot:
    """`nodes` and `pods` are what is there now, by key; `described` reads topologies, hardware and limits.

    What changed is told by key; `snapshot` takes it in.
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
        """The pods that are in the snapshot, by key."""
        self._moved: dict[str, None] = {}
        self._stirred: dict[str, None] = {}
        self._redescribed = False

    def node_moved(self, key: str) -> None:
        """A node came, went, or says something else."""
        self._moved[key] = None

    def pod_moved(self, key: str) -> None:
        """A bound pod came, went, or says something else."""
        self._stirred[key] = None

    def redescribe(self) -> None:
        """A topology, or what is known of hardware and limits, changed."""
        self._redescribed = True

    def snapshot(self) -> Snapshot:
        """The snapshot of now, with the reservations of whatever book was last put into the former one."""
        if self._redescribed:
            self._redescribed, self._fabric = False, self._described()
            former = self._snapshot.latest if self._snapshot is not None else None
            kept = former is not None and self._has_places_of(former)
            self._snapshot = with_hardware(former, self._fabric) if former is not None and kept else None
        if self._snapshot is None or self._is_new(self._snapshot):
            self._snapshot = self._anew()
        elif self._moved or self._stirred:
            self._snapshot = self._brought_up(self._snapshot.latest)
        return self._snapshot

    def _is_new(self, former: Snapshot) -> bool:
        """Whether so much changed that all is better built anew."""
        if len(self._moved) + len(self._stirred) > MANY:
            return True
        return sum((key in self._nodes) != (key in former.nodes) for key in self._moved) > MANY_NEW

    def _anew(self) -> Snapshot:
        self._moved, self._stirred = {}, {}
        nodes = list(self._nodes.values())
        base = snapshot(nodes, self._topologies()).base
        # Built here, under the caller's lock, and shared by all decisions.
        base.trees  # noqa: B018
        # All of this lives as long as the picture: looked through by the collector of cycles, it would stop
        # now and then a decision for a tenth of a second at 100,000 nodes.
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
            return self._anew()  # no Topology is there, and the labels tell another one
        latest.base.trees  # noqa: B018 - as in `_anew`
        stirred, self._stirred = self._stirred, {}
        for key in stirred:
            former, pod = self._bound_pods.pop(key, None), self._pods.get(key)
            if former is not None and (pod is None or pod.node != former.node):
                latest = latest.without_pod(former)
            if pod is not None:
                latest = latest.with_pod(pod)
                self._bound_pods[key] = pod
        return latest

    def _has_places_of(self, former: Snapshot) -> bool:
        """Whether the topologies, and how they are to be read, are still the same."""
        fabric = self._fabric
        settings = replace(fabric.settings, history=former.base.settings.history)
        facts = (tuple(self._topologies()), fabric.links, settings)
        return facts == (former.topologies, former.base.links, former.base.settings)

    def _topologies(self) -> list[Topology]:
        with_names = [topology for topology in self._fabric.topologies if topology.name]
        topologies = with_labels_beside_pools(with_names, self._nodes.values())
        return [t if t.name else aliased(t, self._fabric.settings) for t in topologies]
