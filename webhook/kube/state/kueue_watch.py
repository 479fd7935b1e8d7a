"""Watches Kueue's Workloads and keeps those that have a place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

from webhook.kube.api.client import Api
from webhook.kube.api.reflector import Reflector, served_path
from webhook.kube.api.store import Store
from webhook.kube.api.watches import Watches
from webhook.kube.state.kueue_places import KueuePlace, kueue_place

LOOK_SECONDS = 0.02
"""Interval at which the first list is waited for."""


class KueueWatch(Watches):
    """`start` it, and `close` it after use. It cannot be restarted: what it knew would be old.

    `on_change` is called after each change of a place. Only the leader needs it.
    """

    def __init__(self, api: Api, on_change: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._store: Store[KueuePlace] = Store(kueue_place, "Workload", lambda _: on_change(), self._lock)
        find = partial(served_path, api, "kueue.x-k8s.io", "workloads")
        super().__init__([Reflector(api, "workloads.kueue.x-k8s.io", self._store, find=find)])

    async def looked(self) -> None:
        """Waits until the places are known, or it is known that they may not be read."""
        while self.waiting() and not self.problem():  # noqa: ASYNC110 - a reflector tells of no problem
            await asyncio.sleep(LOOK_SECONDS)

    def places(self) -> dict[str, KueuePlace] | None:
        """Returns the places that Kueue has assigned by the name of their gang; None while unknown."""
        if self.waiting() or self.problem():
            return None
        with self._lock:
            return {place.gang: place for place in self._store.items.values()}
