"""What this replica is about to reserve, so that its own calls do not all run for the same rack.

Between a decision and its commit the book does not tell of it yet. A decision that is made meanwhile sees
these promises as if they were held. They are no more than a hint: what holds is what the ledger says, and a
promise that it does not keep is gone with the call that made it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import RecordedReservation, in_the_way
from planner.model.reservation import Reservation

KEPT_SECONDS = 5.0
"""A promise of which nothing more was heard for so long counts no more; calls are answered sooner."""


_NEWEST = 2**62


@dataclass(slots=True)
class Promise:
    """One reservation on its way into the ledger. Times are monotonic seconds; `settled` 0: not yet."""

    reservation: Reservation
    made: float
    settled: float = 0.0
    done: asyncio.Event = field(default_factory=asyncio.Event)


class InFlightReservations:
    """Those of one replica, by reservation id. Decisions are made in threads: all is under one lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[str, Promise] = {}

    def over(self, snapshot: Snapshot, read: float) -> Snapshot:
        """The snapshot with what was promised and cannot be in its book, which was asked for at `read`."""
        for promise in self._live():
            if not promise.settled or promise.settled > read:
                snapshot = snapshot.with_reservation(promise.reservation)
        return snapshot

    def make(self, wanted: Iterable[Reservation], since: float) -> bool:
        """Promise all of these, unless another thread has promised a part of them after `since`."""
        wanted = tuple(wanted)
        with self._lock:
            newer = [
                RecordedReservation(promise.reservation, _NEWEST)
                for promise in self._by_id.values()
                if promise.made >= since
            ]
            if newer and any(in_the_way(reservation, 0, newer) is not None for reservation in wanted):
                return False
            now = time.monotonic()
            self._by_id |= {reservation.id: Promise(reservation, now) for reservation in wanted}
        return True

    def settle(self, ids: Iterable[str], *, kept: bool) -> None:
        """The ledger has answered: the reservations stand in it, or not. On the event loop."""
        with self._lock:
            for reservation_id in ids:
                promise = self._by_id.get(reservation_id)
                if promise is not None:
                    promise.settled = time.monotonic()
                    promise.done.set()
                    if not kept:
                        del self._by_id[reservation_id]

    async def awaited(self, ids: Iterable[str]) -> bool:
        """Wait for promises of these that another call is about to keep; False where there is none."""
        with self._lock:
            unsettled = [
                self._by_id[reservation_id]
                for reservation_id in ids
                if reservation_id in self._by_id and not self._by_id[reservation_id].settled
            ]
        for promise in unsettled:
            with suppress(TimeoutError):
                async with asyncio.timeout(KEPT_SECONDS):
                    await promise.done.wait()
        return bool(unsettled)

    def _live(self) -> list[Promise]:
        now = time.monotonic()
        with self._lock:
            for reservation_id in [name for name, p in self._by_id.items() if now - p.made > KEPT_SECONDS]:
                del self._by_id[reservation_id]
            return list(self._by_id.values())
