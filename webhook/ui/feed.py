"""The newest document for every viewer: each viewer's own is worked out once for all who may see the same."""

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
    """`follow` a source of pictures; `view` and `next_version` serve any number of viewers.

    There is one document at a time, the newest: a viewer who is slow misses what lay between, and nothing is
    kept for them.
    """

    version: int = 0
    picture: Picture | None = None
    namespaces: frozenset[str] = frozenset()
    """Those of which the newest document tells."""
    _whole: Document = field(default_factory=lambda: NOTHING)
    _views: dict[ViewerAccess, Document] = field(default_factory=dict)
    _events: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """What was sent already, by the identities of both documents, so that it is worked out once."""
    _kept: list[Document] = field(default_factory=list)
    """The documents of `_events`, whose identities are not given to others meanwhile."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, pictures: AsyncIterator[Picture]) -> None:
        """Publish each picture, for ever."""
        async for picture in pictures:
            self.publish(picture, await asyncio.to_thread(document, picture))

    def publish(self, picture: Picture, whole: Document) -> None:
        """This is the newest."""
        self.picture, self._whole = picture, whole
        self.namespaces = namespaces_in(whole)
        self.version += 1
        self._views.clear()
        self._events.clear()
        self._kept.clear()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def view(self, access: ViewerAccess) -> Document:
        """The newest document as this viewer may have it."""
        if access not in self._views:
            self._views[access] = seen_by(access, self._whole)
        return self._views[access]

    def event(self, before: Document, after: Document) -> bytes:
        """The difference as JSON, b"" for none."""
        key = (id(before), id(after))
        if key not in self._events:
            difference = changes(before, after)
            self._events[key] = orjson.dumps(difference) if difference else b""
            self._kept += (before, after)
        return self._events[key]

    async def newer(self, version: int, seconds: float) -> None:
        """Wait until there is a newer document than that, but for `seconds` at most."""
        if self.version == version:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
