"""Watches the objects of a cluster that the planner reads: nodes, pods, topologies, hardware and others.

Changes are passed to the `LiveSnapshot`, which applies them when the snapshot is next read. An invalid object
is left out with a reason, and never stops a watch.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.manifests.fields import CachedDocument
from planner.manifests.growth import STATUS_CONFIG, condensed
from planner.manifests.node import node_from
from planner.manifests.pods.bound_pod import pod_from
from planner.manifests.records import RECORD_KINDS, RecordKind
from planner.manifests.schedulers.systems import watched
from planner.manifests.settings import SCHEDULER_CONFIGS
from planner.model.errors import InputError, Where
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from webhook.admission.environment import Environment, pod_groups
from webhook.kube.api.client import Api, Json
from webhook.kube.api.discovery import served_path
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store
from webhook.kube.api.watches import Watches
from webhook.kube.state.live_snapshot import LiveSnapshot
from webhook.kube.state.scheduler_watch import SchedulerWatch
from webhook.placement.hold import is_used
from webhook.policy.engine.device_selectors import read_cluster
from webhook.workloads.shared_gangs.pod_groups import PodGroups

log = logging.getLogger("bayplan")


BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector for pods that use capacity: unbound and ended pods are never transferred."""


CONFIG_SPACES = ("kube-system", "kai-scheduler", "bayplan-system")
"""Namespaces from which schedulers' ConfigMaps are read. ConfigMaps of the same names in other namespaces are
ignored, because a tenant may have written them.
"""


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional resource that describes the cluster. An object of `RECORD_KINDS` is one record; all others
    are read together by `planner.manifests.cluster.read`.

    `name`: if set, only objects of this name are read, from `CONFIG_SPACES` and Bayplan's own namespace. Of
    objects that are read together, `condense` returns what is kept, and `has_status` tells whether their
    status is read. It is dropped otherwise, because a change makes the next decision read all of these
    objects again, and the status of a queue changes with each workload.
    """

    group: str
    resource: str
    kind: str
    name: str = ""
    condense: Callable[[Json, Where], Json] | None = None
    has_status: bool = False

    @property
    def record(self) -> RecordKind | None:
        """How one object is read by itself; None if the objects are read together."""
        return RECORD_KINDS.get((self.group, self.kind))

    @property
    def query(self) -> dict[str, str]:
        """The query parameters of the list and the watch."""
        return {"fieldSelector": f"metadata.name={self.name}"} if self.name else {}


EXTRAS = (
    Extra("bayplan.dev", "topologies", "Topology"),
    Extra("kai.scheduler", "topologies", "Topology"),
    Extra("kueue.x-k8s.io", "topologies", "Topology"),
    Extra("kueue.x-k8s.io", "resourceflavors", "ResourceFlavor"),
    Extra("kueue.x-k8s.io", "localqueues", "LocalQueue"),
    Extra("kueue.x-k8s.io", "clusterqueues", "ClusterQueue"),
    Extra("scheduling.run.ai", "queues", "Queue"),
    Extra("topology.scheduler", "topologyschedulerconfigs", "TopologySchedulerConfig"),
    Extra("topology.node.k8s.io", "noderesourcetopologies", "NodeResourceTopology"),
    Extra("resource.k8s.io", "resourceclaims", "ResourceClaim"),
    Extra("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Extra("resource.k8s.io", "resourceslices", "ResourceSlice"),
    Extra("resource.k8s.io", "deviceclasses", "DeviceClass"),
    Extra("resource.k8s.io", "devicetaintrules", "DeviceTaintRule"),
    Extra("resource.nvidia.com", "computedomains", "ComputeDomain"),
    Extra("", "limitranges", "LimitRange"),
    Extra("", "resourcequotas", "ResourceQuota"),
    Extra("", "persistentvolumes", "PersistentVolume"),
    Extra("", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Extra("storage.k8s.io", "storageclasses", "StorageClass"),
    Extra("scheduling.k8s.io", "priorityclasses", "PriorityClass"),
    Extra("node.k8s.io", "runtimeclasses", "RuntimeClass"),
    Extra("karpenter.sh", "nodepools", "NodePool", has_status=True),
    Extra("cluster.x-k8s.io", "machinedeployments", "MachineDeployment", has_status=True),
    Extra("", "configmaps", "ConfigMap", STATUS_CONFIG, condensed),
    *(Extra("", "configmaps", "ConfigMap", name) for name in SCHEDULER_CONFIGS),
)


_RUNTIME_CLASSES = ("node.k8s.io", "RuntimeClass")


GANGS = (
    Extra("scheduling.run.ai", "podgroups", "PodGroup"),
    Extra("scheduling.k8s.io", "podgroups", "PodGroup"),
    Extra("scheduling.k8s.io", "workloads", "Workload"),
    Extra("scheduling.volcano.sh", "podgroups", "PodGroup"),
)
"""Resources whose objects say which pods are a gang; none of them changes the snapshot."""


class ClusterWatch(Watches):
    """The part of a `webhook.server.cluster_source.ClusterSource` that comes from watches. `start` it, and
    `close` it after use.
    """

    def __init__(self, api: Api, namespace: str = "") -> None:
        """`namespace`: that of the installation, whose ConfigMaps are read too."""
        spaces = (*CONFIG_SPACES, namespace)
        self._lock = threading.Lock()  # decisions run in threads
        self._nodes: Store[Node] = Store(node_from, "Node", self._node_changed, self._lock)
        self._pods: Store[BoundPod] = Store(pod_from, "Pod", self._pod_changed, self._lock)
        self._spaces: Store[Json] = Store(_namespace, "Namespace", self._namespace_changed, self._lock)
        self._gangs = [Store(partial(_typed, gang), gang.kind, self._regrouped, self._lock) for gang in GANGS]
        self._groups: PodGroups | None = {}
        """None from a change until the next read: the thousands of changes of a list need one computation."""
        self._extras = [self._store(extra, spaces) for extra in EXTRAS]
        self._schedulers = SchedulerWatch()
        self._static = read_cluster(()).base
        self._static_problem = ""
        self._described_without: list[tuple[str, str]] = []
        """What `_unread` returned when `_static` was read."""
        self.news = asyncio.Event()
        """Set after each change of the snapshot; the waiting task clears it."""
        described = (
            Reflector(
                api,
                f"{resource.resource}.{resource.group}",
                store,
                find=partial(self.find, api, resource),
                query=resource.query,
            )
            for resource, store in zip((*EXTRAS, *GANGS), (*self._extras, *self._gangs), strict=True)
        )
        super().__init__(
            [
                Reflector(api, "/api/v1/nodes", self._nodes),
                Reflector(api, "/api/v1/pods", self._pods, query={"fieldSelector": BOUND}),
                Reflector(api, "/api/v1/namespaces", self._spaces),
                *described,
            ]
        )
        self._picture = LiveSnapshot(self._nodes.items, self._pods.items, self._described)

    def problem(self) -> str:
        """Returns the problems of the watches, and whether topology objects contradict each other; "" if
        there are none. Invalid objects (see `left_out`) are no problem: the snapshot is current without them.
        """
        return "; ".join(filter(None, (super().problem(), self._static_problem)))

    def has_pod(self, key: str) -> bool:
        """Returns whether the pod NAMESPACE/NAME is bound and has not ended. Thread-safe."""
        with self._lock:
            return self._pods.knows(key)

    def uses(self, reservation: Reservation) -> bool:
        """Returns whether a bound pod uses this reservation. Thread-safe."""
        with self._lock:
            return is_used(self._picture.snapshot(), reservation)

    def left_out(self) -> dict[str, str]:
        """Returns why invalid objects are not in the snapshot, by key."""
        with self._lock:
            stores = (self._nodes.bad, self._pods.bad, *(store.bad for store in self._extras))
            return {key: why for bad in stores for key, why in bad.items()}

    def environment(self) -> Environment:
        """Returns an environment with the namespaces, and the objects that pods name as their gang.
        Thread-safe.
        """
        with self._lock:
            return Environment(dict(self._spaces.items), podgroups=self._current_groups())

    def pod_groups(self) -> PodGroups:
        """Returns the PodGroup and Workload objects that define gangs; the same mapping until one of them
        changes. Thread-safe.
        """
        with self._lock:
            return self._current_groups()

    def _current_groups(self) -> PodGroups:
        if self._groups is None:
            self._groups = pod_groups(item for store in self._gangs for item in store.items.values())
        return self._groups

    def knows_namespace(self, name: str) -> bool:
        """Returns whether the Namespace has been seen; True for "". Thread-safe."""
        with self._lock:
            return not name or self._spaces.knows(name)

    def snapshot(self) -> Snapshot | None:
        """Returns the current snapshot, None until every watch has listed its resource. Thread-safe.

        Its reservations are undefined: the planning code adds those of the book (`Snapshot.with_book`).
        """
        if self.waiting():
            return None
        with self._lock:
            if self._unread() != self._described_without:
                self._picture.redescribe()
            return self._picture.snapshot()

    def _unread(self) -> list[tuple[str, str]]:
        """Returns the group and kind of the resources that may not be listed."""
        reflectors = self.reflectors[-len(EXTRAS) - len(GANGS) :]
        extras = zip(reflectors, (*EXTRAS, *GANGS), strict=True)
        return [(extra.group, extra.kind) for reflector, extra in extras if reflector.forbidden]

    def _described(self) -> Infrastructure:
        """Returns the current topologies, slices, settings and schedulers; the last valid ones if two objects
        contradict each other.
        """
        try:
            stores = zip(EXTRAS, self._extras, strict=True)
            items = [item for extra, store in stores if not extra.record for item in store.items.values()]
            read = read_cluster(("", item) for item in (*items, *self._schedulers.definitions())).base
            unread = self._described_without = self._unread()
            seen = watched(read.schedulers, self._schedulers.pods(), unread)
            complete = replace(read.runtime_classes, complete=_RUNTIME_CLASSES not in unread)
            self._static = replace(read, schedulers=seen, runtime_classes=complete)
            self._static_problem = ""
        except InputError as error:  # two objects contradict each other
            self._static_problem = str(error)
        return self._static

    def _node_changed(self, key: str, *_: object) -> None:
        self._picture.node_changed(key)
        self.news.set()

    async def find(self, api: Api, extra: Extra) -> str:
        """Returns the API path of a resource, "" if it is not served, and records whether it is: a served
        kind shows that its scheduler is installed.
        """
        path = await served_path(api, extra.group, extra.resource)
        with self._lock:
            if self._schedulers.kind_found(extra.group, extra.kind, extra.resource, bool(path)):
                self._redescribed(path)
        return path

    def _pod_changed(self, key: str, _: BoundPod | None, pod: BoundPod | None) -> None:
        self._picture.pod_changed(key)
        if self._schedulers.pod_changed(key, pod.shows if pod is not None else ()):
            self._picture.redescribe()
        self.news.set()

    def _store(self, extra: Extra, spaces: Container[str]) -> Store[Any]:
        """Returns a store of what is read of this resource: records, or documents that are read together."""
        if extra.record is None:
            return Store(_checked(extra, spaces), extra.kind, self._redescribed, self._lock)
        return Store(
            extra.record.read, extra.kind, partial(self._record_changed, extra.record.fact), self._lock
        )

    def _redescribed(self, *_: object) -> None:
        self._picture.redescribe()
        self.news.set()

    def _record_changed(self, path: str, key: str, _: object, record: object) -> None:
        self._picture.record_changed(path, key, record)
        self.news.set()

    def _namespace_changed(self, key: str, _: Json | None, item: Json | None) -> None:
        kind = RECORD_KINDS["", "Namespace"]
        record = kind.read(item, Where(object=f"Namespace {key}")) if item is not None else None
        self._record_changed(kind.fact, key, None, record)

    def _regrouped(self, *_: object) -> None:
        """Records changed PodGroups: the snapshot stays, but stored workloads may belong to other gangs
        now.
        """
        self._groups = None
        self.news.set()


def _checked(extra: Extra, spaces: Container[str]) -> Callable[[Json, Where], Json | None]:
    """Returns a reader that checks an object, and adds apiVersion and kind, which list items lack.

    The reader raises `InputError` for an invalid object, and returns None for one that is not read.
    """

    def check(item: Json, where: Where) -> Json | None:
        if extra.name and item["metadata"].get("namespace") not in spaces:
            return None
        if extra.condense is not None:
            item = extra.condense(item, where)
        document = CachedDocument({**item, "apiVersion": _version(extra), "kind": extra.kind})
        metadata = {key: value for key, value in item["metadata"].items() if key not in _FLEETING}
        document["metadata"] = metadata
        if not extra.has_status:
            document.pop("status", None)
        read_cluster([(where.file, document)])
        return document

    return check


def _version(extra: Extra) -> str:
    return f"{extra.group}/v1" if extra.group else "v1"


_FLEETING = ("resourceVersion", "managedFields", "generation")
"""Metadata fields that are dropped: else an update that changes nothing else would count as a change."""


def _typed(extra: Extra, item: Json, _: Where) -> Json:
    """Returns the object without its status, which changes often and does not affect gangs."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in _FLEETING}
    stated = {key: value for key, value in item.items() if key != "status"}
    return {**stated, "metadata": metadata, "apiVersion": _version(extra), "kind": extra.kind}


def _namespace(item: Json, where: Where) -> Json:
    RECORD_KINDS["", "Namespace"].read(item, where)  # raises an error for labels that are no texts
    return {"apiVersion": "v1", "kind": "Namespace", **item}
