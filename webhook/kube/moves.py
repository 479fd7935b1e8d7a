"""A cluster looked at for defragmentation: its picture, its pods, what made them, who waits. Reads only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from webhook.admission.environment import NAMESPACE
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.reflector import served_path
from webhook.kube.standing import Lookout, standing_of
from webhook.workloads import KINDS

READ = tuple(
    dict.fromkeys(
        (
            *((row.group, row.resource, row.name) for row in KINDS.values()),
            ("apps", "replicasets", "ReplicaSet"),
            ("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
        )
    )
)
"""What is listed: every kind that makes pods, and budgets; by group, resource and kind."""


@dataclass(frozen=True, slots=True)
class MovableCluster:
    """`objects`: pods, workloads and budgets. `waiting`: gangs in the queue by name. `now`: seconds since the
    epoch."""

    snapshot: Snapshot
    objects: list[Json]
    waiting: Mapping[str, PodGroup]
    now: float


@dataclass(slots=True)
class WatchedCluster:
    """A cluster that is looked at as often as one likes. `unread`: what the user may not read."""

    lookout: Lookout
    unread: list[str]

    async def look(self, now: float) -> MovableCluster:
        """As of now."""
        seen = await self.lookout.standing(now)
        api = self.lookout.runtime.api
        listed = [await self._listed(api, *kind) for kind in READ]
        waiting = {gang.name: gang.group for gang in seen.queue if gang.group is not None}
        return MovableCluster(seen.snapshot, [item for items in listed for item in items], waiting, now)

    async def _listed(self, api: Api, group: str, resource: str, kind: str) -> list[Json]:
        path = await served_path(api, group, resource)
        if not path:
            return []
        version = "/".join(path.split("/")[2:-1]) if group else "v1"
        try:
            items, _ = await api.list(path, lambda item: {**item, "apiVersion": version, "kind": kind})
        except ApiError as error:
            if error.status != 403:
                raise
            self.unread.append(path)
            return []
        return items


@asynccontextmanager
async def movable_cluster(
    kubeconfig: str | None, installation: str = NAMESPACE
) -> AsyncIterator[WatchedCluster]:
    """The cluster that a kubeconfig names. Raises `InputError` where it cannot be read."""
    async with standing_of(kubeconfig, installation) as lookout:
        yield WatchedCluster(lookout, list(lookout.unread))
