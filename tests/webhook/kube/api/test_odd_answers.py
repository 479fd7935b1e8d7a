"""Answers of the API server, or of a proxy before it, that are not what a watch asked for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client as generated

from webhook.kube.api import reflector as module
from webhook.kube.api.client import Api
from webhook.kube.api.discovery import served_path
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store

LOGIN = "<html>\n<p>Log in, please.</p>\n</html>\n"
LISTED = '{"items": [], "metadata": {"resourceVersion": "7"}}'
ADDED = '{"type": "ADDED", "object": {"metadata": {"name": "gpu-1", "resourceVersion": "8"}}}\n'
NAMELESS = '{"items": [{}], "metadata": {"resourceVersion": "7"}, "type": "ADDED", "object": {}}'
GROUPS = """{"groups": [
    {"name": "scheduling.run.ai", "preferredVersion": {"version": "v1"}, "versions": [{"version": "v1"}]}
]}"""
RESOURCES = '{"resources": [{"name": "queues"}]}'


async def follow(answer: Callable[[web.Request], str]) -> None:
    """Watches the queues of a group until the watch tells of an object."""

    async def respond(request: web.Request) -> web.Response:
        return web.Response(text=answer(request))

    app = web.Application()
    app.router.add_get("/{path:.*}", respond)
    async with TestServer(app) as server:
        api = Api(generated.Configuration(host=str(server.make_url("")).rstrip("/")))
        news = asyncio.Event()
        store: Store[Any] = Store(lambda item, _: item, "Object", lambda *_: news.set(), threading.Lock())
        find = partial(served_path, api, "scheduling.run.ai", "queues")
        running = asyncio.create_task(Reflector(api, "queues", store, find=find).run())
        try:
            async with asyncio.timeout(5):
                await news.wait()
        finally:
            running.cancel()
            await asyncio.wait([running])
            await api.close()


@pytest.mark.parametrize(
    "odd", [LOGIN, "{}", '{"groups": null}', NAMELESS], ids=["page", "empty", "null", "nameless"]
)
@pytest.mark.parametrize("failing", ["list", "watch", "groups", "version"])
async def test_a_watch_goes_on_after_the_page_of_a_proxy(
    monkeypatch: pytest.MonkeyPatch, odd: str, failing: str
) -> None:
    """The watch would end for ever, and nobody be told."""
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    steps = {"/apis": "groups", "/apis/scheduling.run.ai/v1": "version"}
    answers = {"groups": GROUPS, "version": RESOURCES, "list": LISTED, "watch": ADDED}
    left = {failing: odd + "\n"}

    def answer(request: web.Request) -> str:
        step = steps.get(request.path) or ("watch" if "watch" in request.query else "list")
        return left.pop(step, answers[step])

    await follow(answer)
    assert not left


@pytest.mark.parametrize("failure", [web.HTTPGone, web.HTTPNotFound])
async def test_a_watch_that_is_refused_again_and_again_pauses_before_each_list(
    monkeypatch: pytest.MonkeyPatch, failure: type[web.HTTPException]
) -> None:
    """Each list of a large cluster is work for the API server: it would be asked for one without end."""
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.1)
    answers = {"/apis": GROUPS, "/apis/scheduling.run.ai/v1": RESOURCES}
    began, lists = time.monotonic(), []

    def answer(request: web.Request) -> str:
        if request.path in answers:
            return answers[request.path]
        if "watch" not in request.query:
            lists.append(request.path)
            return LISTED
        if time.monotonic() - began < 1:
            raise failure
        return ADDED

    await follow(answer)
    assert len(lists) <= 6
