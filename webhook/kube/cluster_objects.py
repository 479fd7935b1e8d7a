"""A cluster looked at with objects that a plan does not read: what made pods, what describes nodes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from webhook.admission.environment import NAMESPACE
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.reflector import served_path
from webhook.kube.standing import Lookout, standing_of
from webhook.workloads import KINDS

MAKES_PODS = (
    *((row.group, row.resource, row.name) for row in KINDS.values()),
    ("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
)
"""Pods, every kind that makes some, and the budgets that keep them; by group, resource and kind."""

DESCRIBES_NODES = (("nfd.k8s-sigs.io", "nodefeatures", "NodeFeature"),)
"""What says more of nodes than the picture has."""


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The picture and the objects. `now`: seconds since the epoch. `waiting`: gangs in the queue by name.
    `unread`: paths that the user may not list. `leader`: the replica whose controller works, "" for none.
    `left_alone`: who is not moved, as in `movables`."""

    snapshot: Snapshot
    objects: list[Json]
    now: float = field(default_factory=time.time)
    waiting: Mapping[str, PodGroup] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    leader: str = ""
    left_alone: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectsLookout:
    """A cluster that is looked at as often as one likes; `kinds` as in `MAKES_PODS`."""

    lookout: Lookout
    kinds: tuple[tuple[str, str, str], ...]

    @property
    def api(self) -> Api:
        """The API server."""
        return self.lookout.runtime.api

    async def look(self) -> ClusterObjects:
        """As of now."""
        seen = await self.lookout.standing(time.time())
        items, forbidden = await listed_objects(self.api, self.kinds)
        unread = [*self.lookout.unread, *forbidden]
        waiting = {gang.name: gang.group for gang in seen.queue if gang.group is not None}
        return ClusterObjects(seen.snapshot, items, seen.now, waiting, tuple(unread), seen.leader)


@asynccontextmanager
async def objects_lookout(
    kubeconfig: str | None, kinds: Iterable[tuple[str, str, str]], installation: str = NAMESPACE
) -> AsyncIterator[ObjectsLookout]:
    """The cluster that a kubeconfig names. Raises `InputError` where it cannot be read."""
    async with standing_of(kubeconfig, installation) as lookout:
        yield ObjectsLookout(lookout, tuple(kinds))


async def cluster_objects(
    kubeconfig: str | None, kinds: Iterable[tuple[str, str, str]], installation: str = NAMESPACE
) -> ClusterObjects:
    """The same, looked at once."""
    async with objects_lookout(kubeconfig, kinds, installation) as lookout:
        return await lookout.look()


async def listed_objects(api: Api, kinds: Iterable[tuple[str, str, str]]) -> tuple[list[Json], list[str]]:
    """All objects of these kinds, as far as they are served, and the paths that may not be listed."""
    items: list[Json] = []
    forbidden = []
    for group, resource, kind in kinds:
        path = await served_path(api, group, resource)
        try:
            items += await _listed(api, path, kind) if path else []
        except ApiError as error:
            if error.status != 403:
                raise
            forbidden.append(path)
    return items, forbidden


async def _listed(api: Api, path: str, kind: str) -> list[Json]:
    """With apiVersion and kind, which a list leaves out of its items, and without who wrote which field,
    which is half of a pod."""
    version = "/".join(path.split("/")[2:-1])

    def kept(item: Json) -> Json:
        item["metadata"].pop("managedFields", None)
        return {**item, "apiVersion": version, "kind": kind}

    items, _ = await api.list(path, kept)
    return items
