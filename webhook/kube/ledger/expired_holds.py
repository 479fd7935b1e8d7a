"""Ends holds that were not claimed in time, each once however many callers ask for it.

its object is stored                 claimed: the hold becomes permanent
its object cannot be read            prolonged by `UNREAD_SECONDS`
it has none, or the hold lost        deleted
the API server refuses that          left; it counts as held, and is tried again after `UNREAD_SECONDS`
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from planner.ledger.conflicts import in_the_way
from planner.model.reservation import Reservation
from webhook.kube.api.client import OF_ALL_CALLS, ApiError, Json, Unreachable
from webhook.kube.api.tasks import SharedTasks
from webhook.kube.ledger import documents
from webhook.kube.ledger.documents import Entry
from webhook.kube.ledger.owners import Owner
from webhook.kube.ledger.view import BookView

log = logging.getLogger("bayplan")

UNREAD_SECONDS = 30.0
"""Seconds by which a hold is prolonged if its object cannot be read, for example because the conversion
webhook of its kind is down, or if the hold itself may not be changed. Its place stays reserved meanwhile;
other holds are ended without waiting.
"""

_OLDEST = -1
"""An order before all objects."""


class ExpiredHolds:
    """Ends expired holds. `is_held`: returns whether no earlier reservation blocks the place of an entry."""

    def __init__(self, view: BookView, is_held: Callable[[Entry], Awaitable[bool]]) -> None:
        self._view = view
        self._is_held = is_held
        self._ending: SharedTasks[bool] = SharedTasks()

    async def end(self, entry: Entry, now: float, owner: Owner) -> bool:
        """Ends an expired hold: deletes it, claims it if its object is stored, or prolongs it if the object
        cannot be read. If the API server refuses that, the hold counts as held for `UNREAD_SECONDS` more in
        this replica, so that plans leave its place out.

        Returns whether it was deleted. Raises `ChangedMeanwhile` if it has changed meanwhile. Concurrent
        callers for the same hold share one run.
        """
        return await self._ending.run(entry.name, partial(self._end, entry, now, owner))

    async def _end(self, entry: Entry, now: float, owner: Owner) -> bool:
        try:
            return await self._ended(entry, now, owner)
        except ApiError as error:
            if error.status in OF_ALL_CALLS:
                raise
            log.warning("the expired hold %s cannot be ended: %s", entry.name, error)
            self._view.objects.postpone(entry.name, now + UNREAD_SECONDS)
            return False

    async def _ended(self, entry: Entry, now: float, owner: Owner) -> bool:
        assert entry.reservation is not None, "what expires is a reservation"
        gang = entry.reservation.gang
        kept: Json | None = documents.prolonged(entry, now + UNREAD_SECONDS)
        try:
            uid = "" if documents.is_next(entry.name, gang) else await owner(entry.reservation)
            kept = documents.claimed(entry, uid) if uid else None
        except Unreachable:
            raise
        except ApiError as error:
            log.warning("whether %s is stored cannot be read, its hold lives on: %s", gang, error)
        if kept is not None and (entry.since or await self._is_held(entry)):
            await self._view.merge(entry.name, kept)
            return False
        return await self._view.delete(entry)


def meets(expired: Entry, wanted: Reservation) -> bool:
    """Returns whether an expired hold is of the gang of the wanted reservation, or blocks that reservation.

    Finding an owner is expensive: a call does so only for these holds, and the leader for the others.
    """
    assert expired.recorded is not None, "what expires is a reservation"
    own = expired.recorded.reservation.gang == wanted.gang
    return own or in_the_way(wanted, _OLDEST, [expired.recorded]) is not None
