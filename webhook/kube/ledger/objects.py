"""The Reservation objects as they are known here: by the watch, by lists, and by our own writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from webhook.kube.api.client import Event, Json
from webhook.kube.ledger import commits
from webhook.kube.ledger.commits import Entry, Turn

log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Objects:
    """The Reservation objects as the watch and our own writes tell them."""

    entries: dict[str, Entry] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by a fresh one, with every change."""
    said: dict[str, str] = field(default_factory=dict)
    newest: int = 0
    """The last commit of which something was seen."""
    of_newest: set[str] = field(default_factory=set)
    """The names of its reservations that were seen applied, whatever became of them since."""

    def read(self, item: Json) -> Json:
        """All of it: the last commit is compared with it."""
        return item

    def replaced(self, items: Iterable[Json], version: int) -> None:
        """These were all objects at a resource version; what we wrote later stays."""
        later = {name: entry for name, entry in self.entries.items() if int(entry.version) > version}
        self.entries = {item["metadata"]["name"]: self._entry(item) for item in items} | later
        for entry in self.entries.values():
            self._note(entry)
        self._wake()

    def changed(self, event: Event) -> None:
        """What the watch tells of one object."""
        if event.type == "DELETED":
            metadata = event.object["metadata"]
            self.gone(metadata["name"], metadata["uid"])
        else:
            self.stored(event.object)

    def stored(self, document: Json) -> None:
        """One object, unless a newer state of it is known."""
        entry = self._entry(document)
        known = self.entries.get(entry.name)
        if known is None or int(known.version) < int(entry.version):
            self.entries[entry.name] = entry
        self._note(entry)
        self._wake()

    def gone(self, name: str, uid: str) -> None:
        """The object was deleted."""
        known = self.entries.get(name)
        if known is not None and known.uid == uid:
            del self.entries[name]
        self._wake()

    def has_seen(self, turn: Turn) -> bool:
        """Whether a commit was seen applied, whole. Objects change in its order, so all before were too."""
        names = {intent.name for intent in turn.intents}
        return self.newest > turn.seq or (self.newest == turn.seq > 0 and names <= self.of_newest)

    def _note(self, entry: Entry) -> None:
        if entry.since > self.newest:
            self.newest, self.of_newest = entry.since, set()
        if entry.since == self.newest:
            self.of_newest.add(entry.name)

    def _entry(self, document: Json) -> Entry:
        entry, problem = commits.entry_from(document)
        if problem and self.said.get(entry.name) != entry.version:
            self.said[entry.name] = entry.version
            log.warning("reservation left out: %s", problem)
        return entry

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()
