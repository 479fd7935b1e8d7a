"""The ledger in the API server: `planner.ledger.ledger.Ledger` for any number of replicas.

A domain that is held whole has one holder; a gang's place is held completely or not at all; repeated requests
get the same place; after a crash no place is lost, and none is blocked forever. All of this follows from the
order in which etcd stores objects (docs/decisions/0103):
- A place is proposed by one write of the gang's own object. The gang holds it if no object that was written
  before and still exists blocks it. The writer checks this once its watch has shown all earlier writes.
- Of two proposals that exclude each other the later one is withdrawn, whichever replica judges it. Gangs
  that share no node or domain never wait for each other.
- A crash leaves a hold that nobody claims: it blocks others until it expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from planner.ledger.conflicts import NO_HEADROOM, Headroom, Wish
from planner.ledger.ledger import LedgerUnavailable, ReserveResult
from planner.model.reservation import Book, Reservation
from webhook.kube.api.client import Api, ApiError, Unreachable
from webhook.kube.api.reflector import Reflector
from webhook.kube.ledger import documents
from webhook.kube.ledger.documents import Entry
from webhook.kube.ledger.owners import Owners, no_owners
from webhook.kube.ledger.proposals import COMMIT_SECONDS, Keeps, Proposals, keeps_none
from webhook.kube.ledger.view import BookView, ChangedMeanwhile, lives

UNDO_SECONDS = 2.0
"""Seconds that a stopping replica waits for its withdrawals; proposals that remain expire."""


class LedgerApiError(LedgerUnavailable, ApiError):
    """The API server refused to read or write a Reservation. The `status` shows whether it would refuse other
    ones too.
    """

    def __init__(self, error: ApiError) -> None:
        ApiError.__init__(self, error.status, error.reason, error.message)

    def __str__(self) -> str:
        return f"the API server refused: {super().__str__()}"


class KubeLedger:
    """The `planner.ledger.ledger.Ledger` in Reservation objects. `start` it before use, `close` it after.

    `seconds`: how long a call tries to write its reservations. `owners`: finds the stored object of an
    expired hold before the hold is deleted.
    """

    def __init__(self, api: Api, seconds: float = COMMIT_SECONDS, owners: Owners = no_owners) -> None:
        self._owners = owners
        self._view = BookView(api)
        self._proposals = Proposals(self._view, seconds, owners)
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts watching."""
        self._watching = asyncio.create_task(self._view.reflector.run())

    async def close(self) -> None:
        """Waits for the withdrawals in progress, and stops watching."""
        if self._proposals.undoing:
            await asyncio.wait(self._proposals.undoing, timeout=UNDO_SECONDS)
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    def waiting(self) -> str:
        """Returns why the book is not known yet; "" once it is."""
        return self._view.waiting()

    def problem(self) -> str:
        """Returns the current problem of the watch, "" for none."""
        return self._view.reflector.problem

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """Returns the live reservations at `now`, from the watch and this replica's own writes.

        Reservations with the ids `names` are read from the API server if they are missing. The book may be
        older than the API server's: a plan on it is checked when it is reserved. Raises `LedgerUnavailable`
        if the watch is broken.
        """
        async with _reachable():
            self._view.check()
            await asyncio.gather(*(self._view.look(name) for name in names if not self._view.has(name, now)))
        return self.watched(now)

    def watched(self, now: float) -> Book:
        """Returns the live reservations at `now` even if the watch is broken: for display, not for
        reservations.
        """
        return Book(self._view.objects.shown, self._view.live(now))

    @property
    def reflector(self) -> Reflector:
        """The watch of the book."""
        return self._view.reflector

    async def reserve(
        self, reservation: Reservation, planned_on: int, now: float, headroom: Headroom = NO_HEADROOM
    ) -> Reservation:
        """Reserves one reservation as `reserve_all` does; returns it as it is in the book."""
        taken = await self.reserve_all([Wish(reservation, planned_on, headroom)], now)
        return taken.reservations[0]

    async def reserve_all(
        self, wishes: Sequence[Wish], now: float, keeps: Keeps = keeps_none
    ) -> ReserveResult:
        """Reserves what all wishes ask for, or nothing and raises `Conflict`, by the rules of
        `planner.ledger.conflicts`.

        Raises `Occupied` if a gang would lose a place that `keeps` protects, `ValueError` for mode `none`,
        which reserves nothing, and `LedgerUnavailable`.
        """
        for wish in wishes:
            if wish.reservation.mode == "none":
                raise ValueError(f"reservation {wish.reservation.id}: mode none reserves nothing")
        async with _reachable():
            return await self._proposals.take(wishes, now, keeps)

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """Claims the hold, so that it does not expire: its workload exists. Returns False if there is no live
        hold.
        """
        async with _reachable():
            while (entry := await self._judged(reservation_id, now)) is not None:
                held = entry.reservation
                if held is not None and held.state == "claimed" and held.owner_uid == owner_uid:
                    return True
                with suppress(ChangedMeanwhile):
                    await self._view.merge(reservation_id, documents.claimed(entry, owner_uid))
                    return True
        return False

    async def prolong(self, reservation_id: str, expires: float, now: float) -> bool:
        """Prolongs the hold until `expires`, seconds since the epoch, unless it expires later or never.
        Returns False if there is no live hold.
        """
        async with _reachable():
            while (entry := await self._judged(reservation_id, now)) is not None:
                held = entry.reservation
                if held is None or held.expires is None or held.expires >= expires:
                    return True
                with suppress(ChangedMeanwhile):
                    await self._view.merge(reservation_id, documents.prolonged(entry, expires))
                    return True
        return False

    async def judged(self, reservation_id: str, now: float) -> Reservation | None:
        """Returns the live reservation with this id as the API server has it; None if a claim would fail.
        Writes nothing.
        """
        async with _reachable():
            entry = self._view.readable_entry(reservation_id)
            if entry is not None and not _is_claimed(entry):  # deleted? A claim would see it when it patches
                await self._view.look(reservation_id)
            entry = await self._judged(reservation_id, now)
        return entry.reservation if entry is not None else None

    async def _judged(self, reservation_id: str, now: float) -> Entry | None:
        """Returns the live entry with this id; None if there is none, or if it is a proposal that loses to an
        earlier one.
        """
        entry = await self._view.find(reservation_id)
        if entry is None or entry.reservation is None or not lives(entry.reservation, now):
            return None
        # With `since`, the object was written again after its proposal, which happens only to held places.
        is_held = entry.since or _is_claimed(entry) or await self._proposals.is_held(entry)
        return entry if is_held else None

    async def release(self, reservation_id: str) -> bool:
        """Releases the reservation. Returns False if there was none."""
        async with _reachable():
            while True:
                entry = await self._view.find(reservation_id)
                if entry is None:
                    return False
                with suppress(ChangedMeanwhile):
                    return await self._view.delete(entry)

    async def give_back(self, seen: Reservation) -> bool:
        """Releases the reservation only as it was seen: a gang that was applied again under the same name
        keeps its place. Returns False if it differs or does not exist.
        """
        async with _reachable():
            entry = await self._view.find(seen.id)
            if entry is None or entry.reservation != seen:
                return False
            with suppress(ChangedMeanwhile):
                return await self._view.delete(entry)
        return False

    async def sweep(self, now: float) -> tuple[Reservation, ...]:
        """Deletes expired holds without an owner, and returns them; claims the others for their owners. If
        several replicas sweep at the same time, only one of them returns each hold.
        """
        swept: list[Reservation] = []
        async with _reachable():
            self._view.check()
            owner = self._owners()
            for entry in self._view.expired(now):
                with suppress(ChangedMeanwhile):
                    is_deleted = await self._proposals.expired_holds.end(entry, now, owner)
                    assert entry.reservation is not None, "what expires is a reservation"
                    if is_deleted and not documents.is_next(entry.name, entry.reservation.gang):
                        swept.append(entry.reservation)
        return tuple(swept)

    def next_expiry(self) -> float:
        """Returns when the next hold expires, seconds since the epoch; infinity for none."""
        return self._view.next_expiry()

    def find(self, reservation_id: str) -> Reservation | None:
        """Returns the reservation with this id from the watch, even if it has expired or was not judged; None
        for none.
        """
        entry = self._view.readable_entry(reservation_id)
        return entry.reservation if entry is not None else None


def _is_claimed(entry: Entry) -> bool:
    return entry.reservation is not None and entry.reservation.state == "claimed"


@asynccontextmanager
async def _reachable() -> AsyncIterator[None]:
    try:
        yield
    except Unreachable as error:
        raise LedgerUnavailable(str(error)) from error
    except ApiError as error:
        raise LedgerApiError(error) from error
