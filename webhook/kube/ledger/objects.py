"""The Reservation objects as they are known here: by the watch, by lists, by reads and writes of single ones.

Only the watch and lists tell up to which commit the book is known: they show the objects in the order of
their changes, or all of them. A read of a single object shows that alone; commits before it may be unseen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from webhook.kube.api.client import Event, Json
from webhook.kube.ledger import commits
from webhook.kube.ledger.commits import Entry, LedgerTurn

DEAD = 10_000
"""UIDs of deleted objects that are remembered: more than are deleted while an answer is on its way."""


log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Objects:
    """The Reservation objects as the watch and our own writes tell them."""

    entries: dict[str, Entry] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by a fresh one, with every change."""
    logged_versions: dict[str, str] = field(default_factory=dict)
    newest: int = 0
    """The last commit of which the watch or a list has shown something."""
    of_newest: set[str] = field(default_factory=set)
    """The names of its reservations that were shown applied, whatever became of them since."""
    dead: dict[str, None] = field(default_factory=dict)
    """The UIDs of objects that were deleted, the oldest first. A state of one that comes later is not taken:
    a watch that lags, or an answer that was overtaken, would bring it back."""

    def read(self, item: Json) -> Json:
        """All of it: the last commit is compared with it."""
        return item

    def replaced(self, items: Iterable[Json], version: int) -> None:
        """These were all objects at a resource version; what we wrote later stays."""
        later = {name: entry for name, entry in self.entries.items() if int(entry.version) > version}
        listed = [self._entry(item) for item in items]
        self.entries = {entry.name: entry for entry in listed if entry.uid not in self.dead} | later
        for entry in listed:
            self._note(entry)
        self._wake()

    def changed(self, event: Event) -> None:
        """What the watch tells of one object."""
        if event.type == "DELETED":
            metadata = event.object["metadata"]
            self.gone(metadata["name"], metadata["uid"])
        else:
            self._note(self.stored(event.object))

    def stored(self, document: Json) -> Entry:
        """One object as it was read or written, unless a newer state of it is known."""
        entry = self._entry(document)
        known = self.entries.get(entry.name)
        if entry.uid not in self.dead and (known is None or int(known.version) < int(entry.version)):
            self.entries[entry.name] = entry
        self._wake()
        return entry

    def gone(self, name: str, uid: str) -> None:
        """The object was deleted."""
        self.dead[uid] = None
        if len(self.dead) > DEAD:
            del self.dead[next(iter(self.dead))]
        known = self.entries.get(name)
        if known is not None and known.uid == uid:
            del self.entries[name]
        self._wake()

    def has_seen(self, turn: LedgerTurn) -> bool:
        """Whether a commit was shown applied, whole. Objects change in the order of commits, so all before it
        were shown too."""
        names = {intent.name for intent in turn.intents}
        return self.newest > turn.seq or (self.newest == turn.seq > 0 and names <= self.of_newest)

    def _note(self, entry: Entry) -> None:
        if entry.since > self.newest:
            self.newest, self.of_newest = entry.since, set()
        if entry.since == self.newest:
            self.of_newest.add(entry.name)

    def _entry(self, document: Json) -> Entry:
        entry, problem = commits.entry_from(document)
        if problem and self.logged_versions.get(entry.name) != entry.version:
            self.logged_versions[entry.name] = entry.version
            log.warning("reservation left out: %s", problem)
        return entry

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()
