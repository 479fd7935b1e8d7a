"""The Reservation objects as they are known here: by the watch, by lists, by reads and writes of single ones.

Only the watch and lists tell up to which resource version the book is known: they show the objects in the
order of their changes, or all of them. A read or write of a single object shows that alone; what was written
before it may be unseen.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from planner.model.reservation import Reservation
from webhook.kube.api.client import Event, Json
from webhook.kube.ledger import documents
from webhook.kube.ledger.documents import Entry

DEAD = 10_000
"""UIDs of deleted objects that are remembered: more than are deleted while an answer is on its way."""


log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Objects:
    """The Reservation objects as the watch and our own writes tell them."""

    entries: dict[str, Entry] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by a fresh one, with every change."""
    shown: int = 0
    """The resource version up to which the watch or a list has shown every change."""
    logged_versions: dict[str, int] = field(default_factory=dict)
    dead: dict[str, None] = field(default_factory=dict)
    """The UIDs of objects that were deleted, the oldest first. A state of one that comes later is not taken:
    a watch that lags, or an answer that was overtaken, would bring it back."""
    by_node: dict[str, set[str]] = field(default_factory=dict)
    """The names of those that touch a node: a small pod is compared with its neighbours, not with all."""
    whole: set[str] = field(default_factory=set)
    """The names of those that hold domains."""
    expiring: dict[str, float] = field(default_factory=dict)
    """When the holds that nobody has claimed expire, seconds since the epoch, by name."""
    held_names: list[str] = field(default_factory=list)
    held: list[Reservation] = field(default_factory=list)
    """The reservations of the gangs in the order of their names, and these names. They are kept in order with
    each change: every decision reads them all, and to sort and filter thousands for each call costs more
    than the decision."""

    def read(self, item: Json) -> Entry:
        """What is kept of a listed object."""
        return self._entry(item)

    def replaced(self, items: Iterable[Entry], version: int) -> None:
        """These were all objects at a resource version; what we wrote later stays."""
        later = {name: entry for name, entry in self.entries.items() if entry.version > version}
        for name in list(self.entries):
            self._drop(name)
        for entry in items:
            if entry.uid not in self.dead:
                self._put(entry)
        for entry in later.values():
            self._put(entry)
        self.shown = version
        self._wake()

    def changed(self, event: Event) -> None:
        """What the watch tells of one object."""
        metadata = event.object["metadata"]
        if event.type == "DELETED":
            self.gone(metadata["name"], metadata["uid"])
        else:
            self.stored(event.object)
        self.shown = max(self.shown, int(metadata["resourceVersion"]))

    def stored(self, document: Json) -> Entry:
        """One object as it was read or written, unless a newer state of it is known."""
        entry = self._entry(document)
        former = self.entries.get(entry.name)
        if entry.uid not in self.dead and (former is None or former.version < entry.version):
            self._put(entry)
        self._wake()
        return entry

    def gone(self, name: str, uid: str) -> None:
        """The object was deleted."""
        self.dead[uid] = None
        if len(self.dead) > DEAD:
            del self.dead[next(iter(self.dead))]
        former = self.entries.get(name)
        if former is not None and former.uid == uid:
            self._drop(name)
        self._wake()

    def near(self, reservation: Reservation) -> list[Entry]:
        """Those that may be in the way of a reservation: for what holds no domain, those that do and those on
        its nodes."""
        if reservation.mode != "nodes":
            return list(self.entries.values())
        names = self.whole.union(*(self.by_node.get(node, ()) for node in reservation.touched))
        return [self.entries[name] for name in sorted({*names, reservation.id} & self.entries.keys())]

    def _put(self, entry: Entry) -> None:
        self._drop(entry.name)
        self.entries[entry.name] = entry
        reservation = entry.reservation
        if reservation is None:
            return
        for node in reservation.touched:
            self.by_node.setdefault(node, set()).add(entry.name)
        if reservation.mode == "domain":
            self.whole.add(entry.name)
        if reservation.expires is not None:
            self.expiring[entry.name] = reservation.expires
        if not documents.is_next(entry.name):
            place = bisect_left(self.held_names, entry.name)
            self.held_names.insert(place, entry.name)
            self.held.insert(place, reservation)

    def _drop(self, name: str) -> None:
        former = self.entries.pop(name, None)
        if former is None or former.reservation is None:
            return
        for node in former.reservation.touched:
            self.by_node[node].discard(name)
            if not self.by_node[node]:
                del self.by_node[node]
        self.whole.discard(name)
        self.expiring.pop(name, None)
        if not documents.is_next(name):
            place = bisect_left(self.held_names, name)
            del self.held_names[place], self.held[place]

    def _entry(self, document: Json) -> Entry:
        entry, problem = documents.entry_from(document)
        if problem and self.logged_versions.get(entry.name) != entry.version:
            self.logged_versions[entry.name] = entry.version
            log.warning("reservation left out: %s", problem)
        return entry

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()
