"""Nodes of a cluster with the objects that describe them: NodeFeatures and ResourceSlices. Reads only."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.reflector import served_path
from webhook.kube.standing import standing_of

_READ = (
    ("nfd.k8s-sigs.io", "nodefeatures", "NodeFeature"),
    ("resource.k8s.io", "resourceslices", "ResourceSlice"),
)


@dataclass(frozen=True, slots=True)
class NodeObjects:
    """The picture and the objects. `unread`: what the user may not list. `waiting`: gangs in the queue."""

    snapshot: Snapshot
    objects: list[Json]
    unread: tuple[str, ...]
    waiting: tuple[PodGroup, ...] = ()


async def node_objects(kubeconfig: str | None) -> NodeObjects:
    """Those of the cluster that a kubeconfig names. Raises `InputError` where it cannot be read."""
    logging.getLogger("bayplan").addHandler(logging.NullHandler())  # what is not read is told by the caller
    async with standing_of(kubeconfig) as lookout:
        runtime, unread = lookout.runtime, list(lookout.unread)
        seen = await lookout.standing(time.time())
        items: list[Json] = []
        for group, resource, kind in _READ:
            items += await _listed(runtime.api, group, resource, kind, unread)
        waiting = tuple(gang.group for gang in seen.queue if gang.group is not None)
        return NodeObjects(seen.snapshot, items, tuple(dict.fromkeys(unread)), waiting)


async def _listed(api: Api, group: str, resource: str, kind: str, unread: list[str]) -> list[Json]:
    path = await served_path(api, group, resource)
    if not path:
        return []
    try:
        items, _ = await api.list(path, lambda item: {**item, "kind": kind})
    except ApiError as error:
        if error.status != 403:
            raise
        unread.append(path)
        return []
    return items
