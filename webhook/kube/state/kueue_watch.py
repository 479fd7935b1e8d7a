"""Watches Kueue's Workloads, and keeps the places that Kueue has assigned to them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

from planner.manifests.topologies.scheduler_objects import KUEUE
from webhook.kube.api.client import Api
from webhook.kube.api.discovery import served_path
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store
from webhook.kube.api.watches import Watches
from webhook.kube.state.kueue_places import KueuePlace, kueue_place

WORKLOADS = "workloads"
"""The resource of Kueue's Workloads in its API group."""

LOOK_SECONDS = 0.02
"""Seconds between two checks whether the first list is complete."""


class KueueWatch(Watches):
    """Watches the places; `start` it, and `close` it after use. A closed watch is not started again, because
    `places` would return old places until the next list.

    `on_change` is called after each change of a place. Only the leader needs this watch.
    """

    def __init__(self, api: Api, on_change: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._store: Store[KueuePlace] = Store(kueue_place, "Workload", lambda *_: on_change(), self._lock)
        find = partial(served_path, api, KUEUE, WORKLOADS)
        super().__init__([Reflector(api, f"{WORKLOADS}.{KUEUE}", self._store, find=find)])

    async def looked(self) -> None:
        """Waits until the places are known, or the watch has a problem, such as a missing permission."""
        while self.waiting() and not self.problem():  # noqa: ASYNC110 - no event is set for a problem
            await asyncio.sleep(LOOK_SECONDS)

    def places(self) -> dict[str, KueuePlace] | None:
        """Returns the places that Kueue has assigned, by the name of the Workload's own gang; None while
        unknown.
        """
        if self.waiting() or self.problem():
            return None
        with self._lock:
            return {place.gang: place for place in self._store.items.values()}
