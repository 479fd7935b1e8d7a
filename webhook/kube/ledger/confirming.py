"""The ledger for admission calls, which trusts no AdmissionReview, but only objects in the API server.

Anybody who can reach the Service can send an AdmissionReview. No place is therefore released, taken over or
made permanent because of a review alone. A claim waits until a watch shows the object. A release is left to
the controller, which sees deleted objects. A claimed place is changed only for the workload that has claimed
it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from planner.ledger.conflicts import Wish, placement
from planner.ledger.ledger import LedgerUnavailable, ReserveResult
from planner.model.names import kind_of
from planner.model.reservation import Book, Reservation
from webhook.kube.ledger.ledger import KubeLedger
from webhook.placement.hold import HOLD_SECONDS
from webhook.workloads.shared_gangs.pod_groups import JOINED_KINDS

LOOKS = (0.1, 0.2, 0.4, 0.8, 1.5, 3.0)
"""Seconds before each lookup of an object that is about to be stored; their sum is less than
`HOLD_SECONDS`.
"""


MAX_FOLLOWED = 2048
"""Maximum number of claims that wait for their object at the same time; further ones are left to the
controller.
"""


log = logging.getLogger("bayplan")


class ConfirmingLedger:
    """The `planner.ledger.ledger.Ledger` for admission calls, on top of the cluster's `KubeLedger`.

    `stored`: returns whether the object of a reservation is stored under this UID, or bound pods use the
    reservation.
    """

    def __init__(self, ledger: KubeLedger, stored: Callable[[Reservation, str], bool]) -> None:
        self._ledger = ledger
        self._stored = stored
        self._following: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Stops; claims that are not confirmed yet are left to the controller."""
        for task in tuple(self._following.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """Returns the book, as `KubeLedger.book` does."""
        return await self._ledger.book(now, names)

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
        """Reserves as `KubeLedger.reserve_all` does.

        Raises `Occupied` if the gang of a wish holds another place or has another request, and the workload
        that has claimed the place still exists and is not the one that the wish is for.
        """
        return await self._ledger.reserve_all(wishes, now, self._keeps)

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Returns whether a claim would succeed at present.

        The reservation is judged as for a claim (docs/decisions/0103), and the claim is written as soon as
        the object is known to be stored. Until then the hold blocks other gangs; it is prolonged if it would
        expire before.
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
        """Removes the reservation as `KubeLedger.give_back` does. No stored object has to confirm this,
        because the reservation was made by a call of this replica that has ended.
        """
        return await self._ledger.give_back(seen)

    async def release(self, reservation_id: str) -> bool:
        """Returns whether the reservation exists. It is not released yet: the object exists until the call is
        answered, and the controller sees the deletion.
        """
        return self._ledger.find(reservation_id) is not None

    def _keeps(self, held: Reservation, wanted: Reservation) -> bool:
        """Returns whether `held` must be kept: an existing workload has claimed it, and `wanted` is for
        another object of the same name, with another place or request.
        """
        if held.state != "claimed" or held.owner_uid in ("", wanted.owner_uid):
            return False
        if kind_of(held.gang) in JOINED_KINDS:
            return False  # the pods of a group are created one by one, and each may add information
        is_kept = held.fingerprint == wanted.fingerprint and placement(held) == placement(wanted)
        return not is_kept and self._stored(held, held.owner_uid)

    async def _follow(self, held: Reservation, owner_uid: str, now: float) -> None:
        """Claims the hold when its object is seen to be stored; otherwise leaves it to expire."""
        for pause in LOOKS:
            await asyncio.sleep(pause)
            if not self._stored(held, owner_uid):
                continue
            with suppress(LedgerUnavailable):
                if not await self._ledger.claim(held.id, owner_uid, now):
                    log.info("%s was stored, and its hold is gone", held.gang)
                return
