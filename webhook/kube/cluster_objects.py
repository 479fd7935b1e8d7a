"""Reads the state of a cluster together with objects that a plan does not need: those that create pods or
describe nodes.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from webhook.admission.environment import NAMESPACE
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.discovery import in_namespace, served_path
from webhook.kube.standing import Lookout, standing_of
from webhook.workloads import KINDS

MAKES_PODS = (
    *((row.group, row.resource, row.name) for row in KINDS.values()),
    ("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
)
"""Pods, every kind that creates pods, and PodDisruptionBudgets; as group, resource and kind."""

DESCRIBES_NODES = (("nfd.k8s-sigs.io", "nodefeatures", "NodeFeature"),)
"""Kinds with more information on nodes than the snapshot has; as group, resource and kind."""


def all_objects(_: Json) -> bool:
    """Returns True: every object is wanted."""
    return True


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The state of a cluster at one moment and the objects that were listed.

    `now`: seconds since the epoch. `waiting`: the requests of queued gangs, by name. `unread`: paths that the
    user may not list. `leader`: the replica whose controller works, "" for none. `left_alone`: why pods are
    not moved, as in `webhook.placement.moving.movables`.
    """

    snapshot: Snapshot
    objects: list[Json]
    now: float = field(default_factory=time.time)
    waiting: Mapping[str, PodGroup] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    leader: str = ""
    left_alone: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectsLookout:
    """A cluster that can be read repeatedly. `kinds`: which objects are listed, as in `MAKES_PODS`."""

    lookout: Lookout
    kinds: tuple[tuple[str, str, str], ...]

    @property
    def api(self) -> Api:
        """The API server."""
        return self.lookout.runtime.api

    async def look(self) -> ClusterObjects:
        """Reads the current state and lists the objects."""
        seen = await self.lookout.standing()
        items, forbidden = await listed_objects(self.api, self.kinds)
        unread = [*self.lookout.unread, *forbidden]
        waiting = {gang.name: gang.group for gang in seen.queue if gang.group is not None}
        return ClusterObjects(seen.snapshot, items, seen.now, waiting, tuple(unread), seen.leader)


@asynccontextmanager
async def objects_lookout(
    kubeconfig: str | None, kinds: Iterable[tuple[str, str, str]], installation: str = NAMESPACE
) -> AsyncIterator[ObjectsLookout]:
    """Opens the cluster of a kubeconfig. Raises `InputError` if it cannot be read."""
    async with standing_of(kubeconfig, installation) as lookout:
        yield ObjectsLookout(lookout, tuple(kinds))


async def cluster_objects(
    kubeconfig: str | None, kinds: Iterable[tuple[str, str, str]], installation: str = NAMESPACE
) -> ClusterObjects:
    """Reads the cluster of a kubeconfig once. Raises `InputError` if it cannot be read."""
    async with objects_lookout(kubeconfig, kinds, installation) as lookout:
        return await lookout.look()


async def listed_objects(
    api: Api,
    kinds: Iterable[tuple[str, str, str]],
    wanted: Callable[[Json], bool] = all_objects,
    namespaces: Collection[str] | None = None,
) -> tuple[list[Json], list[str]]:
    """Returns the wanted objects of these kinds that the API server serves, and the paths that may not be
    listed. `namespaces`: those that are read, None for all; the kinds are namespaced if it is given.

    An object that is not `wanted` is dropped with its page: a pod takes 26 kB. Raises `ApiError` for any
    other failure.
    """
    items: list[Json] = []
    forbidden = []
    for group, resource, kind in kinds:
        path = await served_path(api, group, resource)
        places = [path] if namespaces is None else [in_namespace(path, name) for name in sorted(namespaces)]
        try:
            for place in places if path else ():
                items += await _listed(api, place, "/".join(path.split("/")[2:-1]), kind, wanted)
        except ApiError as error:
            if error.status != 403:
                raise
            forbidden.append(path)
    return items, forbidden


async def _listed(api: Api, path: str, version: str, kind: str, wanted: Callable[[Json], bool]) -> list[Json]:
    """Returns the wanted objects at a path.

    `apiVersion` and `kind`, which list items lack, are added; `managedFields`, half of a pod's size, is
    removed. `version`: the `apiVersion`.
    """

    def kept(item: Json) -> Json | None:
        item["metadata"].pop("managedFields", None)
        document = {**item, "apiVersion": version, "kind": kind}
        return document if wanted(document) else None

    items, _ = await api.list(path, kept)
    return [item for item in items if item is not None]
