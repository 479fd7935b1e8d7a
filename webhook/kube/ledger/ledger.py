"""The ledger in the API server: `planner.ledger.ledger.Ledger` for any number of replicas.

Invariants 1, 3, 4 and 7 rest on one object (`commits.LEDGER`), see docs/decisions/0030:
- A commit is one conditional PUT of it. Of two writers on the same version exactly one succeeds, and the
  other looks at the book anew. So commits are in one order, and each was judged against all before it.
- Before a writer commits it applies the last commit, if its writer has not: a crash loses nothing.
- What a crash leaves besides is an uncommitted Reservation, which counts for nothing and is swept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from planner.ledger.conflicts import NO_HEADROOM, Headroom, Wish
from planner.ledger.ledger import LedgerUnavailable, Taken
from planner.model.reservation import Book, Reservation
from webhook.kube.api.client import Api, ApiError, Unreachable
from webhook.kube.api.reflector import Reflector
from webhook.kube.ledger import commits
from webhook.kube.ledger.view import Again, BookView, lives, path
from webhook.kube.ledger.writer import Writer


class KubeLedger:
    """`planner.ledger.ledger.Ledger` in custom resources. `start` it before use, `close` it after."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._view = BookView(api)
        self._writer = Writer(self._view)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to watch and to write."""
        self._tasks = [
            asyncio.create_task(self._view.reflector.run()),
            asyncio.create_task(self._writer.run()),
        ]

    async def close(self) -> None:
        """Stop. What waits raises `LedgerUnavailable`; a commit under way is finished by whoever is next."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._writer.stop()

    def waiting(self) -> str:
        """Why the book is not known yet; "" once it is."""
        return self._view.waiting()

    def problem(self) -> str:
        """What is wrong with the watch now, "" where all is well."""
        return self._view.reflector.problem

    async def book(self, now: float) -> Book:
        """The live reservations at `now`: every commit that was finished before the call is in it."""
        async with _reachable():
            turn = await self._view.caught_up()
        return replace(self.watched(now), revision=turn.seq)

    def watched(self, now: float) -> Book:
        """The live reservations as the watch tells them: to look at, not to reserve by."""
        live = (kept.reservation for kept in self._view.kept() if lives(kept.reservation, now))
        return Book(0, tuple(sorted(live, key=lambda reservation: reservation.id)))

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

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> Taken:
        """Take all of these in one commit, or none and raise `Conflict`; `planner.ledger.conflicts` has the
        rules.

        Raises `ValueError` for mode `none`, which reserves nothing, and `LedgerUnavailable`.
        """
        for wish in wishes:
            if wish.reservation.mode == "none":
                raise ValueError(f"reservation {wish.reservation.id}: mode none reserves nothing")
        async with _reachable():
            return await self._writer.ask(wishes, now)

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """The workload exists: the hold no longer expires. False where none is live."""
        async with _reachable():
            while True:
                entry = await self._view.find(reservation_id)
                held = entry.reservation if entry is not None else None
                if entry is None or held is None or not lives(held, now):
                    return False
                if held.state == "claimed" and held.owner_uid == owner_uid:
                    return True
                try:
                    patch = commits.claimed(entry.version, owner_uid)
                    self._view.objects.stored(await self._api.merge(path(reservation_id), patch))
                except ApiError as error:
                    if error.status not in (404, 409):
                        raise
                    await self._view.look(reservation_id)
                    continue
                return True

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

    async def sweep(self, now: float, stale: Iterable[str] = ()) -> tuple[Reservation, ...]:
        """Delete the holds that expired, and of the uncommitted objects those whose UIDs are `stale`.

        Gives the holds that it deleted. Of several replicas that sweep at once each hold is given by one.
        """
        swept: list[Reservation] = []
        stale = frozenset(stale)
        async with _reachable():
            turn = await self._view.caught_up()
            pointed = {intent.uid for intent in turn.intents}
            for entry in list(self._view.objects.entries.values()):
                held = entry.kept.reservation if entry.kept else None
                gone = held is not None and not lives(held, now)
                if gone or (not entry.since and entry.uid in stale and entry.uid not in pointed):
                    with suppress(Again):
                        if await self._view.delete(entry) and held is not None:
                            swept.append(held)
        return tuple(swept)

    def uncommitted(self) -> list[str]:
        """The UIDs of the objects that no commit has filled."""
        return [entry.uid for entry in self._view.objects.entries.values() if not entry.since]


@asynccontextmanager
async def _reachable() -> AsyncIterator[None]:
    try:
        yield
    except Unreachable as error:
        raise LedgerUnavailable(str(error)) from error
    except ApiError as error:
        raise LedgerUnavailable(f"the API server refused: {error}") from error
