"""What commits to the book: one task, one commit at a time (docs/decisions/0030)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from planner.ledger.conflicts import NO_HEADROOM, Blocked, Headroom, RecordedReservation, judge
from planner.ledger.ledger import Conflict, LedgerUnavailable
from planner.model.reservation import Reservation, reservation_id
from webhook.kube.api.client import ApiError, Unreachable
from webhook.kube.ledger import commits
from webhook.kube.ledger.commits import Entry, Turn
from webhook.kube.ledger.view import Again, BookView, ledger_path, lives

BATCH = 32
"""Wishes that one commit carries at most."""


COMMIT_SECONDS = 3.5
"""How long a wish is tried for; inside the webhook's own deadline."""


_NEWEST = 2**62
"""Later than every commit: what this batch itself takes."""


log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Wish:
    """One reservation that somebody waits for. `until`: the event loop's time at which that is over."""

    wanted: Reservation
    planned_on: int
    now: float
    until: float
    answer: asyncio.Future[Reservation]
    headroom: Headroom = field(default_factory=dict)

    def settle(self, outcome: Reservation | Exception) -> None:
        """Answer, unless nobody waits any more."""
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


Judged = tuple[Wish, Reservation | RecordedReservation | Blocked]


class Writer:
    """`run` it as a task; `ask` it for reservations."""

    def __init__(self, view: BookView) -> None:
        self._view = view
        self._wishes: deque[Wish] = deque()
        self._wake = asyncio.Event()
        self._spare: set[str] = set()
        """Objects that were made for wishes which then lost."""

    async def ask(
        self, reservation: Reservation, planned_on: int, now: float, headroom: Headroom = NO_HEADROOM
    ) -> Reservation:
        """Take it, or raise `Conflict` or `LedgerUnavailable`."""
        loop = asyncio.get_running_loop()
        wish = Wish(
            reservation, planned_on, now, loop.time() + COMMIT_SECONDS, loop.create_future(), headroom
        )
        while (newer := self._overtaken(wish)) is not None:
            if await self._stands(newer.holder):
                raise Conflict(newer.holder)  # at once: it is to be planned anew
        self._wishes.append(wish)
        self._wake.set()
        return await wish.answer

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._wishes:
                await self._grant()
            await self._tidy()

    def stop(self) -> None:
        """What waits is not tried any more."""
        while self._wishes:
            self._wishes.popleft().settle(LedgerUnavailable("this replica stops"))

    async def _grant(self) -> None:
        """Answer what waits, and what comes meanwhile as far as it goes into one commit."""
        pause, why = 0.005, "other replicas were faster for too long; retry"
        batch: list[Wish] = []
        while True:
            batch = [wish for wish in batch if not wish.answer.done()]
            while self._wishes and len(batch) < BATCH:
                batch.append(self._wishes.popleft())
            if not batch:
                return
            try:
                async with asyncio.timeout_at(min(wish.until for wish in batch)):
                    await self._commit(batch)
                    await asyncio.sleep(0)
            except TimeoutError:
                over = asyncio.get_running_loop().time()
                _settle([wish for wish in batch if wish.until <= over], LedgerUnavailable(why))
            except (Again, Unreachable) as error:
                # After no answer the commit may stand or not: the next look at the book tells.
                why = str(error) or why
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.2)
            except ApiError as error:
                _settle(batch, LedgerUnavailable(f"the API server refused: {error}"))
            except LedgerUnavailable as error:
                _settle(batch, error)
            except asyncio.CancelledError:
                _settle(batch, LedgerUnavailable("this replica stops"))
                raise
            except Exception as error:  # the writer must outlive a bad wish
                log.error("ledger: %s", type(error).__name__, exc_info=error)
                _settle(batch, LedgerUnavailable(f"an internal error ({type(error).__name__})"))

    async def _commit(self, batch: Sequence[Wish]) -> None:
        """Judge the wishes against the whole book, and commit those that can be granted together."""
        turn = await self._view.caught_up()
        for entry in self._view.expired(max(wish.now for wish in batch)):
            await self._view.delete(entry)  # on the condition that nobody claimed it meanwhile
        chosen = await self._chosen(batch, turn)
        if not chosen:
            return
        places = await asyncio.gather(*(self._place(taken) for _, taken in chosen))
        seq = turn.seq + 1
        intents = [
            commits.intent_for(taken, place.uid, seq)
            for (_, taken), place in zip(chosen, places, strict=True)
        ]
        try:
            written = commits.ledger_object(seq, turn.version, intents)
            await self._view.api.replace(ledger_path(), written)
        except ApiError as error:
            if error.status == 409:
                raise Again from None
            raise
        there = await asyncio.gather(
            *(self._view.apply(one, at.version) for one, at in zip(intents, places, strict=True))
        )
        for (wish, taken), stands in zip(chosen, there, strict=True):
            if stands:  # else its object was deleted meanwhile, and it is judged again
                wish.settle(taken)

    async def _chosen(self, batch: Sequence[Wish], turn: Turn) -> list[tuple[Wish, Reservation]]:
        """Those that can be taken; the others are answered."""
        chosen: list[tuple[Wish, Reservation]] = []
        for wish, found in await self._confirmed(batch):
            if isinstance(found, Blocked):
                self._spare.add(wish.wanted.id)
                wish.settle(Conflict(found.holder))
            elif isinstance(found, Reservation):
                chosen.append((wish, found))
            elif found.since <= turn.seq:
                # One that this batch itself is about to take is answered with the one who took it first.
                wish.settle(found.reservation)
        return chosen

    async def _confirmed(self, batch: Sequence[Wish]) -> list[Judged]:
        """The outcomes, of which none is blocked by what was released and the watch has not told of yet."""
        looked_at = {wish.wanted.gang for wish in batch}
        while True:
            outcomes = self._judged(batch)
            holders = {found.holder for _, found in outcomes if isinstance(found, Blocked)} - looked_at
            if not holders:
                return outcomes
            await asyncio.gather(*map(self._stands, holders))
            looked_at |= holders

    async def _stands(self, gang: str) -> bool:
        """Whether the gang's reservation is there still; the view takes up what is found."""
        name = reservation_id(gang)
        await self._view.look(name)
        entry = self._view.objects.entries.get(name)
        return entry is not None and entry.kept is not None

    def _overtaken(self, wish: Wish) -> Blocked | None:
        """Who took a part of the place after it was planned, and before it was asked for."""
        live = [kept for kept in self._view.kept() if lives(kept.reservation, wish.now)]
        newer = [recorded for recorded in live if recorded.since > wish.planned_on]
        found = judge(wish.wanted, wish.planned_on, newer, wish.headroom)
        return found if isinstance(found, Blocked) else None

    def _judged(self, batch: Iterable[Wish]) -> list[Judged]:
        """The outcome of each wish, each seeing those granted before it as the newest of the book."""
        book = {kept.reservation.id: kept for kept in self._view.kept()}
        result: list[Judged] = []
        for wish in batch:
            outcome = judge(wish.wanted, wish.planned_on, book.values(), wish.headroom)
            if isinstance(outcome, Reservation):
                book[outcome.id] = RecordedReservation(outcome, _NEWEST)
            result.append((wish, outcome))
        return result

    async def _place(self, reservation: Reservation) -> Entry:
        """The object that the reservation goes into: the gang's own, or a new one that counts for nothing."""
        objects = self._view.objects
        known = objects.entries.get(reservation.id)
        if known is not None:
            return known
        try:
            made = await self._view.api.create(commits.RESERVATIONS, commits.placeholder(reservation))
        except ApiError as error:
            if error.status != 409:
                raise
            await self._view.look(reservation.id)
            raise Again from None
        objects.stored(made)
        return commits.entry_from(made)[0]

    async def _tidy(self) -> None:
        """Away with objects whose wishes lost and did not come again, while there is nothing else to do."""
        while self._spare and not self._wishes:
            entry = self._view.objects.entries.get(self._spare.pop())
            if entry is not None and not entry.since:
                with suppress(Again, ApiError):
                    await self._view.delete(entry)


def _settle(wishes: Iterable[Wish], outcome: Exception) -> None:
    for wish in wishes:
        wish.settle(outcome)
