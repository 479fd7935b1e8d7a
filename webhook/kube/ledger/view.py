"""The book as one replica knows it, from the watch and from its own reads and writes of single objects.

The view may be old. A reservation is therefore judged after the view has reached the resource version of its
proposal: then everything that was written before the proposal is known.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

from planner.ledger.conflicts import RecordedReservation
from planner.ledger.ledger import LedgerUnavailable
from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.reflector import Reflector
from webhook.kube.ledger import documents
from webhook.kube.ledger.documents import Entry
from webhook.kube.ledger.objects import Objects

CATCH_UP_SECONDS = 1.0
"""Seconds that the watch may take to show our own write before the book is listed instead. It usually takes a
millisecond or two, and listing makes a busy machine slower.
"""


class ChangedMeanwhile(Exception):  # noqa: N818 - an outcome, not a fault
    """Another writer was faster: the caller reads the object again."""


class BookView:
    """The known Reservation objects, and reads and changes of single ones."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.objects = Objects()
        self.reflector = Reflector(api, documents.RESERVATIONS, self.objects)
        self._listing = asyncio.Lock()

    def waiting(self) -> str:
        """Returns why the book is not known yet; "" once it is."""
        if self.reflector.synced.is_set():
            return ""
        return self.reflector.problem or "reservations: not read yet"

    def check(self) -> None:
        """Raises `LedgerUnavailable` if the book is unknown, or its watch is broken."""
        if problem := self.waiting() or self.reflector.problem:
            raise LedgerUnavailable(problem)

    def live(self, now: float) -> tuple[Reservation, ...]:
        """Returns the gangs' reservations that have not expired, in the order of their ids. `now`: seconds
        since the epoch.
        """
        objects = self.objects
        expired = {name for name, expires in objects.expiring.items() if expires <= now}
        if not expired:
            return tuple(objects.held)
        return tuple(held for held in objects.held if held.id not in expired)

    def has(self, name: str, now: float) -> bool:
        """Returns whether a reservation of this name is known and has not expired."""
        entry = self.readable_entry(name)
        return entry is not None and entry.reservation is not None and lives(entry.reservation, now)

    def expired(self, now: float) -> list[Entry]:
        """Returns the holds that were not claimed in time, and expired proposals of another place."""
        objects = self.objects
        return [objects.entries[name] for name, expires in objects.expiring.items() if expires <= now]

    def next_expiry(self) -> float:
        """Returns when the next hold expires, seconds since the epoch; infinity for none."""
        return min(self.objects.expiring.values(), default=math.inf)

    def possible_blockers(
        self, reservation: Reservation, before: int | None = None
    ) -> list[RecordedReservation]:
        """Returns the reservations that may block this one: all known, or those written `before` a resource
        version.

        With `before`, the gang's own reservation and its proposal of another place are left out: they do not
        block it. Without, they are included: the gang may keep the place.
        """
        own = {reservation.id, documents.next_name(reservation.id)}
        return [
            kept
            for entry in self.objects.possible_blockers(reservation)
            if (kept := entry.recorded) is not None
            and (before is None or (kept.since < before and entry.name not in own))
        ]

    async def reach(self, version: int) -> None:
        """Waits until the view shows everything that was written up to a resource version; lists the book if
        the watch takes longer than `CATCH_UP_SECONDS`.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while self.objects.shown < version:
                    await self.objects.news.wait()
        async with self._listing:
            if self.objects.shown < version:
                await self.reflector.relist()

    async def find(self, name: str) -> Entry | None:
        """Returns the entry of this name, read from the API server if it is not known; None if there is none,
        or its reservation is malformed.
        """
        if self.readable_entry(name) is None:
            await self.look(name)
        return self.readable_entry(name)

    def readable_entry(self, name: str) -> Entry | None:
        """Returns the entry of this name if it is known and has a valid reservation, else None."""
        entry = self.objects.entries.get(name)
        return entry if entry is not None and entry.reservation is not None else None

    async def look(self, name: str) -> None:
        """Reads the object from the API server into the view, or records there that there is none."""
        former = self.objects.entries.get(name)
        try:
            document = await self.api.get(path(name))
        except ApiError as error:
            if error.status != 404:
                raise
            if former is not None:  # by UID: an object that was created since the read stays
                self.objects.record_deletion(name, former.uid)
        else:
            self.objects.stored(document)

    async def delete(self, entry: Entry) -> bool:
        """Deletes the object in exactly this version; returns False if it did not exist. Raises
        `ChangedMeanwhile` if it has changed.
        """
        try:
            done = await self.api.delete(path(entry.name), version=str(entry.version), uid=entry.uid)
        except ApiError as error:
            if error.status != 409:
                raise
            await self.look(entry.name)
            raise ChangedMeanwhile from None
        self.objects.record_deletion(entry.name, entry.uid)
        return done

    async def merge(self, name: str, patch: Json) -> Entry:
        """Patches the object in the version that the patch names. Raises `ChangedMeanwhile` if that version
        is not current.
        """
        try:
            return self.objects.stored(await self.api.merge(path(name), patch))
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            await self.look(name)
            raise ChangedMeanwhile from None


def lives(reservation: Reservation, now: float) -> bool:
    """Returns whether the reservation has not expired at `now`."""
    return reservation.expires is None or reservation.expires > now


def path(name: str) -> str:
    """Returns the API path of a Reservation."""
    return f"{documents.RESERVATIONS}/{name}"
