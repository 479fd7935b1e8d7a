"""The Reservation objects as this replica knows them: from the watch, lists, and its own reads and writes.

Only the watch and lists show up to which resource version the book is known, because they show all changes in
order, or all objects. A read or write of a single object shows only that object; earlier writes of other
objects may be unknown.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from planner.model.reservation import Reservation
from webhook.kube.api.client import Event, Json
from webhook.kube.ledger import documents
from webhook.kube.ledger.documents import Entry

DEAD = 10_000
"""Maximum number of remembered UIDs of deleted objects: more than are deleted while an answer is on its
way.
"""


log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Objects:
    """The Reservation objects from the watch and our own writes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """An event that each change sets, and then replaces by a new one."""
    shown: int = 0
    """The resource version up to which the watch or a list has shown every change."""
    logged_versions: dict[str, int] = field(default_factory=dict)
    """By name, the version of the object whose problem was logged last: each is logged once."""
    dead: dict[str, None] = field(default_factory=dict)
    """The UIDs of deleted objects, oldest first. An event or answer about such an object is ignored: it is
    late, and would bring the object back.
    """
    by_node: dict[str, set[str]] = field(default_factory=dict)
    """By node, the names of the objects that hold or use it: a small pod is compared with these, not with all
    objects.
    """
    whole: set[str] = field(default_factory=set)
    """The names of the objects that hold whole domains."""
    expiring: dict[str, float] = field(default_factory=dict)
    """By name, when each unclaimed hold expires, in seconds since the epoch."""
    held_names: list[str] = field(default_factory=list)
    held: list[Reservation] = field(default_factory=list)
    """`held`: the reservations of the gangs, sorted by object name; `held_names`: these names. The lists are
    kept sorted with each change, because every decision reads all reservations, and sorting thousands for
    each would cost more than the decision.
    """

    def read(self, item: Json) -> Entry:
        """Returns the entry of an object; logs once per version what is wrong with an object."""
        entry, problem = documents.entry_from(item)
        if problem and self.logged_versions.get(entry.name) != entry.version:
            self.logged_versions[entry.name] = entry.version
            log.warning("%s", problem)
        return entry

    def replaced(self, items: Iterable[Entry], version: int) -> None:
        """Replaces all objects by a list at a resource version; our own later writes stay."""
        entries = {entry.name: entry for entry in items if entry.uid not in self.dead}
        entries |= {name: entry for name, entry in self.entries.items() if entry.version > version}
        for index in (self.by_node, self.whole, self.expiring, self.held_names, self.held):
            index.clear()
        self.entries = entries
        for name, reservation in sorted(self._indexed(entries.values()), key=itemgetter(0)):
            self.held_names.append(name)
            self.held.append(reservation)
        self.shown = version
        self._wake()

    def changed(self, event: Event) -> None:
        """Applies an event of the watch."""
        metadata = event.object["metadata"]
        if event.type == "DELETED":
            self.record_deletion(metadata["name"], metadata["uid"])
        else:
            self.stored(event.object)
        self.shown = max(self.shown, int(metadata["resourceVersion"]))

    def stored(self, document: Json) -> Entry:
        """Records an object that was read or written, unless a newer state of it is known; returns its
        entry.
        """
        entry = self.read(document)
        former = self.entries.get(entry.name)
        if entry.uid not in self.dead and (former is None or former.version < entry.version):
            self._put(entry)
        self._wake()
        return entry

    def record_deletion(self, name: str, uid: str) -> None:
        """Records that the object with this UID was deleted."""
        self.dead[uid] = None
        if len(self.dead) > DEAD:
            del self.dead[next(iter(self.dead))]
        former = self.entries.get(name)
        if former is not None and former.uid == uid:
            self._drop(name)
        self._wake()

    def postpone(self, name: str, expires: float) -> None:
        """Lets an unclaimed hold expire at `expires` (seconds since the epoch) for this replica, until its
        object changes.
        """
        if name in self.expiring:
            self.expiring[name] = expires

    def possible_blockers(self, reservation: Reservation) -> list[Entry]:
        """Returns the entries that may block a reservation: all entries, or for a reservation of mode `nodes`
        its own entry, those that hold whole domains, and those on its nodes.
        """
        if reservation.mode != "nodes":
            return list(self.entries.values())
        names = self.whole.union(*(self.by_node.get(node, ()) for node in reservation.touched))
        return [self.entries[name] for name in sorted({*names, reservation.id} & self.entries.keys())]

    def _put(self, entry: Entry) -> None:
        self._drop(entry.name)
        self.entries[entry.name] = entry
        for name, reservation in self._indexed([entry]):
            index = bisect_left(self.held_names, name)
            self.held_names.insert(index, name)
            self.held.insert(index, reservation)

    def _indexed(self, entries: Iterable[Entry]) -> Iterator[tuple[str, Reservation]]:
        """Adds the entries to the unsorted indexes, and yields the gangs' reservations with their names."""
        for entry in entries:
            reservation = entry.reservation
            if reservation is None:
                continue
            for node in reservation.touched:
                self.by_node.setdefault(node, set()).add(entry.name)
            if reservation.mode == "domain":
                self.whole.add(entry.name)
            if reservation.expires is not None:
                self.expiring[entry.name] = reservation.expires
            if not documents.is_next(entry.name, reservation.gang):
                yield entry.name, reservation

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
        if not documents.is_next(name, former.reservation.gang):
            index = bisect_left(self.held_names, name)
            del self.held_names[index], self.held[index]

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()
