"""Reservations that this replica is about to make, so that its calls do not all choose the same rack.

Between a decision and its commit the ledger does not have the reservation yet. Decisions that are made
meanwhile see it as if it were held. This is only a hint: the ledger decides, and a reservation that it
refuses is forgotten with its call.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import RecordedReservation, Wish, in_the_way
from planner.model.reservation import Reservation

KEPT_SECONDS = 5.0
"""Time after which an entry is forgotten if its call never settled it; calls end sooner (`http.DEADLINE`)."""


_NEWEST = 2**62
"""A ledger revision later than any, for entries that are still in flight."""


@dataclass(slots=True)
class InFlightReservation:
    """One reservation that is being made. Times are monotonic seconds; `settled` is 0 until then."""

    reservation: Reservation
    begun: float
    settled: float = 0.0
    done: asyncio.Event = field(default_factory=asyncio.Event)


InFlight = tuple[InFlightReservation, ...]


async def settled(promised: InFlight) -> None:
    """Waits until the calls that make these reservations have their answers."""
    for held in promised:
        with suppress(TimeoutError):
            async with asyncio.timeout(KEPT_SECONDS):
                await held.done.wait()


class InFlightReservations:
    """The reservations in flight of one replica, by id. Decisions run in threads, so a lock protects them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[str, InFlightReservation] = {}

    def over(self, snapshot: Snapshot, read: float) -> tuple[Snapshot, InFlight]:
        """Returns the snapshot with the reservations that it cannot contain yet, and these reservations.

        `read`: when the snapshot's reservations were read from the ledger.
        """
        unread = tuple(held for held in self._live() if not held.settled or held.settled > read)
        for held in unread:
            snapshot = snapshot.with_reservation(held.reservation)
        return snapshot, unread

    def add(self, wishes: Iterable[Wish], since: float) -> InFlight | None:
        """Adds all of these; None if what other threads added after `since` leaves no room for them."""
        new = tuple(wishes)
        with self._lock:
            newer = [
                RecordedReservation(held.reservation, _NEWEST)
                for held in self._by_id.values()
                if held.begun >= since
            ]
            if newer and any(
                in_the_way(wish.reservation, 0, newer, wish.headroom) is not None for wish in new
            ):
                return None
            now = time.monotonic()
            added = tuple(InFlightReservation(wish.reservation, now) for wish in new)
            self._by_id |= {held.reservation.id: held for held in added}
        return added

    def settle(self, promised: InFlight, *, kept: bool) -> None:
        """Records the ledger's answer: the reservations were made (`kept`), or not. Called on the event
        loop.
        """
        with self._lock:
            for held in promised:
                held.settled = time.monotonic()
                held.done.set()
                if not kept and self._by_id.get(held.reservation.id) is held:
                    del self._by_id[held.reservation.id]

    def _live(self) -> list[InFlightReservation]:
        now = time.monotonic()
        with self._lock:
            for reservation_id in [
                name for name, entry in self._by_id.items() if now - entry.begun > KEPT_SECONDS
            ]:
                del self._by_id[reservation_id]
            return list(self._by_id.values())
