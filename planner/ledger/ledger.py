"""The `Ledger` protocol: stores which gang holds what, for all replicas and retries.

Invariants, with their numbers in the design (tests/planner/ledger/test_ledger_machine.py tests them as a
state machine):
1. An exclusively held domain has one holder.
3. A gang is reserved wholly or not at all.
4. A repeated request of the same gang gets the same reservation.
7. A hold that is never claimed expires; a crash loses no reservation and leaves none for longer than its time
   to live.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.ledger.conflicts import Wish
from planner.model.errors import ReportedError
from planner.model.reservation import Book, Reservation


class Conflict(Exception):  # noqa: N818 - an outcome to retry on, not a fault
    """A wanted reservation conflicts with that of the gang `holder`, which is the gang itself if it holds
    another place."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(f"already held by {holder}")


class Occupied(Exception):  # noqa: N818 - an outcome, and final
    """The gang `gang` exists and holds the place `where` ("" if that is no single domain). The gang keeps the
    place although another object of the same name requests one."""

    def __init__(self, gang: str, where: str) -> None:
        self.gang, self.where = gang, where
        super().__init__(f"{gang} is there already, and holds {where or 'its nodes'}")


class LedgerUnavailable(ReportedError):  # noqa: N818
    """The book cannot be read or written, for example because the disk is full or the database is locked;
    the message names the cause."""

    exit_status = 1


@dataclass(frozen=True, slots=True)
class ReserveResult:
    """The result of `reserve_all`: for each `Wish`, in order, the reservation that the book has now. `new`:
    the ids that were not in the book before the call.
    """

    reservations: tuple[Reservation, ...]
    new: frozenset[str]


class Ledger(Protocol):
    """Stores reservations. Every call is atomic and idempotent; times are seconds since the epoch.

    All methods raise `LedgerUnavailable` if the book cannot be reached.
    """

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """Returns the live reservations at `now`; expired holds are left out.

        If others write to the ledger too, the result may be some milliseconds old, except for the
        reservations with the ids `names`, which are up to date. A plan that was made on an old book
        conflicts only if it does not fit any more.
        """
        ...

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
        """Writes all wanted reservations in one step. Raises `Conflict` and writes none if one conflicts.

        `planner.ledger.conflicts` defines conflicts. If the book has the same reservation already, it is kept
        and returned. A former reservation of the gang with the same request at another place is replaced if
        it is not newer than the wish's `planned_on`, and the new one is claimed if the former was. A former
        reservation with another request is always replaced.
        """
        ...

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Makes the hold permanent because its workload exists. Returns False if there is no such
        reservation."""
        ...

    async def give_back(self, seen: Reservation) -> bool:
        """Removes the reservation if it still equals `seen`. Returns False if it is gone, or was claimed or
        replaced since."""
        ...

    async def release(self, reservation_id: str) -> bool:
        """Removes the reservation. Returns False if there is none (already released, or expired)."""
        ...
