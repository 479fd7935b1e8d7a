"""The ledger in the API server: `planner.ledger.ledger.Ledger` for any number of replicas.

No domain that is held whole has two holders; a gang's place is held wholly or not at all; who asks again gets
the same place; a crash loses no place, and keeps none for ever. All of it rests on the order in which etcd
stores objects, see docs/decisions/0103:
- A place is one write of the gang's own object. It is held where nothing that was written before it and still
  is there stands in its way; who wrote it judges that when its watch has shown all that came before.
- So of two proposals that exclude each other the later one is withdrawn, whoever judges it, and gangs that
  share nothing wait for nobody.
- What a crash leaves is a hold that nobody claims: it keeps others out until it expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from planner.ledger.conflicts import NO_HEADROOM, Headroom, Wish
from planner.ledger.ledger import LedgerUnavailable, Taken
from planner.model.reservation import Book, Reservation
from webhook.kube.api.client import Api, ApiError, Unreachable
from webhook.kube.api.reflector import Reflector
from webhook.kube.ledger import documents
from webhook.kube.ledger.documents import Entry
from webhook.kube.ledger.owners import Owners, no_owners
from webhook.kube.ledger.proposals import COMMIT_SECONDS, Keeps, Proposals, keeps_none
from webhook.kube.ledger.view import Again, BookView, lives

UNDO_SECONDS = 2.0
"""How long a replica that stops waits for what is being withdrawn; what stays expires."""


class KubeLedger:
    """`planner.ledger.ledger.Ledger` in custom resources. `start` it before use, `close` it after.
    `seconds`: for how long a reservation is tried. `owners` are asked before an expired hold is deleted."""

    def __init__(self, api: Api, seconds: float = COMMIT_SECONDS, owners: Owners = no_owners) -> None:
        self._owners = owners
        self._view = BookView(api)
        self._proposals = Proposals(self._view, seconds, owners)
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to watch."""
        self._watching = asyncio.create_task(self._view.reflector.run())

    async def close(self) -> None:
        """Stop, when what is being withdrawn is gone."""
        if self._proposals.undoing:
            await asyncio.wait(self._proposals.undoing, timeout=UNDO_SECONDS)
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    def waiting(self) -> str:
        """Why the book is not known yet; "" once it is."""
        return self._view.waiting()

    def problem(self) -> str:
        """What is wrong with the watch now, "" where all is well."""
        return self._view.reflector.problem

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """The live reservations at `now`, as the watch has told and as this replica wrote them; those with
        these ids are read where they are not among them.

        It may be older than the API server's: what is planned on it is judged by what there is when it is
        reserved. Raises `LedgerUnavailable` where nothing tells of changes now.
        """
        async with _reachable():
            self._view.check()
            await asyncio.gather(*(self._view.look(name) for name in names if not self._view.has(name, now)))
        return self.watched(now)

    def watched(self, now: float) -> Book:
        """The same, whether the watch is open or not: to look at, not to reserve by."""
        return Book(self._view.objects.shown, self._view.live(now))

    @property
    def reflector(self) -> Reflector:
        """The watch of the book."""
        return self._view.reflector

    async def reserve(
        self, reservation: Reservation, planned_on: int, now: float, headroom: Headroom = NO_HEADROOM
    ) -> Reservation:
        """`reserve_all` for one reservation; gives it as the book has it."""
        taken = await self.reserve_all([Wish(reservation, planned_on, headroom)], now)
        return taken.reservations[0]

    async def reserve_all(self, wishes: Sequence[Wish], now: float, keeps: Keeps = keeps_none) -> Taken:
        """Take all of these, or none and raise `Conflict`, or `Occupied` where a gang would lose a place that
        `keeps` keeps; `planner.ledger.conflicts` has the rules.

        Raises `ValueError` for mode `none`, which reserves nothing, and `LedgerUnavailable`.
        """
        for wish in wishes:
            if wish.reservation.mode == "none":
                raise ValueError(f"reservation {wish.reservation.id}: mode none reserves nothing")
        async with _reachable():
            return await self._proposals.take(wishes, now, keeps)

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """The workload exists: the hold no longer expires. False where none is live."""
        async with _reachable():
            while (entry := await self._judged(reservation_id, now)) is not None:
                held = entry.reservation
                if held is not None and held.state == "claimed" and held.owner_uid == owner_uid:
                    return True
                with suppress(Again):
                    await self._view.merge(reservation_id, documents.claimed(entry, owner_uid))
                    return True
        return False

    async def prolong(self, reservation_id: str, expires: float, now: float) -> bool:
        """The hold lives until then, seconds since the epoch, if not longer. False where none is live."""
        async with _reachable():
            while (entry := await self._judged(reservation_id, now)) is not None:
                held = entry.reservation
                if held is None or held.expires is None or held.expires >= expires:
                    return True
                with suppress(Again):
                    await self._view.merge(reservation_id, documents.prolonged(entry, expires))
                    return True
        return False

    async def judged(self, reservation_id: str, now: float) -> Reservation | None:
        """The live reservation with this id as it is in the API server now, None where a claim would find
        none, or find it withdrawn. Writes nothing."""
        async with _reachable():
            entry = self._view.kept(reservation_id)
            if entry is not None and not _is_claimed(entry):  # a claim's patch would tell that it is gone
                await self._view.look(reservation_id)
            entry = await self._judged(reservation_id, now)
        return entry.reservation if entry is not None else None

    async def _judged(self, reservation_id: str, now: float) -> Entry | None:
        """What is live under an id, and not a proposal that will be withdrawn for an earlier one."""
        entry = await self._view.find(reservation_id)
        if entry is None or entry.reservation is None or not lives(entry.reservation, now):
            return None
        stands = entry.since or _is_claimed(entry) or await self._proposals.hold(entry)
        return entry if stands else None

    async def release(self, reservation_id: str) -> bool:
        """Give it back. False where there was none."""
        async with _reachable():
            while True:
                entry = await self._view.find(reservation_id)
                if entry is None:
                    return False
                with suppress(Again):
                    return await self._view.delete(entry)

    async def give_back(self, seen: Reservation) -> bool:
        """Release it only as it was seen: a gang that came again under the same name keeps its place."""
        async with _reachable():
            entry = await self._view.find(seen.id)
            if entry is None or entry.reservation != seen:
                return False
            with suppress(Again):
                return await self._view.delete(entry)
        return False

    async def sweep(self, now: float) -> tuple[Reservation, ...]:
        """Delete the holds that expired and are nobody's, and give them. Of several replicas that sweep at
        once each hold is given by one."""
        swept: list[Reservation] = []
        async with _reachable():
            self._view.check()
            owner = self._owners()
            for entry in self._view.expired(now):
                with suppress(Again):
                    if await self._proposals.end(entry, now, owner) and not documents.is_next(entry.name):
                        assert entry.reservation is not None, "what expires is a reservation"
                        swept.append(entry.reservation)
        return tuple(swept)

    def next_expiry(self) -> float:
        """When the next hold expires, seconds since the epoch, as the watch tells; infinite for none."""
        return self._view.next_expiry()

    def find(self, reservation_id: str) -> Reservation | None:
        """The reservation with this id as the watch tells it, expired or not, judged or not."""
        entry = self._view.kept(reservation_id)
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
        raise LedgerUnavailable(f"the API server refused: {error}") from error
