"""The book as one replica knows it: the watch's picture of the objects, and reads that are never too old.

Nothing is believed that is older than the last commit. A commit that its writer has not applied is applied
by whoever comes across it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from planner.ledger.conflicts import RecordedReservation
from planner.ledger.ledger import LedgerUnavailable
from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.reflector import Reflector
from webhook.kube.ledger import commits
from webhook.kube.ledger.commits import Entry, Intent, LedgerTurn
from webhook.kube.ledger.objects import Objects

CATCH_UP_SECONDS = 0.3
"""How long the watch may take to tell of the last commit before the book is listed instead."""


class Again(Exception):  # noqa: N818 - an outcome, not a fault
    """Somebody else was faster: look again."""


class BookView:
    """What is known of the book's objects, and how to see and change single ones."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.objects = Objects()
        self.reflector = Reflector(api, commits.RESERVATIONS, self.objects)
        self._complete = -1
        """The commit up to which the book is known by a list, or by our own commit on top of a known book."""
        self._reading = asyncio.Lock()
        self._next: asyncio.Task[LedgerTurn] | None = None

    def waiting(self) -> str:
        """Why the book is not known yet; "" once it is."""
        if self.reflector.synced.is_set():
            return ""
        return self.reflector.problem or "reservations: not read yet"

    def kept(self) -> list[RecordedReservation]:
        """The reservations of the book, expired ones among them."""
        return [entry.kept for entry in self.objects.entries.values() if entry.kept]

    def expired(self, now: float) -> Iterator[Entry]:
        """The holds that nobody claimed in time."""
        for entry in list(self.objects.entries.values()):
            if entry.kept and not lives(entry.kept.reservation, now):
                yield entry

    async def caught_up(self) -> LedgerTurn:
        """The last commit, applied, and our picture of the book at least as new."""
        if not self.reflector.synced.is_set():
            raise LedgerUnavailable(self.waiting())
        turn = await self._shared_turn()
        if self._seen(turn):
            return turn
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while not self._seen(turn):
                    await self.objects.news.wait()
                return turn
        # The watch lags, or the writer died between commit and application.
        await asyncio.gather(*(self._finish(intent) for intent in turn.intents))
        await self.relist(turn)
        return turn

    async def _shared_turn(self) -> LedgerTurn:
        """The Ledger read after this call began. One read serves all that asked before it was sent."""
        if self._next is None:
            self._next = asyncio.create_task(self._read_next())
            self._next.add_done_callback(_looked_at)
        return await asyncio.shield(self._next)

    async def _read_next(self) -> LedgerTurn:
        async with self._reading:
            self._next = None  # who asks from now on is served by the read after this one
            return await self._turn()

    def _seen(self, turn: LedgerTurn) -> bool:
        return self._complete >= turn.seq or self.objects.has_seen(turn)

    async def _finish(self, intent: Intent) -> None:
        current = await self.look(intent.name)
        if current is not None and current["metadata"]["uid"] == intent.uid:
            status = current.get("status") or {}
            if (status.get("since") or 0) < intent.status["since"]:
                await self.apply(intent, current["metadata"]["resourceVersion"])

    async def _turn(self) -> LedgerTurn:
        try:
            return commits.turn_from(await self.api.get(ledger_path()))
        except ApiError as error:
            if error.status != 404:
                raise
        # The first commit ever, or somebody deleted the object: then numbers go on after what was seen.
        await self.reflector.relist()
        last = self.objects.newest + 1 if self.objects.newest else 0
        with suppress(ApiError):
            await self.api.create(commits.LEDGERS, commits.ledger_object(last, "", ()))
        return commits.turn_from(await self.api.get(ledger_path()))

    async def relist(self, turn: LedgerTurn) -> None:
        """List the book, which then is known at least as of this commit."""
        await self.reflector.relist()
        self.complete(turn.seq)

    def complete(self, seq: int) -> None:
        """The book is known as of this commit: all before it are, and what it holds was read or written."""
        self._complete = max(self._complete, seq)

    async def find(self, name: str) -> Entry | None:
        """The committed entry of a name, None where there is none."""
        entry = self.objects.entries.get(name)
        if entry is None or entry.kept is None:
            await self.caught_up()
            if self.objects.entries.get(name) is None or not self.objects.entries[name].since:
                await self.look(name)
            entry = self.objects.entries.get(name)
        return entry if entry is not None and entry.kept is not None else None

    async def look(self, name: str) -> Json | None:
        """The object as it is, None where there is none; the picture takes it up."""
        known = self.objects.entries.get(name)
        try:
            document = await self.api.get(path(name))
        except ApiError as error:
            if error.status != 404:
                raise
            if known is not None:  # one that was made since the read was answered stays
                self.objects.gone(name, known.uid)
            return None
        self.objects.stored(document)
        return document

    async def delete(self, entry: Entry) -> bool:
        """Delete exactly this version; False where it was gone. Raises `Again` where it changed."""
        try:
            done = await self.api.delete(path(entry.name), version=entry.version, uid=entry.uid)
        except ApiError as error:
            if error.status != 409:
                raise
            await self.look(entry.name)
            raise Again from None
        self.objects.gone(entry.name, entry.uid)
        return done

    async def apply(self, intent: Intent, version: str) -> bool:
        """Write what was committed into its object, over `version` of it.

        False where that was deleted; done already is as good.
        """
        current: Json | None = None
        while True:
            try:
                written = commits.applied(intent, version, current)
                self.objects.stored(await self.api.replace(path(intent.name), written))
                return True
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
            current = await self.look(intent.name)
            if current is None or current["metadata"]["uid"] != intent.uid:
                return False
            if ((current.get("status") or {}).get("since") or 0) >= intent.status["since"]:
                return True
            version = current["metadata"]["resourceVersion"]


def _looked_at(task: asyncio.Task[LedgerTurn]) -> None:
    """Its callers may all have given up; what it failed with is then nobody's."""
    if not task.cancelled():
        task.exception()


def lives(reservation: Reservation, now: float) -> bool:
    """Whether it has not expired."""
    return reservation.expires is None or reservation.expires > now


def path(name: str) -> str:
    """Where a Reservation is."""
    return f"{commits.RESERVATIONS}/{name}"


def ledger_path() -> str:
    """Where the Ledger is."""
    return f"{commits.LEDGERS}/{commits.LEDGER}"
