"""The ledger for admission calls: what a review says is no proof, what the API server has stored is.

Whoever reaches the Service can send a review. So in a cluster no place is given up, taken over or kept for
good on a review's word: a claim waits until the watch tells of the object, a release is left to the
controller, which sees what is gone, and a place that a workload has claimed is changed for that one only.
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
"""Seconds between two looks for an object that is about to be stored; together less than a hold lives."""


MAX_FOLLOWED = 2048
"""Claims that are followed at the same time; those beyond are left to the controller."""


log = logging.getLogger("bayplan")


class ConfirmingLedger:
    """`planner.ledger.ledger.Ledger` over the book in the cluster.

    `stored` tells whether the object of a UID that a reservation is for is in the API server.
    """

    def __init__(self, ledger: KubeLedger, stored: Callable[[Reservation, str], bool]) -> None:
        self._ledger = ledger
        self._stored = stored
        self._following: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def close(self) -> None:
        """What is not confirmed by now is left to the controller of another replica."""
        for task in tuple(self._following.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """As the ledger has it."""
        return await self._ledger.book(now, names)

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> Taken:
        """As the ledger does. Raises `Occupied` where a workload that is there has claimed another place
        under that name, and it is not the one that asks."""
        return await self._ledger.reserve_all(wishes, now, self._keeps)

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Whether a claim would count now: it is judged as one (docs/decisions/0103), and written as soon as
        the object is known to be stored. Until then the hold keeps others out as it is."""
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
        """As the ledger does: it is this replica's own call that ended."""
        return await self._ledger.give_back(seen)

    async def release(self, reservation_id: str) -> bool:
        """Nothing yet: the object is there until the call is answered, and the controller sees it go."""
        return self._ledger.find(reservation_id) is not None

    def _keeps(self, held: Reservation, wanted: Reservation) -> bool:
        """Whether a workload that is there would lose its place to another object of its name."""
        if held.state != "claimed" or held.owner_uid in ("", wanted.owner_uid):
            return False
        if kind_of(held.gang) in POD_GANGS and kind_of(held.gang) != "Pod":
            return False  # a group's pods come one by one, and any of them may say more of it
        is_kept = held.fingerprint == wanted.fingerprint and placement(held) == placement(wanted)
        return not is_kept and self._stored(held, held.owner_uid)

    async def _follow(self, held: Reservation, owner_uid: str, now: float) -> None:
        """Claim the hold when its object is seen; one that is never seen expires."""
        for pause in LOOKS:
            await asyncio.sleep(pause)
            if not self._stored(held, owner_uid):
                continue
            with suppress(LedgerUnavailable):
                if not await self._ledger.claim(held.id, owner_uid, now):
                    log.info("%s was stored, and its hold is gone", held.gang)
                return
