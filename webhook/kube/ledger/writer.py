"""What commits to the book: one task, one commit at a time (docs/decisions/0030)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from planner.ledger.conflicts import Blocked, RecordedReservation, Wish, judge
from planner.ledger.ledger import Conflict, LedgerUnavailable, Taken
from planner.model.reservation import Reservation, reservation_id
from webhook.kube.api.client import ApiError, Unreachable
from webhook.kube.ledger import commits
from webhook.kube.ledger.commits import Entry
from webhook.kube.ledger.view import Again, BookView, ledger_path, lives

BATCH = 32
"""Calls that one commit answers at most."""


COMMIT_SECONDS = 3.5
"""How long a call is tried for; inside the webhook's own deadline."""


_NEWEST = 2**62
"""Later than every commit: what this batch itself takes."""


log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Waiting:
    """A call that waits for its wishes, all or none. `until`: the event loop's time at which that is over."""

    wishes: tuple[Wish, ...]
    now: float
    until: float
    answer: asyncio.Future[Taken]

    @property
    def gangs(self) -> set[str]:
        """The gangs that it asks for."""
        return {wish.reservation.gang for wish in self.wishes}

    def settle(self, outcome: Taken | Exception) -> None:
        """Answer, unless nobody waits any more."""
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a call can have: `taken`, of which `stored` is to be committed. `pending`: a part of it is what an
    earlier call of the same batch is about to take. `holder`: who is in the way; nothing is taken then."""

    taken: Taken
    stored: tuple[Reservation, ...] = ()
    kept: frozenset[str] = frozenset()
    pending: bool = False
    holder: str = ""


NOTHING = Taken((), frozenset())


class Writer:
    """`run` it as a task; `ask` it for reservations."""

    def __init__(self, view: BookView) -> None:
        self._view = view
        self._waiting: deque[Waiting] = deque()
        self._wake = asyncio.Event()
        self._spare: set[str] = set()
        """Objects that were made for wishes which then lost."""

    async def ask(self, wishes: Sequence[Wish], now: float) -> Taken:
        """Take them all, or raise `Conflict` or `LedgerUnavailable`."""
        loop = asyncio.get_running_loop()
        call = Waiting(tuple(wishes), now, loop.time() + COMMIT_SECONDS, loop.create_future())
        while holder := self._overtaken(call):
            if await self._stands(holder):
                raise Conflict(holder)  # at once: it is to be planned anew
        self._waiting.append(call)
        self._wake.set()
        return await call.answer

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._grant()
            await self._tidy()

    def stop(self) -> None:
        """What waits is not tried any more."""
        while self._waiting:
            self._waiting.popleft().settle(LedgerUnavailable("this replica stops"))

    async def _grant(self) -> None:
        """Answer what waits, and what comes meanwhile as far as it goes into one commit."""
        pause, why = 0.005, "other replicas were faster for too long; retry"
        batch: list[Waiting] = []
        while True:
            batch = [call for call in batch if not call.answer.done()]
            while self._waiting and len(batch) < BATCH:
                batch.append(self._waiting.popleft())
            if not batch:
                return
            try:
                async with asyncio.timeout_at(min(call.until for call in batch)):
                    await self._commit(batch)
                    await asyncio.sleep(0)
            except TimeoutError:
                over = asyncio.get_running_loop().time()
                _settle([call for call in batch if call.until <= over], LedgerUnavailable(why))
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
            except Exception as error:  # the writer must outlive a bad call
                log.error("ledger: %s", type(error).__name__, exc_info=error)
                _settle(batch, LedgerUnavailable(f"an internal error ({type(error).__name__})"))

    async def _commit(self, batch: Sequence[Waiting]) -> None:
        """Judge the calls against the whole book, and commit those that can be granted together."""
        turn = await self._view.caught_up()
        for entry in self._view.expired(max(call.now for call in batch)):
            await self._view.delete(entry)  # on the condition that nobody claimed it meanwhile
        granted = [
            (call, judged) for call, judged in await self._confirmed(batch) if self._granted(call, judged)
        ]
        stored = [reservation for _, judged in granted for reservation in judged.stored]
        if not stored:
            return
        places = await asyncio.gather(*map(self._place, stored))
        seq = turn.seq + 1
        intents = [
            commits.intent_for(reservation, place.uid, seq)
            for reservation, place in zip(stored, places, strict=True)
        ]
        try:
            written = commits.ledger_object(seq, turn.version, intents)
            await self._view.api.replace(ledger_path(), written)
        except ApiError as error:
            if error.status == 409:
                raise Again from None
            raise
        applied = await asyncio.gather(
            *(self._view.apply(intent, entry.version) for intent, entry in zip(intents, places, strict=True))
        )
        self._view.complete(seq)
        gone = {
            reservation.id for reservation, is_applied in zip(stored, applied, strict=True) if not is_applied
        }
        for call, judged in granted:
            if not any(reservation.id in gone for reservation in judged.stored):
                call.settle(judged.taken)  # else an object was deleted meanwhile, and it is judged again

    def _granted(self, call: Waiting, judged: Judged) -> bool:
        """Whether something is to be committed for a call; where that is known not to be, it is answered."""
        if judged.holder:
            self._spare |= {wish.reservation.id for wish in call.wishes}
            call.settle(Conflict(judged.holder))
        elif not judged.stored and not judged.pending:
            call.settle(judged.taken)
        return bool(judged.stored) and not judged.pending

    async def _confirmed(self, batch: Sequence[Waiting]) -> list[tuple[Waiting, Judged]]:
        """What each call can have. What is in the way or kept was looked up: the watch may not have told yet
        that it was released."""
        asked = set[str]().union(*(call.gangs for call in batch))
        looked_at: set[str] = set()
        while True:
            outcomes = self._judged(batch)
            holders = {judged.holder for _, judged in outcomes if judged.holder} - asked
            doubtful = holders.union(*(judged.kept for _, judged in outcomes)) - looked_at
            if not doubtful:
                return outcomes
            await asyncio.gather(*map(self._stands, doubtful))
            looked_at |= doubtful

    async def _stands(self, gang: str) -> bool:
        """Whether the gang's reservation is there still; the view takes up what is found."""
        name = reservation_id(gang)
        await self._view.look(name)
        entry = self._view.objects.entries.get(name)
        return entry is not None and entry.kept is not None

    def _overtaken(self, call: Waiting) -> str:
        """Who took a part of the place after it was planned and before it was asked for, "" for nobody."""
        live = [kept for kept in self._view.kept() if lives(kept.reservation, call.now)]
        for wish in call.wishes:
            newer = [kept for kept in live if kept.since > wish.planned_on]
            verdict = judge(wish.reservation, wish.planned_on, newer, wish.headroom)
            if isinstance(verdict, Blocked):
                return verdict.holder
        return ""

    def _judged(self, batch: Iterable[Waiting]) -> list[tuple[Waiting, Judged]]:
        """The outcome of each call, each seeing those granted before it as the newest of the book."""
        book = {kept.reservation.id: kept for kept in self._view.kept()}
        result: list[tuple[Waiting, Judged]] = []
        for call in batch:
            judged = _judge_call(call, book)
            if not judged.pending:
                for reservation in judged.stored:
                    book[reservation.id] = RecordedReservation(reservation, _NEWEST)
            result.append((call, judged))
        return result

    async def _place(self, reservation: Reservation) -> Entry:
        """The object that the reservation goes into: the gang's own, or a new one that counts for nothing."""
        objects = self._view.objects
        known = objects.entries.get(reservation.id)
        if known is not None:
            return known
        try:
            document = await self._view.api.create(commits.RESERVATIONS, commits.placeholder(reservation))
        except ApiError as error:
            if error.status != 409:
                raise
            await self._view.look(reservation.id)
            raise Again from None
        objects.stored(document)
        return commits.entry_from(document)[0]

    async def _tidy(self) -> None:
        """Away with objects whose wishes lost and did not come again, while there is nothing else to do."""
        while self._spare and not self._waiting:
            entry = self._view.objects.entries.get(self._spare.pop())
            if entry is not None and not entry.since:
                with suppress(Again, ApiError):
                    await self._view.delete(entry)


def _judge_call(call: Waiting, book: Mapping[str, RecordedReservation]) -> Judged:
    """All of a call's wishes, each seeing those before it, or who is in the way of one."""
    around = dict(book)
    held: list[Reservation] = []
    stored: list[Reservation] = []
    kept: list[RecordedReservation] = []
    for wish in call.wishes:
        verdict = judge(wish.reservation, wish.planned_on, around.values(), wish.headroom)
        if isinstance(verdict, Blocked):
            return Judged(NOTHING, holder=verdict.holder)
        if isinstance(verdict, RecordedReservation):
            kept.append(verdict)
            held.append(verdict.reservation)
        else:
            around[verdict.id] = RecordedReservation(verdict, _NEWEST)
            stored.append(verdict)
            held.append(verdict)
    return Judged(
        Taken(tuple(held), frozenset(reservation.id for reservation in stored if reservation.id not in book)),
        tuple(stored),
        frozenset(record.reservation.gang for record in kept if record.since < _NEWEST),
        any(record.since == _NEWEST for record in kept),
    )


def _settle(calls: Iterable[Waiting], outcome: Exception) -> None:
    for call in calls:
        call.settle(outcome)
