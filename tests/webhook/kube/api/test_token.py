"""The service account's token, which is read again from its file each minute."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client as generated

from webhook.kube.api import reflector as module
from webhook.kube.api.client import Api
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store


async def test_a_watch_goes_on_after_a_token_that_could_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the process has no file descriptor left: the watch would end for ever, and nobody be told."""
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    failures = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENOENT, "No such file")]

    def read_token(_: Any) -> None:
        if failures:
            raise failures.pop()

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"items": [], "metadata": {"resourceVersion": "1"}})

    app = web.Application()
    app.router.add_get("/api/v1/nodes", answer)
    async with TestServer(app) as server:
        configuration = generated.Configuration(host=str(server.make_url("")).rstrip("/"))
        configuration.api_key["BearerToken"] = "bearer of-a-minute-ago"
        configuration.refresh_api_key_hook = read_token
        api = Api(configuration)
        nodes: Store[Any] = Store(lambda item, _: item, "Node", lambda *_: None, threading.Lock())
        watch = Reflector(api, "/api/v1/nodes", nodes)
        running = asyncio.create_task(watch.run())
        async with asyncio.timeout(5):
            await watch.synced.wait()
        running.cancel()
        await asyncio.wait([running])
        await api.close()
