"""Reservations *in flight*: those that this replica is about to make in the ledger.

The ledger does not contain a reservation until it is committed. Until then, the other decisions of this
replica plan as if the reservation were held already, so that they do not all choose the same rack. This is
only a hint: the ledger decides, and a reservation that it refuses is removed here when its call ends.
An entry is *settled* when the ledger has made or refused its reservation.
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
"""Seconds after which an entry is removed, even if its call never settled it. Calls end sooner
(`http.DEADLINE`).
"""


_NEWEST = 2**62
"""A ledger revision later than all others. Entries have no revision yet, and count as made after any plan."""


@dataclass(slots=True)
class InFlightReservation:
    """One reservation that a call is about to make, or has just made.

    `begun`: when it was added; `settled`: when the ledger had answered, 0 before; both in monotonic seconds.
    `done`: is set when the ledger has answered.
    """

    reservation: Reservation
    begun: float
    settled: float = 0.0
    done: asyncio.Event = field(default_factory=asyncio.Event)


InFlight = tuple[InFlightReservation, ...]
"""Entries of several reservations in flight."""


async def wait_until_settled(promised: InFlight) -> None:
    """Waits until each of these entries is settled, at most `KEPT_SECONDS` for each."""
    for held in promised:
        with suppress(TimeoutError):
            async with asyncio.timeout(KEPT_SECONDS):
                await held.done.wait()


class InFlightReservations:
    """The reservations in flight of one replica, by id. Thread-safe, since decisions run in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[str, InFlightReservation] = {}

    def added_to(self, snapshot: Snapshot, read: float) -> tuple[Snapshot, InFlight]:
        """Returns the snapshot with the reservations in flight that it may lack, and the entries of these.

        `read`: when the snapshot's reservations were read from the ledger, in monotonic seconds. The
        snapshot already has a reservation that was settled before then.
        """
        unread = tuple(held for held in self._live() if not held.settled or held.settled > read)
        for held in unread:
            snapshot = snapshot.with_reservation(held.reservation)
        return snapshot, unread

    def add(self, wishes: Iterable[Wish], since: float) -> InFlight | None:
        """Adds all of these reservations and returns their entries.

        Returns None and adds nothing if one of them conflicts with a reservation that another thread added
        since `since`, the start of the decision (monotonic seconds): the decision did not see that one.
        """
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
        """Records the ledger's answer: the reservations were made (`kept`), or not.

        Must be called on the event loop, where other calls wait for the answer (`wait_until_settled`).
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
