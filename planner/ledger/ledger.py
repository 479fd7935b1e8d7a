"""The `Ledger` protocol: which gang holds what, for all replicas and retries.

Invariants (tests/planner/ledger/test_ledger_machine.py tests them as a state machine):
1. An exclusively held domain has one holder.
3. A gang is reserved wholly or not at all.
4. The same gang asked again gets the same reservation.
7. A hold that is never claimed expires; a crash loses no reservation and leaks none past its time to live.
"""

from __future__ import annotations

from typing import Protocol

from planner.ledger.conflicts import NO_HEADROOM, Headroom
from planner.model.reservation import Book, Reservation


class Conflict(Exception):  # noqa: N818 - an outcome to retry on, not a fault
    """Another gang holds a part of what was to be reserved; `holder` is its name."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(f"already held by {holder}")


class LedgerUnavailable(Exception):  # noqa: N818
    """The book cannot be read or written now (disk full, database locked); the message names the cause."""


class Ledger(Protocol):
    """Stores reservations. Every call is atomic and idempotent; times are seconds since the epoch.

    All methods raise `LedgerUnavailable` if the book cannot be reached.
    """

    async def book(self, now: float) -> Book:
        """The live reservations at `now`; expired holds are left out."""
        ...

    async def reserve(
        self, reservation: Reservation, planned_on: int, now: float, headroom: Headroom = NO_HEADROOM
    ) -> Reservation:
        """Take the reservation, or raise `Conflict`.

        A conflict is any live reservation of another gang that holds whole what this one holds or uses, or
        the other way round, or that came after the revision `planned_on` to a node where `headroom`, what
        the plan leaves free, has no room for it (`planner.ledger.conflicts`). The same id and
        fingerprint again returns what is there, unless the plan knew it (it came at or before `planned_on`)
        and gives the gang another place: then that replaces it in one step, and a claimed one stays claimed.
        The same id with another fingerprint replaces it.
        """
        ...

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Makes the hold permanent because its workload exists. False if there is no such reservation."""
        ...

    async def release(self, reservation_id: str) -> bool:
        """Removes the reservation. False if there is none (already released, or expired)."""
        ...
