"""The time by which holds expire in a cluster: the API server's, and no clock that is set changes it."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client as generated

from webhook.kube.api.client import Api

HOUR = 3600.0


@pytest.mark.parametrize("ahead", [HOUR, -HOUR], ids=["ahead", "behind"])
async def test_replicas_take_the_api_servers_time_whatever_their_own_clocks_say(
    ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose own clock is an hour off agrees to a second or two; either clock is set: no jump."""
    real, server_ahead = time.time, [ahead]

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({}, headers={"Date": formatdate(real() + server_ahead[0], usegmt=True)})

    app = web.Application()
    app.router.add_get("/version", answer)
    async with TestServer(app) as server:
        api = Api(generated.Configuration(host=str(server.make_url("")).rstrip("/")))
        await api.get("/version")
        assert abs(api.now() - (real() + ahead)) < 2
        server_ahead[0] = 0.0
        monkeypatch.setattr(time, "time", lambda: real() - 5 * HOUR)
        await api.get("/version")
        assert abs(api.now() - (real() + ahead)) < 2
        await api.close()
