"""The ledger for admission calls: a review proves nothing, only what the API server has stored does.

Anybody who can reach the Service can send a review. In a cluster no place is therefore released, taken over
or kept for good because of a review alone. A claim waits until the watch shows the object. A release is left
to the controller, which sees deleted objects. A place that a workload has claimed is changed only for that
workload.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from planner.ledger.conflicts import Wish, placement
from planner.ledger.ledger import LedgerUnavailable, Taken
from planner.model.names import kind_of
from planner.model.reservation import Book, Reservation
from webhook.kube.ledger.ledger import KubeLedger
from webhook.placement.hold import HOLD_SECONDS
from webhook.workloads.keys.annotation_keys import POD_GANGS

LOOKS = (0.1, 0.2, 0.4, 0.8, 1.5, 3.0)
"""Seconds between two lookups of an object that is about to be stored; together less than a hold lives."""


MAX_FOLLOWED = 2048
"""Maximum number of claims that are followed at the same time; further ones are left to the controller."""


log = logging.getLogger("bayplan")


class ConfirmingLedger:
    """The `planner.ledger.ledger.Ledger` over the book in the cluster.

    `stored` returns whether the object with a UID that a reservation is for is in the API server.
    """

    def __init__(self, ledger: KubeLedger, stored: Callable[[Reservation, str], bool]) -> None:
        self._ledger = ledger
        self._stored = stored
        self._following: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Stops; what is not confirmed by now is left to the controller."""
        for task in tuple(self._following.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """Returns the ledger's book."""
        return await self._ledger.book(now, names)

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> Taken:
        """As the ledger. Raises `Occupied` if an existing workload has claimed another place under that name,
        and it is not the requesting one.
        """
        return await self._ledger.reserve_all(wishes, now, self._keeps)

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Returns whether a claim would succeed now.

        It is judged like a claim (docs/decisions/0103), and written as soon as the object is known to be
        stored. Until then the unclaimed hold keeps others out.
        """
        held = await self._ledger.judged(reservation_id, now)
        if held is None:
            return False
        ends_early = held.expires is not None and held.expires - now < sum(LOOKS)
        if ends_early and not await self._ledger.prolong(reservation_id, now + HOLD_SECONDS, now):
            return False
        key = (reservation_id, owner_uid)
        is_claimed = held.state == "claimed" and held.owner_uid == owner_uid
        if not is_claimed and key not in self._following and len(self._following) < MAX_FOLLOWED:
            task = asyncio.create_task(self._follow(held, owner_uid, now))
            self._following[key] = task
            task.add_done_callback(lambda _: self._following.pop(key, None))
        return True

    async def give_back(self, seen: Reservation) -> bool:
        """As the ledger: it is this replica's own call that ended."""
        return await self._ledger.give_back(seen)

    async def release(self, reservation_id: str) -> bool:
        """Does nothing yet: the object exists until the call is answered, and the controller sees the
        deletion.
        """
        return self._ledger.find(reservation_id) is not None

    def _keeps(self, held: Reservation, wanted: Reservation) -> bool:
        """Returns whether an existing workload would lose its place to another object of its name."""
        if held.state != "claimed" or held.owner_uid in ("", wanted.owner_uid):
            return False
        if kind_of(held.gang) in POD_GANGS and kind_of(held.gang) != "Pod":
            return False  # the pods of a group come one by one, and each may add information
        is_kept = held.fingerprint == wanted.fingerprint and placement(held) == placement(wanted)
        return not is_kept and self._stored(held, held.owner_uid)

    async def _follow(self, held: Reservation, owner_uid: str, now: float) -> None:
        """Claims the hold when its object is seen; a hold whose object is never seen expires."""
        for pause in LOOKS:
            await asyncio.sleep(pause)
            if not self._stored(held, owner_uid):
                continue
            with suppress(LedgerUnavailable):
                if not await self._ledger.claim(held.id, owner_uid, now):
                    log.info("%s was stored, and its hold is gone", held.gang)
                return
