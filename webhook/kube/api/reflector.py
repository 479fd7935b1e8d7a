"""Lists one resource and then watches it forever: every change is passed to one handler, in order.

A watch that ends is resumed at the last resource version that was seen (bookmarks keep it recent); if that
version is too old (410 Gone), the resource is listed again. A kind that is looked up and does not exist (no
CRD) counts as empty, and is looked up again every `ABSENT_SECONDS`.
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
"""Seconds between two lookups of a missing resource: a CRD may be installed at any time."""


FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds between attempts while calls fail: the first pause, which doubles up to the longest."""


log = logging.getLogger("bayplan")


class Handler(Protocol):
    """Receives a resource's objects; all methods are called on the event loop and must not raise."""

    def read(self, item: Json) -> Any:
        """Returns what is kept of a listed object. It is called for each page before the next page is
        requested, so that the JSON of a long list is never in memory as a whole.
        """
        ...

    def replaced(self, items: Iterable[Any], version: int) -> None:
        """Receives all objects of a list as `read` returned them, and the resource version of the list."""
        ...

    def changed(self, event: Event) -> None:
        """Receives one added, changed or deleted object."""
        ...


@dataclass(slots=True)
class Reflector:
    """Lists and watches the resource at `path`. `find` looks the path up before each list ("" if there
    is no such resource); None if the path is fixed.

    `query`: parameters of the list and the watch. `synced` is set after the first complete list, or when
    there is no such resource. `problem`: the current fault, "" while the watch is open. `forbidden`: the
    fault is a missing permission. `missing`: the fault is that a fixed path is not served.

    A resource with a fixed path never counts as empty because of a 404, which a proxy may give too: an empty
    ledger would let other gangs take what is reserved.
    """

    api: Api
    path: str
    handler: Handler
    find: Callable[[], Awaitable[str]] | None = None
    query: dict[str, str] = field(default_factory=dict)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str = ""
    forbidden: bool = False
    missing: bool = False
    since: float = 0.0
    """The time since which `problem` exists, in monotonic seconds."""
    _version: str = ""
    """The resource version from which the watch resumes; "" if the resource has to be listed."""
    _listed: int = 0
    """The resource version of the last list; older events are not passed on."""
    _held: list[Event] | None = None
    """The events that are kept back while `relist` runs; None while it does not run."""
    _relisting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Lists and watches until cancelled. Errors of the API server are retried, and so are answers that
        cannot be read, for example the JSON of a proxy.
        """
        pause = FIRST_PAUSE
        while True:
            began, resumes = time.monotonic(), bool(self._version)
            try:
                if not self._version and not await self._list():
                    await asyncio.sleep(ABSENT_SECONDS)
                    continue
                await self._follow()
                pause = FIRST_PAUSE
                if time.monotonic() - began < pause:  # for example, a proxy ends each watch at once
                    await asyncio.sleep(pause)
            except Exception as error:
                status = error.status if isinstance(error, ApiError) else None  # None: it cannot be read
                is_outdated = status in (404, 410)  # the CRD was removed, or the version is too old
                # No rapid series of failures, or its end: the server answers, and has forgotten the version.
                if time.monotonic() - began > LONGEST_PAUSE or (status == 410 and resumes):
                    pause = FIRST_PAUSE
                if is_outdated or status is None:
                    self._version = ""  # list again
                if not is_outdated or pause > FIRST_PAUSE:  # listing again usually helps: no warning at first
                    words = str(error) if status is not None else repr(error)
                    if status == 404:
                        words = "the API server does not serve it; is its CRD installed?"
                    self._trouble(f"{self.path}: {words}", status)
                recovered = await self.api.outages.wait(pause)
                pause = FIRST_PAUSE if recovered else min(pause * 2, LONGEST_PAUSE)

    def go_without(self) -> None:
        """Treats the resource as empty. For a single read of a cluster by a user who may not read this
        resource.
        """
        self.handler.replaced((), 0)
        self.synced.set()

    async def relist(self) -> None:
        """Lists the resource with a consistent read, while the watch continues.

        Events of the watch are kept back meanwhile, and only those newer than the list are passed on, so the
        handler never returns to an older state.
        """
        async with self._relisting:
            self._held = []
            try:
                items, version = await self._read()
                if version >= self._listed:  # else `run` has listed again meanwhile, at a newer version
                    self._listed = version
                    self.handler.replaced(items, self._listed)
            finally:
                held, self._held = self._held, None
                for event in held:
                    self._tell(event)

    async def _list(self) -> bool:
        """Lists the resource; returns False if it does not exist, which counts as empty."""
        if self.find is not None:
            self.path = await self.find()
        try:
            if not self.path:
                raise ApiError(404, "NotFound", "there is no such resource")
            items, self._listed = await self._read()
        except ApiError as error:
            if error.status != 404 or self.find is None:
                raise
            self._trouble("")
            self.handler.replaced((), 2**62)  # newer than any object: the handler keeps none
            self.synced.set()
            return False
        self.forbidden = self.missing = False
        self._version = str(self._listed)
        self.handler.replaced(items, self._listed)
        self.synced.set()
        return True

    async def _read(self) -> tuple[list[Any], int]:
        items, version = await self.api.list(self.path, self.handler.read, **self.query)
        if not version.isdecimal():  # for example, the JSON of a proxy
            raise ApiError(200, "", "the answer is no list with a resource version")
        return items, int(version)

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

    def _trouble(self, problem: str, status: int | None = None) -> None:
        if problem and not self.problem:
            self.since = time.monotonic()
            log.warning("%s", problem)
        self.problem, self.forbidden, self.missing = problem, status == 403, status == 404
