"""The ledger in the API server: `planner.reservation.Ledger` for any number of replicas.

Invariants 1, 3, 4 and 7 rest on one object (`commits.LEDGER`), see docs/decisions/0030:
- A commit is one conditional PUT of it. Of two writers on the same version exactly one succeeds, and the
  other looks at the book anew. So commits are in one order, and each was judged against all before it.
- Before a writer commits it applies the last commit, if its writer has not: a crash loses nothing.
- What a crash leaves besides is an uncommitted Reservation, which counts for nothing and is swept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from planner.conflicts import Blocked, Kept, judge
from planner.reservation import Book, Conflict, LedgerUnavailable, Reservation
from webhook.kube import commits
from webhook.kube.client import Api, ApiError, Json, Unreachable
from webhook.kube.commits import Entry, Intent, Turn
from webhook.kube.objects import Objects
from webhook.kube.reflector import Reflector

BATCH = 32
"""Wishes that one commit carries at most; those that wait together go together."""
CATCH_UP_SECONDS = 0.3
"""How long the watch may take to tell of the last commit before the book is listed instead."""
COMMIT_SECONDS = 3.5
"""How long a wish is tried for; inside the webhook's own deadline."""
_NEWEST = 2**62
"""Later than every commit: what this batch itself takes."""
log = logging.getLogger("bayplan")


@dataclass(slots=True)
class _Wish:
    wanted: Reservation
    planned_on: int
    now: float
    until: float
    answer: asyncio.Future[Reservation]

    def settle(self, outcome: Reservation | Exception) -> None:
        """Answer, unless nobody waits any more."""
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


class _Retry(Exception):  # noqa: N818 - somebody else was faster; look again
    pass


