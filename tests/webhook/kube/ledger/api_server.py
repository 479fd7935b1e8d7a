"""An API server in memory, and clients whose watch tells of a change only when a test lets it.

Objects, resource versions, UIDs and preconditions are as the API server has them. Time is virtual
(`VirtualTime`): a pause of seconds passes at once, in the order in which pauses end.
"""

from __future__ import annotations

import asyncio
import copy
import re
import selectors
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from webhook.kube.api.client import Api, ApiError, Event, Json

EVERYTHING = 2**62
COLLECTION = re.compile(r"/(api|apis/[^/]+)/[^/]+(/namespaces/[^/]+)?/[^/]+")
"""The path of a collection: /apis/GROUP/VERSION/RESOURCE, and one of a namespace."""


class ApiServer:
    """The stored objects by path, and every change so far."""

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[str, Json] = {}
        self.changes: list[tuple[str, str, Json]] = []
        """Collection, type of event and object of each change, by resource version."""
        self.clients: list[Client] = []

    def client(self) -> Client:
        """A new client; its watch reports everything at once."""
        self.clients.append(Client(self))
        return self.clients[-1]

    def call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Json:
        """Answers one call. Raises `ApiError`."""
        match method:
            case "GET":
                return copy.deepcopy(self._existing(path)) if path in self.objects else self._listed(path)
            case "POST":
                return self._created(path, dict(body or {}))
            case "PUT":
                return self._stored(path, "MODIFIED", dict(body or {}), self._existing(path))
            case "PATCH":
                stored = self._existing(path)
                return self._stored(path, "MODIFIED", _merged(stored, body or {}), stored)
        stored = self._existing(path)
        _check((body or {}).get("preconditions") or {}, stored)
        del self.objects[path]
        return self._changed(path, "DELETED", stored)

    def _existing(self, path: str) -> Json:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _listed(self, path: str) -> Json:
        if not COLLECTION.fullmatch(path):
            raise ApiError(404, "NotFound", f"{path} not found")
        items = [
            copy.deepcopy(document) for name, document in self.objects.items() if _collection(name) == path
        ]
        return {"items": items, "metadata": {"resourceVersion": str(self.version)}}

    def _created(self, collection: str, document: Json) -> Json:
        path = f"{collection}/{document['metadata']['name']}"
        if path in self.objects:
            raise ApiError(409, "AlreadyExists", f"{path} already exists")
        document["metadata"] = {**document["metadata"], "uid": f"uid-{self.version}"}
        return self._stored(path, "ADDED", document, document)

    def _stored(self, path: str, kind: str, document: Json, former: Json) -> Json:
        _check(document["metadata"], former)
        document["metadata"] = {**former["metadata"], **document["metadata"]}
        self.objects[path] = document
        return self._changed(path, kind, document)

    def _changed(self, path: str, kind: str, document: Json) -> Json:
        self.version += 1
        stored = copy.deepcopy(document)
        stored["metadata"]["resourceVersion"] = str(self.version)
        if kind != "DELETED":
            self.objects[path] = stored
        self.changes.append((_collection(path), kind, stored))
        for client in self.clients:
            client.wake()
        return copy.deepcopy(stored)


class Client(Api):
    """One client of the server. Its watches report changes up to the resource version `shown`. `before` is
    awaited before each call is answered, with the method and the path. `clock`: the server's time.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._news = asyncio.Event()
        self.shown = EVERYTHING
        self.calls: list[tuple[str, str]] = []
        self.before: Callable[[str, str], Awaitable[None]] = _at_once
        self.clock: Callable[[], float] = time.time

    @property
    def host(self) -> str:
        """It has no address."""
        return "memory"

    def now(self) -> float:
        """The server's time."""
        return self.clock()

    def hold(self) -> None:
        """From now on the watch reports nothing new."""
        self.shown = self._server.version

    def show(self, changes: int = EVERYTHING) -> None:
        """The watch reports this many further changes."""
        self.shown = min(self.shown + changes, EVERYTHING)
        self.wake()

    def wake(self) -> None:
        """Makes all watches check for changes."""
        self._news.set()
        self._news = asyncio.Event()

    async def close(self) -> None:
        """Closes nothing: no connection is open."""

    async def watch(self, path: str, version: str, **query: str) -> AsyncIterator[Event]:
        """The changes after a resource version, up to `shown`."""
        yield Event("OPENED", {})
        version_shown = int(version)
        while True:
            news = self._news
            while version_shown < min(self._server.version, self.shown):
                collection, kind, document = self._server.changes[version_shown]
                version_shown += 1
                if collection == path:
                    yield Event(kind, copy.deepcopy(document))  # type: ignore[arg-type]
            await news.wait()

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        self.calls.append((method, path))
        await self.before(method, path)
        answer = self._server.call(method, path, copy.deepcopy(body))
        await asyncio.sleep(0)
        return answer


async def _at_once(method: str, path: str) -> None:
    await asyncio.sleep(0)


def _collection(path: str) -> str:
    return path.rpartition("/")[0]


def _check(conditions: Mapping[str, Any], stored: Json) -> None:
    for key in ("uid", "resourceVersion"):
        if conditions.get(key) and conditions[key] != stored["metadata"].get(key):
            raise ApiError(409, "Conflict", f"the {key} changed")


def _merged(stored: Json, patch: Mapping[str, Any]) -> Json:
    result = dict(stored)
    for key, value in patch.items():
        result[key] = _merged(result.get(key) or {}, value) if isinstance(value, Mapping) else value
    return {key: value for key, value in result.items() if value is not None}


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop with virtual time: when every task waits, the time advances to the end of the next
    pause.
    """

    def __init__(self) -> None:
        super().__init__(_Skipping(self))
        self.now = 0.0

    def time(self) -> float:
        """The virtual time in seconds."""
        return self.now


class _Skipping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Returns what is ready now, or else advances the time."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits for ever")
        if not ready and timeout:
            self._loop.now += timeout
        return ready
