"""The `Ledger` protocol: which gang holds what, for all replicas and retries.

Invariants (tests/planner/ledger/test_ledger_machine.py tests them as a state machine):
1. An exclusively held domain has one holder.
3. A gang is reserved wholly or not at all.
4. The same gang asked again gets the same reservation.
7. A hold that is never claimed expires; a crash loses no reservation and leaks none past its time to live.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.ledger.conflicts import Wish
from planner.model.errors import ReportedError
from planner.model.reservation import Book, Reservation


class Conflict(Exception):  # noqa: N818 - an outcome to retry on, not a fault
    """`holder` has a part of what was to be reserved, or is the gang itself, which has another place."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(f"already held by {holder}")


class Occupied(Exception):  # noqa: N818 - an outcome, and final
    """`gang` is there and holds a place, `where`, which is not given up for another object of its name."""

    def __init__(self, gang: str, where: str) -> None:
        self.gang, self.where = gang, where
        super().__init__(f"{gang} is there already, and holds {where or 'its nodes'}")


class LedgerUnavailable(ReportedError):  # noqa: N818
    """The book cannot be read or written now (disk full, database locked); the message names the cause."""

    exit_status = 1


@dataclass(frozen=True, slots=True)
class Taken:
    """What the book holds for the wishes of a call. `new`: the ids that it did not have before the call."""

    reservations: tuple[Reservation, ...]
    new: frozenset[str]


class Ledger(Protocol):
    """Stores reservations. Every call is atomic and idempotent; times are seconds since the epoch.

    All methods raise `LedgerUnavailable` if the book cannot be reached.
    """

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """The live reservations at `now`; expired holds are left out.

        A book that others write too may be some milliseconds old; the reservations with the ids `names` are
        in it as they are. What was planned on an old book is a conflict only where it no longer fits.
        """
        ...

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> Taken:
        """Take all of these in one step, or none and raise `Conflict`.

        A conflict is any live reservation of another gang that holds whole what a wish holds or uses, or the
        other way round, or that came after the wish's `planned_on` to a node where its `headroom` has no room
        for it (`planner.ledger.conflicts`); and one of the same gang and request at another place that came
        after `planned_on`. The same reservation again gives what is there. A former place that the plan knew
        is replaced, and a claimed reservation stays claimed; another request under the same id replaces it.
        """
        ...

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Makes the hold permanent because its workload exists. False if there is no such reservation."""
        ...

    async def give_back(self, seen: Reservation) -> bool:
        """Removes the reservation only as it was seen. False if it is gone, claimed since, or replaced."""
        ...

    async def release(self, reservation_id: str) -> bool:
        """Removes the reservation. False if there is none (already released, or expired)."""
        ...
