"""One resource, listed and then watched for ever: every change is told to one handler, in order.

A watch that ends is resumed at the last version that was seen (bookmarks keep it fresh); one that is too old
(410 Gone) leads to a new list. A resource that is not there (no CRD) counts as empty and is looked for again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from webhook.kube.api.client import Api, ApiError, Event, Json

ABSENT_SECONDS = 5.0
"""How soon a missing resource is looked for again: a CRD may come at any time."""


FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds between tries while the API server does not answer, doubling."""


log = logging.getLogger("bayplan")


class Handler(Protocol):
    """What is told of a resource's objects; all are called on the event loop and must not raise."""

    def read(self, item: Json) -> Any:
        """What is kept of a listed object. A page is read before the next one comes: a list may be long."""
        ...

    def replaced(self, items: Iterable[Any], version: int) -> None:
        """These, as `read` gave them, were all objects at a resource version."""
        ...

    def changed(self, event: Event) -> None:
        """One object came, changed or went."""
        ...


@dataclass(slots=True)
class Reflector:
    """Follows the resource at `path`; with `find`, the path is looked for at each list ("" for none).

    `synced` is set by the first complete list (or by the first sight that there is no such resource);
    `problem` says what is wrong now, "" while the watch is open; `forbidden`: it is that nobody may list it.
    """

    api: Api
    path: str
    handler: Handler
    find: Callable[[], Awaitable[str]] | None = None
    query: dict[str, str] = field(default_factory=dict)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str = ""
    forbidden: bool = False
    since: float = 0.0
    """Seconds (monotonic) since when `problem` stands."""
    _version: str = ""
    _listed: int = 0
    _held: list[Event] | None = None
    _relisting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """For ever, whatever the API server does."""
        pause = FIRST_PAUSE
        while True:
            try:
                if not self._version and not await self._list():
                    await asyncio.sleep(ABSENT_SECONDS)
                    continue
                await self._follow()
            except ApiError as error:
                if error.status in (404, 410):  # the CRD went, or the version is too old: list again
                    self._version = ""
                    continue
                pause = min(pause * 2, LONGEST_PAUSE) if self.problem else FIRST_PAUSE
                self.forbidden = error.status == 403
                self._trouble(f"{self.path}: {error}")
                await asyncio.sleep(pause)

    def go_without(self) -> None:
        """Take the resource for empty: who looks once at a cluster makes do with what may be read."""
        self.handler.replaced((), 0)
        self.synced.set()

    async def relist(self) -> None:
        """List now, consistently, beside the watch.

        What the watch tells meanwhile waits, and of it only what is newer than the list is then told: so the
        handler never goes back behind what it knew.
        """
        async with self._relisting:
            self._held = []
            try:
                items, version = await self.api.list(self.path, self.handler.read, **self.query)
                if int(version) >= self._listed:  # else the watch began anew meanwhile, with a newer list
                    self._listed = int(version)
                    self.handler.replaced(items, self._listed)
            finally:
                held, self._held = self._held, None
                for event in held:
                    self._tell(event)

    async def _list(self) -> bool:
        if self.find is not None:
            self.path = await self.find()
        try:
            if not self.path:
                raise ApiError(404, "NotFound", "there is no such resource")
            items, self._version = await self.api.list(self.path, self.handler.read, **self.query)
        except ApiError as error:
            if error.status != 404:
                raise
            self.handler.replaced((), 2**62)
            self._trouble("")
            self.synced.set()
            return False
        self._listed = int(self._version)
        self.handler.replaced(items, self._listed)
        self.synced.set()
        return True

    async def _follow(self) -> None:
        async for event in self.api.watch(self.path, self._version, **self.query):
            if event.type == "OPENED":
                self._trouble("")
                continue
            self._version = event.object["metadata"]["resourceVersion"]
            if self._held is not None:
                self._held.append(event)
            else:
                self._tell(event)

    def _tell(self, event: Event) -> None:
        if event.type != "BOOKMARK" and int(event.object["metadata"]["resourceVersion"]) > self._listed:
            self.handler.changed(event)

    def _trouble(self, problem: str) -> None:
        if problem and not self.problem:
            self.since = time.monotonic()
            log.warning("%s", problem)
        self.problem = problem


async def served_path(api: Api, group: str, resource: str) -> str:
    """The path of a resource in the version that the server prefers, "" where the group is not there."""
    if not group:
        return f"/api/v1/{resource}"
    try:
        discovery = await api.get(f"/apis/{group}")
        versions = [
            discovery["preferredVersion"]["version"],
            *(entry["version"] for entry in discovery["versions"]),
        ]
        for version in dict.fromkeys(versions):
            listed = await api.get(f"/apis/{group}/{version}")
            if any(served["name"] == resource for served in listed.get("resources") or []):
                return f"/apis/{group}/{version}/{resource}"
    except ApiError as error:
        if error.status != 404:
            raise
    return ""
