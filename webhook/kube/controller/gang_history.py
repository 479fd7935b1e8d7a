"""The leader's history of ended gangs by leaf, in a ConfigMap that the planner reads.

`topology-scheduler-history` is installed empty, and written at most every `PAUSE` seconds, because each write
changes every replica's snapshot. The ends between two writes of a leader that dies are lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import yaml

from planner.cluster.snapshot import Snapshot
from planner.leafspine.history import Ended, ended, updated
from planner.manifests.settings import HISTORY_CONFIG, HISTORY_KEY
from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, ApiError

PAUSE = 30.0


_MOST_KEPT = 10_000
"""Maximum number of ends that wait to be written while the API server is unavailable."""


log = logging.getLogger("bayplan")


class GangHistoryWriter:
    """Ends of gangs that are to be written into the ConfigMap. `clock`: monotonic seconds."""

    def __init__(self, api: Api, namespace: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{HISTORY_CONFIG}"
        self._clock = clock
        self._pending: list[Ended] = []
        self._written = -PAUSE

    def note(self, snapshot: Snapshot, reservation: Reservation, *, well: bool) -> None:
        """Records that a gang has ended and releases this reservation."""
        ending = ended(snapshot, reservation, well=well)
        if ending.leaves and len(self._pending) < _MOST_KEPT:
            self._pending.append(ending)

    async def write(self, snapshot: Snapshot) -> None:
        """Writes what ended into the history in the snapshot, when it is due. Never raises: a failure is
        logged.
        """
        if not self._pending or self._clock() - self._written < PAUSE:
            return
        before = snapshot.base.settings.history
        history = updated(before, self._pending)
        self._written = self._clock()
        try:
            if history != before:
                text = yaml.safe_dump(history, sort_keys=True) if history else ""
                await self._api.merge(self._path, {"data": {HISTORY_KEY: text}})
        except ApiError as error:
            log.warning("the history of %d gangs is not written: %s", len(self._pending), error)
            if error.status != 404:
                return
        self._pending.clear()
