"""The picture of the cluster from watches: what the planner reads of nodes, pods, topologies and hardware.

What is expensive is kept apart: the trees are built anew only when the own words of a node or a topology
changed (a heartbeat changes none of them), and the pods' list only when a bound pod came or went. What cannot
be read is left out with a reason, and never stops a watch.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from planner.cluster import node_from, pod_from, read
from planner.errors import InputError, Where
from planner.node import BoundPod, Node
from planner.presets import INFERRED, infer
from planner.snapshot import Fabric, Snapshot, snapshot
from webhook.kube.client import Api, Json
from webhook.kube.reflector import Reflector, served_path
from webhook.kube.store import Store
from webhook.surroundings import Surroundings, pod_groups

log = logging.getLogger("bayplan")
BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Pods that use capacity; those that wait or have ended never travel."""


@dataclass(frozen=True, slots=True)
class Extra:
    """A resource that describes the fabric, read by `planner.cluster.read`. Any of them may be missing."""

    group: str
    resource: str
    kind: str


EXTRAS = (
    Extra("bayplan.dev", "topologies", "Topology"),
    Extra("kai.scheduler", "topologies", "Topology"),
    Extra("kueue.x-k8s.io", "topologies", "Topology"),
    Extra("kueue.x-k8s.io", "resourceflavors", "ResourceFlavor"),
    Extra("topology.node.k8s.io", "noderesourcetopologies", "NodeResourceTopology"),
    Extra("resource.k8s.io", "resourceclaims", "ResourceClaim"),
    Extra("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Extra("resource.nvidia.com", "computedomains", "ComputeDomain"),
)

GANGS = (
    Extra("scheduling.run.ai", "podgroups", "PodGroup"),
    Extra("scheduling.k8s.io", "podgroups", "PodGroup"),
    Extra("scheduling.k8s.io", "workloads", "Workload"),
    Extra("scheduling.volcano.sh", "podgroups", "PodGroup"),
)
"""Resources that tell pods of their gang; none of them changes the picture."""


class ClusterWatch:
    """`webhook.cluster.ClusterSource` from watches. `start` it, and `close` it after use."""

    def __init__(self, api: Api) -> None:
        self._lock = threading.Lock()  # decisions are made in threads
        self._nodes: Store[Node] = Store(node_from, "Node", self._moved, self._lock)
        self._pods: Store[BoundPod] = Store(pod_from, "Pod", self._stirred, self._lock)
        self._spaces: Store[Json] = Store(_namespace, "Namespace", self._quiet, self._lock)
        self._gangs = [Store(partial(_typed, one), one.kind, self._quiet, self._lock) for one in GANGS]
        self._extras = [Store(_checked(one), one.kind, self._moved, self._lock) for one in EXTRAS]
        self._static = read(())
        self._static_problem = ""
        self._fabric: Fabric | None = None
        self._bound: tuple[BoundPod, ...] | None = None
        self._picture: Snapshot | None = None
        self.news = asyncio.Event()
        """Set whenever the picture changed; whoever waits for it clears it."""
        self.reflectors = [
            Reflector(api, "/api/v1/nodes", self._nodes),
            Reflector(api, "/api/v1/pods", self._pods, query={"fieldSelector": BOUND}),
            Reflector(api, "/api/v1/namespaces", self._spaces),
            *(
                Reflector(
                    api,
                    f"{one.resource}.{one.group}",
                    store,
                    find=partial(served_path, api, one.group, one.resource),
                )
                for one, store in zip((*EXTRAS, *GANGS), (*self._extras, *self._gangs), strict=True)
            ),
        ]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to watch; `waiting` tells when the first picture is whole."""
        self._tasks = [asyncio.create_task(one.run()) for one in self.reflectors]

    async def synced(self) -> None:
        """Wait for the first whole picture."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    async def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    def waiting(self) -> str:
        """What has not been read yet for the first time; "" once everything has."""
        left = [one for one in self.reflectors if not one.synced.is_set()]
        if not left:
            return ""
        return next((one.problem for one in left if one.problem), f"{left[0].path}: not read yet")

    def problem(self) -> str:
        """The watches that are broken now; what is left out does not make the picture old."""
        broken = dict.fromkeys(one.problem for one in self.reflectors if one.problem)
        return "; ".join([*broken, *([self._static_problem] if self._static_problem else [])])

    def left_out(self) -> dict[str, str]:
        """Why objects are not in the picture, by key."""
        with self._lock:
            stores = (self._nodes.bad, self._pods.bad, *(store.bad for store in self._extras))
            return {key: why for bad in stores for key, why in bad.items()}

    def surroundings(self) -> Surroundings:
        """The namespaces, for policies that look at them, and the objects that pods name as their gang."""
        with self._lock:
            groups = pod_groups(item for store in self._gangs for item in store.items.values())
            return Surroundings(dict(self._spaces.items), podgroups=groups)

    def snapshot(self) -> Snapshot | None:
        """The picture now, without reservations; None until the first sync. Safe in any thread."""
        if self.waiting():
            return None
        with self._lock:
            if self._fabric is None:
                self._fabric, self._picture = self._build(), None
            if self._bound is None:
                self._bound, self._picture = tuple(self._pods.items.values()), None
            if self._picture is None:
                self._picture = Snapshot(self._fabric, self._bound)
            return self._picture

    def _build(self) -> Fabric:
        try:
            self._static = read(("", item) for store in self._extras for item in store.items.values())
            self._static_problem = ""
        except InputError as error:  # two objects that contradict each other: the last good ones serve
            self._static_problem = str(error)
        base = self._static.base
        nodes = list(self._nodes.items.values())
        named = [topology for topology in base.topologies if topology.name != INFERRED]
        topologies = named or [infer(nodes)]
        fabric = snapshot(nodes, topologies, links=base.links, numa=base.numa, claims=base.claims).base
        fabric.trees  # noqa: B018 - built here, under the lock, and shared by all decisions
        return fabric

    def _moved(self, _: str) -> None:
        self._fabric = None
        self.news.set()

    def _stirred(self, _: str) -> None:
        self._bound = None
        self.news.set()

    def _quiet(self, _: str) -> None:
        """Nothing of the picture changed."""


def _checked(extra: Extra) -> Callable[[Json, Where], Json]:
    """Items of a list carry neither apiVersion nor kind. Raises `InputError` for what cannot be read."""

    def check(item: Json, where: Where) -> Json:
        document = {**item, "apiVersion": f"{extra.group}/v1", "kind": extra.kind}
        metadata = {key: value for key, value in item["metadata"].items() if key not in _FLEETING}
        document["metadata"] = metadata
        read([(where.file, document)])
        return document

    return check


_FLEETING = ("resourceVersion", "managedFields", "generation")


def _typed(extra: Extra, item: Json, _: Where) -> Json:
    return {**item, "apiVersion": f"{extra.group}/v1", "kind": extra.kind}


def _namespace(item: Json, _: Where) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", **item}
