"""Writes how gangs ended on each leaf (of a leaf-spine network) into a ConfigMap that the planner reads.

The ConfigMap `topology-scheduler-history` is installed empty. The leader writes it at most every `PAUSE`
seconds, because each write changes every replica's snapshot. If the leader dies, the gangs that ended since
its last write are missing in the history.
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
"""Minimum seconds between two writes."""


_MOST_KEPT = 10_000
"""Maximum number of ended gangs that wait to be written while the API server is unavailable."""


log = logging.getLogger("bayplan")


class GangHistoryWriter:
    """Collects ended gangs and writes them into the ConfigMap. `clock`: returns monotonic seconds."""

    def __init__(self, api: Api, namespace: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{HISTORY_CONFIG}"
        self._clock = clock
        self._pending: list[Ended] = []
        self._written = -PAUSE

    def note(self, snapshot: Snapshot, reservation: Reservation, *, well: bool) -> None:
        """Records that the gang of this reservation has ended. `well`: whether it succeeded."""
        ending = ended(snapshot, reservation, well=well)
        if ending.leaves and len(self._pending) < _MOST_KEPT:
            self._pending.append(ending)

    async def write(self, snapshot: Snapshot) -> None:
        """Adds the recorded gangs to the history in the snapshot and writes it, if a write is due.

        Never raises: a failure is logged, and the gangs are written later. If the ConfigMap does not exist,
        they are dropped.
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
