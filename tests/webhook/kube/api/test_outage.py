"""After an outage of the API server, watches go on at once: until then nothing can be reserved."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client as generated

from webhook.kube.api import outage, reflector
from webhook.kube.api.client import Api, ApiError, Event, Unreachable
from webhook.kube.api.outage import Outages
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store


async def test_who_waits_is_woken_when_the_first_call_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, and none waits for longer than it wanted to."""
    monkeypatch.setattr(outage, "LEAST_SECONDS", 0.0)
    outages = Outages()
    outages.begin()
    waiters = [asyncio.create_task(outages.wait(60)) for _ in range(2)]
    assert not await outages.wait(0.01)
    outages.end()
    assert await asyncio.gather(*waiters) == [True, True]
    assert not await outages.wait(0.01)


async def test_a_call_that_fails_among_others_that_succeed_is_no_outage() -> None:
    """Else each success would wake it, and it would be tried again without a pause."""
    outages = Outages()
    outages.begin()
    waiter = asyncio.create_task(outages.wait(0.05))
    await asyncio.sleep(0)
    outages.end()
    assert not await waiter


@pytest.mark.parametrize("status", [200, 403, 429])
async def test_the_server_is_there_when_it_answers_and_not_when_a_proxy_does_for_it(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load balancer without a server behind it answers too; a refusal is the server's own."""
    monkeypatch.setattr(outage, "LEAST_SECONDS", 0.0)
    answers = [503, status]

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({}, status=answers.pop(0))

    app = web.Application()
    app.router.add_get("/version", answer)
    async with TestServer(app) as server:
        api = Api(generated.Configuration(host=str(server.make_url("")).rstrip("/")))
        with pytest.raises(ApiError):
            await api.get("/version")
        waiter = asyncio.create_task(api.outages.wait(60))
        await asyncio.sleep(0)
        with suppress(ApiError):
            await api.get("/version")
        assert await waiter
        await api.close()


class Server(Api):
    """An API server of nodes whose watches do what the test says, one after the other."""

    def __init__(self, *watches: Callable[[Server], Any]) -> None:
        self.watches, self.lists, self.watched = list(watches), 0, asyncio.Event()

    async def list(self, path: str, keep: Any = dict, **query: str) -> tuple[list[Any], str]:
        """No node."""
        self.lists += 1
        return [], str(self.lists)

    async def watch(self, path: str, version: str, **query: str) -> AsyncIterator[Event]:
        """The next watch; after the last one, a watch that stays open."""
        if self.watches:
            self.watches.pop(0)(self)
        yield Event("OPENED", {})
        self.watched.set()
        await asyncio.sleep(60)


def ends(server: Server) -> None:
    """The server does not answer."""
    server.outages.begin()
    raise Unreachable("refused")


def is_outdated(_: Server) -> None:
    """The server answers, and no longer knows the version, as after a restart."""
    raise ApiError(410, "Expired", "too old resource version")


async def seconds_until_watched(server: Server) -> float:
    """How long a reflector needs until its watch stays open."""
    nodes: Store[Any] = Store(lambda item, _: item, "Node", lambda _: None, threading.Lock())
    running = asyncio.create_task(Reflector(server, "/api/v1/nodes", nodes).run())
    began = time.monotonic()
    try:
        async with asyncio.timeout(20):
            await server.watched.wait()
        return time.monotonic() - began
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_a_watch_is_opened_again_as_soon_as_another_call_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own pause would be ten seconds by then."""
    monkeypatch.setattr(outage, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(reflector, "FIRST_PAUSE", 5.0)
    server = Server(ends)
    asyncio.get_running_loop().call_later(0.1, server.outages.end)
    assert await seconds_until_watched(server) < 2


async def test_a_version_that_the_server_has_forgotten_is_listed_again_without_a_long_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pause grew while the server did not answer."""
    monkeypatch.setattr(reflector, "FIRST_PAUSE", 0.25)
    server = Server(ends, ends, ends, is_outdated)  # 0.25 + 0.5 + 1 s, and then not 2 s more
    assert await seconds_until_watched(server) < 2.9
    assert server.lists == 2


async def test_a_server_that_forgets_each_version_is_not_listed_in_a_tight_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pause grows where the list that was just read is too old already."""
    monkeypatch.setattr(reflector, "FIRST_PAUSE", 0.05)
    server = Server(*[is_outdated] * 5)
    assert await seconds_until_watched(server) > 0.05 * (1 + 2 + 4 + 8 + 16) * 0.9


@pytest.mark.parametrize("steps", range(4))
async def test_who_is_stopped_when_the_outage_ends_stops(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a replica that stops would wait for ever for a watch that goes on."""
    monkeypatch.setattr(outage, "LEAST_SECONDS", 0.0)
    outages = Outages()
    outages.begin()
    waiter = asyncio.create_task(outages.wait(60))
    await asyncio.sleep(0.01)
    outages.end()
    for _ in range(steps):
        await asyncio.sleep(0)
    if not waiter.done():
        waiter.cancel()
        await asyncio.wait([waiter])
        assert waiter.cancelled()
