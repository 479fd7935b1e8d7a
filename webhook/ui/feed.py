"""Provides the newest document to all viewers. Viewers with the same access share one filtered document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

import orjson

from webhook.ui.access import ViewerAccess, namespaces_in, seen_by
from webhook.ui.document import SECTIONS, Document, changes, document
from webhook.ui.picture import Picture

NOTHING: Document = {section: {} for section in SECTIONS}


@dataclass(slots=True)
class Feed:
    """Keeps the newest document, which `follow` makes from a source of pictures, for any number of viewers.

    Older documents are not kept, so a slow viewer skips those in between. `version`: the number of
    documents so far; 0 if there is none yet.
    """

    version: int = 0
    picture: Picture | None = None
    namespaces: frozenset[str] = frozenset()
    """The names of the namespaces that occur in the newest document."""
    _whole: Document = field(default_factory=lambda: NOTHING)
    _views: dict[ViewerAccess, Document] = field(default_factory=dict)
    _events: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """Encoded differences by the ids (`id()`) of both documents, so that viewers with the same access
    share them. Cleared with each new document.
    """
    _kept: list[Document] = field(default_factory=list)
    """The documents whose ids are keys of `_events`. While they are referenced, Python does not reuse
    their ids.
    """
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, pictures: AsyncIterator[Picture]) -> None:
        """Publishes the document of each picture, until the source ends."""
        async for picture in pictures:
            self.publish(picture, await asyncio.to_thread(document, picture))

    def publish(self, picture: Picture, whole: Document) -> None:
        """Replaces the newest picture and document, and wakes all viewers that wait in `newer`."""
        self.picture, self._whole = picture, whole
        self.namespaces = namespaces_in(whole)
        self.version += 1
        self._views.clear()
        self._events.clear()
        self._kept.clear()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def view(self, access: ViewerAccess) -> Document:
        """Returns the part of the newest document that the viewer may see."""
        if access not in self._views:
            self._views[access] = seen_by(access, self._whole)
        return self._views[access]

    def event(self, before: Document, after: Document) -> bytes:
        """Returns the difference of two documents as JSON; b"" if they are equal."""
        key = (id(before), id(after))
        if key not in self._events:
            difference = changes(before, after)
            self._events[key] = orjson.dumps(difference) if difference else b""
            self._kept += (before, after)
        return self._events[key]

    async def newer(self, version: int, seconds: float) -> None:
        """Waits until there is a newer document than that of `version`, at most for `seconds`."""
        if self.version == version:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may lose a cancellation
                    await self._changed.wait()