class KubeLedger:
    """`planner.reservation.Ledger` in custom resources. `start` it before use, `close` it after."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._objects = Objects()
        self._reflector = Reflector(api, commits.RESERVATIONS, self._objects)
        self._complete = -1
        """The commit up to which a list has shown the book."""
        self._wishes: deque[_Wish] = deque()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to watch and to write."""
        self._tasks = [asyncio.create_task(self._reflector.run()), asyncio.create_task(self._write())]

    async def close(self) -> None:
        """Stop. What waits raises `LedgerUnavailable`; a commit under way is finished by whoever is next."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        while self._wishes:
            self._wishes.popleft().settle(LedgerUnavailable("this replica stops"))

    def waiting(self) -> str:
        """Why the book is not known yet; "" once it is."""
        return (
            "" if self._reflector.synced.is_set() else self._reflector.problem or "reservations: not read yet"
        )

    def problem(self) -> str:
        """What is wrong with the watch now, "" where all is well."""
        return self._reflector.problem

    async def book(self, now: float) -> Book:
        """The live reservations at `now`: every commit that was finished before the call is in it."""
        async with _reachable():
            turn = await self._caught_up()
        live = (kept.reservation for kept in self._kept() if _lives(kept.reservation, now))
        return Book(turn.seq, tuple(sorted(live, key=lambda one: one.id)))

    async def reserve(self, reservation: Reservation, planned_on: int, now: float) -> Reservation:
        """Take the reservation, whole or not at all, or raise `Conflict`; the rules are `planner.conflicts`'.

        Raises `ValueError` for mode `none`, which reserves nothing, and `LedgerUnavailable`.
        """
        if reservation.mode == "none":
            raise ValueError(f"reservation {reservation.id}: mode none reserves nothing")
        loop = asyncio.get_running_loop()
        wish = _Wish(reservation, planned_on, now, loop.time() + COMMIT_SECONDS, loop.create_future())
        self._wishes.append(wish)
        self._wake.set()
        return await wish.answer

    async def claim(self, reservation_id: str, owner_uid: str, now: float) -> bool:
        """The workload exists: the hold no longer expires. False where none is live."""
        async with _reachable():
            while True:
                entry = await self._find(reservation_id)
                held = entry.reservation if entry is not None else None
                if entry is None or held is None or not _lives(held, now):
                    return False
                if held.state == "claimed" and held.owner_uid == owner_uid:
                    return True
                try:
                    patch = commits.claimed(entry.version, owner_uid)
                    self._objects.stored(await self._api.merge(_path(reservation_id), patch))
                except ApiError as error:
                    if error.status not in (404, 409):
                        raise
                    await self._look(reservation_id)
                    continue
                return True

    async def release(self, reservation_id: str) -> bool:
        """Give it back. False where there was none."""
        async with _reachable():
            while True:
                entry = await self._find(reservation_id)
                if entry is None:
                    return False
                with suppress(_Retry):
                    return await self._delete(entry)

    async def give_back(self, seen: Reservation) -> bool:
        """Release it only as it was seen: a gang that came again under the same name keeps its place."""
        async with _reachable():
            entry = await self._find(seen.id)
            if entry is None or entry.reservation != seen:
                return False
            with suppress(_Retry):
                return await self._delete(entry)
        return False

    async def sweep(self, now: float, stale: Iterable[str] = ()) -> tuple[Reservation, ...]:
        """Delete the holds that expired, and of the uncommitted objects those whose UIDs are `stale`.

        Gives the holds that it deleted. Of several replicas that sweep at once each hold is given by one.
        """
        swept: list[Reservation] = []
        stale = frozenset(stale)
        async with _reachable():
            turn = await self._caught_up()
            pointed = {intent.uid for intent in turn.intents}
            for entry in list(self._objects.entries.values()):
                held = entry.kept.reservation if entry.kept else None
                gone = held is not None and not _lives(held, now)
                if gone or (not entry.since and entry.uid in stale and entry.uid not in pointed):
                    with suppress(_Retry):
                        if await self._delete(entry) and held is not None:
                            swept.append(held)
        return tuple(swept)

    def uncommitted(self) -> dict[str, str]:
        """UID to the time of making (RFC 3339) of the objects that no commit has filled."""
        return {entry.uid: entry.made for entry in self._objects.entries.values() if not entry.since}

    def _kept(self) -> list[Kept]:
        return [entry.kept for entry in self._objects.entries.values() if entry.kept]

    # --- writing: one task, one commit at a time, all that waits in it ---

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._wishes:
                batch = [self._wishes.popleft() for _ in range(min(BATCH, len(self._wishes)))]
                await self._grant(batch)

    async def _grant(self, batch: list[_Wish]) -> None:
        """Answer every wish of a batch, whatever happens."""
        pause, why = 0.005, "other replicas were faster for too long; retry"
        while open_wishes := [wish for wish in batch if not wish.answer.done()]:
            try:
                async with asyncio.timeout_at(min(wish.until for wish in open_wishes)):
                    await self._commit(open_wishes)
                    await asyncio.sleep(0)
            except TimeoutError:
                _settle(open_wishes, LedgerUnavailable(why))
            except (_Retry, Unreachable) as error:
                # After no answer the commit may stand or not: the next look at the book tells.
                why = str(error) or why
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.2)
            except ApiError as error:
                _settle(open_wishes, LedgerUnavailable(f"the API server refused: {error}"))
            except LedgerUnavailable as error:
                _settle(open_wishes, error)
            except asyncio.CancelledError:
                _settle(open_wishes, LedgerUnavailable("this replica stops"))
                raise
            except Exception as error:  # the writer must outlive a bad wish
                log.error("ledger: %s", type(error).__name__, exc_info=error)
                _settle(open_wishes, LedgerUnavailable(f"an internal error ({type(error).__name__})"))

    async def _commit(self, batch: list[_Wish]) -> None:
        """Judge the wishes against the whole book, and commit those that can be granted together."""
        turn = await self._caught_up()
        await self._sweep_before(max(wish.now for wish in batch))
        outcomes = self._judged(batch)
        if any(isinstance(outcome, Blocked) for _, outcome in outcomes):
            await self._relist(turn)  # a release that the watch has not told of yet must not be in the way
            outcomes = self._judged(batch)
        chosen: list[tuple[_Wish, Reservation]] = []
        for wish, outcome in outcomes:
            if isinstance(outcome, Blocked):
                await self._clear_away(wish.wanted.id)
                wish.settle(Conflict(outcome.holder))
            elif isinstance(outcome, Kept):
                # One that this batch itself is about to take is answered with the one who took it first.
                if outcome.since <= turn.seq:
                    wish.settle(outcome.reservation)
            else:
                chosen.append((wish, outcome))
        if not chosen:
            return
        places = await asyncio.gather(*(self._place(taken) for _, taken in chosen))
        seq = turn.seq + 1
        intents = [
            commits.intent_for(taken, place.uid, seq)
            for (_, taken), place in zip(chosen, places, strict=True)
        ]
        try:
            await self._api.replace(_ledger_path(), commits.ledger_object(seq, turn.version, intents))
        except ApiError as error:
            if error.status == 409:
                raise _Retry from None
            raise
        versions = [place.version for place in places]
        there = await asyncio.gather(
            *(self._apply(one, at) for one, at in zip(intents, versions, strict=True))
        )
        for (wish, taken), stands in zip(chosen, there, strict=True):
            if stands:  # else its object was deleted meanwhile, and it is judged again
                wish.settle(taken)

    def _judged(self, batch: list[_Wish]) -> list[tuple[_Wish, Reservation | Kept | Blocked]]:
        """The outcome of each wish, each seeing those granted before it as the newest of the book."""
        book = {kept.reservation.id: kept for kept in self._kept()}
        found: list[tuple[_Wish, Reservation | Kept | Blocked]] = []
        for wish in batch:
            outcome = judge(wish.wanted, wish.planned_on, book.values())
            if isinstance(outcome, Reservation):
                book[outcome.id] = Kept(outcome, _NEWEST)
            found.append((wish, outcome))
        return found

    async def _sweep_before(self, now: float) -> None:
        """Expired holds go before anything is judged, on the condition that nobody claimed them meanwhile."""
        expired = [
            entry
            for entry in self._objects.entries.values()
            if entry.kept and not _lives(entry.kept.reservation, now)
        ]
        for entry in expired:
            await self._delete(entry)

    async def _place(self, reservation: Reservation) -> Entry:
        """The object that the reservation goes into: the gang's own, or a new one that counts for nothing."""
        known = self._objects.entries.get(reservation.id)
        if known is not None:
            return known
        try:
            made = await self._api.create(commits.RESERVATIONS, commits.placeholder(reservation))
        except ApiError as error:
            if error.status != 409:
                raise
            await self._look(reservation.id)
            raise _Retry from None
        self._objects.stored(made)
        return commits.entry_from(made)[0]

    async def _clear_away(self, name: str) -> None:
        """The object of a wish that lost, if no commit ever filled it."""
        entry = self._objects.entries.get(name)
        if entry is not None and not entry.since:
            with suppress(_Retry):
                await self._delete(entry)

    async def _apply(self, intent: Intent, version: str) -> bool:
        """Write what was committed into its object. False where that was deleted; done already is as good."""
        current: Json | None = None
        while True:
            try:
                written = commits.applied(intent, version, current)
                self._objects.stored(await self._api.replace(_path(intent.name), written))
                return True
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
            current = await self._look(intent.name)
            if current is None or current["metadata"]["uid"] != intent.uid:
                return False
            if ((current.get("status") or {}).get("since") or 0) >= intent.status["since"]:
                return True
            version = current["metadata"]["resourceVersion"]

    # --- reading: nothing is believed that is older than the last commit ---

    async def _caught_up(self) -> Turn:
        """The last commit, applied, and our picture of the book at least as new."""
        if not self._reflector.synced.is_set():
            raise LedgerUnavailable(self.waiting())
        turn = await self._turn()
        if self._seen(turn):
            return turn
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while not self._seen(turn):
                    await self._objects.news.wait()
                return turn
        # The watch lags, or the writer died between commit and application.
        await asyncio.gather(*(self._finish(intent) for intent in turn.intents))
        await self._relist(turn)
        return turn

    def _seen(self, turn: Turn) -> bool:
        return self._complete >= turn.seq or self._objects.has_seen(turn)

    async def _finish(self, intent: Intent) -> None:
        current = await self._look(intent.name)
        if current is not None and current["metadata"]["uid"] == intent.uid:
            status = current.get("status") or {}
            if (status.get("since") or 0) < intent.status["since"]:
                await self._apply(intent, current["metadata"]["resourceVersion"])

    async def _turn(self) -> Turn:
        try:
            return commits.turn_from(await self._api.get(_ledger_path()))
        except ApiError as error:
            if error.status != 404:
                raise
        # The first commit ever, or somebody deleted the object: then numbers go on after what was seen.
        await self._reflector.relist()
        last = self._objects.newest + 1 if self._objects.newest else 0
        with suppress(ApiError):
            await self._api.create(commits.LEDGERS, commits.ledger_object(last, "", ()))
        return commits.turn_from(await self._api.get(_ledger_path()))

    async def _relist(self, turn: Turn) -> None:
        await self._reflector.relist()
        self._complete = max(self._complete, turn.seq)

    async def _find(self, name: str) -> Entry | None:
        """The committed entry of a name, None where there is none."""
        entry = self._objects.entries.get(name)
        if entry is None or entry.kept is None:
            await self._caught_up()
            if self._objects.entries.get(name) is None or not self._objects.entries[name].since:
                await self._look(name)
            entry = self._objects.entries.get(name)
        return entry if entry is not None and entry.kept is not None else None

    async def _look(self, name: str) -> Json | None:
        """The object as it is, None where there is none; the picture takes it up."""
        try:
            found = await self._api.get(_path(name))
        except ApiError as error:
            if error.status != 404:
                raise
            self._objects.entries.pop(name, None)
            return None
        self._objects.stored(found)
        return found

    async def _delete(self, entry: Entry) -> bool:
        """Delete exactly this version; False where it was gone. Raises `_Retry` where it changed."""
        try:
            done = await self._api.delete(_path(entry.name), version=entry.version, uid=entry.uid)
        except ApiError as error:
            if error.status != 409:
                raise
            await self._look(entry.name)
            raise _Retry from None
        self._objects.gone(entry.name, entry.uid)
        return done


def _lives(reservation: Reservation, now: float) -> bool:
    return reservation.expires is None or reservation.expires > now


def _path(name: str) -> str:
    return f"{commits.RESERVATIONS}/{name}"


def _ledger_path() -> str:
    return f"{commits.LEDGERS}/{commits.LEDGER}"


def _settle(wishes: Iterable[_Wish], outcome: Exception) -> None:
    for wish in wishes:
        wish.settle(outcome)


@asynccontextmanager
async def _reachable() -> AsyncIterator[None]:
    try:
        yield
    except Unreachable as error:
        raise LedgerUnavailable(str(error)) from error
    except ApiError as error:
        raise LedgerUnavailable(f"the API server refused: {error}") from error
