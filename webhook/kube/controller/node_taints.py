"""Keeps a taint on each node of the domains that gangs hold whole, so that other pods stay away."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.words import counted
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store
from webhook.placement.taints import desired_taints, reserved_taint_value, taint_changes, taint_patch

AT_ONCE = 16
"""Maximum number of nodes that are patched concurrently."""


CHANGED = 409
"""The HTTP status of a patch whose node has changed since it was read."""


log = logging.getLogger("bayplan")


@dataclass(frozen=True, slots=True)
class _Tainted:
    """A node's taints, and its resource version."""

    version: str
    taints: tuple[Json, ...]

    @property
    def value(self) -> str:
        return reserved_taint_value(self.taints)


class NodeTaints:
    """Maintains the taints from `start` to `close`, in the leading replica."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._nodes: Store[_Tainted] = _no_nodes()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts watching the nodes' taints, and waits until they are known."""
        self._nodes = _no_nodes()  # what an earlier term of this leader has seen may be old
        reflector = Reflector(self._api, "/api/v1/nodes", self._nodes)
        self._task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()

    async def close(self) -> None:
        """Stops watching; the taints stay, for the next leader."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def sync(self, snapshot: Snapshot) -> bool:
        """Sets the taints of the nodes to match the reservations in the snapshot.

        Returns False if a node has changed since it was read and should be tried again at once. Any other
        error is logged, and left to the next call: a policy or a missing permission refuses the patch again.
        """
        limit = asyncio.Semaphore(AT_ONCE)
        values = {name: node.value for name, node in self._nodes.items.items()}
        due = taint_changes(values, desired_taints(snapshot))
        nodes = self._nodes.items
        written = [self._write(name, nodes[name], due[name], limit) for name in due if name in nodes]
        failures = list(filter(None, await asyncio.gather(*written)))
        refusals = [error for error in failures if error.status != CHANGED]
        if refusals:
            log.warning(
                "taints: %s refused, the first: %s", counted(len(refusals), "patch", "patches"), refusals[0]
            )
        return len(refusals) == len(failures)

    async def _write(
        self, name: str, node: _Tainted, value: str, limit: asyncio.Semaphore
    ) -> ApiError | None:
        """Returns the error of the patch; None if it was applied, or the node is gone."""
        async with limit:
            try:
                await self._api.merge(f"/api/v1/nodes/{name}", taint_patch(node.version, node.taints, value))
            except ApiError as error:
                return None if error.status == 404 else error
        return None


def _no_nodes() -> Store[_Tainted]:
    return Store(_tainted, "Node", lambda *_: None, threading.Lock())


def _tainted(item: Json, _: Where) -> _Tainted:
    return _Tainted(item["metadata"]["resourceVersion"], tuple((item.get("spec") or {}).get("taints") or ()))
