"""What the live page asks of the API server for its pictures."""

from __future__ import annotations

import time

import pytest

from planner.model.reservation import reservation_id
from tests.webhook.kube.ledger.api_server import ApiServer, Client
from webhook.kube import runtime, standing
from webhook.kube.api.client import Json
from webhook.kube.installed import deployment_path
from webhook.kube.ledger.documents import RESERVATIONS
from webhook.kube.standing import Lookout, standing_of
from webhook.ui.live_source import LiveSource

DEPLOYMENT = deployment_path("fleet")


class CoreApiServer(ApiServer):
    """One that serves the collections of the core group too, most of them empty."""

    def _listed(self, path: str) -> Json:
        if not path.startswith("/api/v1/"):
            return super()._listed(path)
        items = [document for name, document in self.objects.items() if name.rpartition("/")[0] == path]
        return {"items": items, "metadata": {"resourceVersion": str(self.version)}}

    def add(self, path: str, **spec: object) -> None:
        """Stores an object at its path."""
        collection, _, name = path.rpartition("/")
        self.call("POST", collection, {"metadata": {"name": name}, **spec})


async def pictures(monkeypatch: pytest.MonkeyPatch, count: int) -> tuple[list[str], int]:
    """The lines of the replicas in this many pictures, and how often the Deployment
    was read from the second picture on.
    """
    server = CoreApiServer()
    server.add(DEPLOYMENT, spec={"replicas": 2}, status={"readyReplicas": 1})
    client = Client(server)
    server.clients.append(client)
    monkeypatch.setattr(runtime, "connect", lambda *_, **__: _ready(client))
    monkeypatch.setattr(Lookout, "news", _at_once)
    lines, began = [], 0
    async with standing_of(None, "fleet") as lookout:
        source = LiveSource(lookout).pictures()
        for _ in range(count):
            picture = await anext(source)
            lines += [line.message for line in picture.health if line.name == "webhook"]
            began = began or len(client.calls)
        await source.aclose()
    return lines, client.calls[began:].count(("GET", DEPLOYMENT))


@pytest.mark.parametrize("ahead", [3600.0, -3600.0], ids=["ahead", "behind"])
async def test_a_hold_lives_by_the_api_servers_clock(ahead: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the user's machine is an hour off: what a call has just reserved is shown all the same."""
    server, real = CoreApiServer(), time.time
    client = server.client()
    hold = {"gang": "default/Job/a", "mode": "nodes"}
    status = {"state": "held", "created": real(), "expires": real() + 10}
    server.add(f"{RESERVATIONS}/{reservation_id('default/Job/a')}", spec=hold, status=status)
    monkeypatch.setattr(client, "now", real)
    monkeypatch.setattr(time, "time", lambda: real() + ahead)
    monkeypatch.setattr(runtime, "connect", lambda *_, **__: _ready(client))
    async with standing_of(None, "fleet") as lookout:
        seen = await lookout.standing()
    assert [gang.name for gang in seen.gangs] == ["default/Job/a"]
    assert abs(seen.now - real()) < 60


async def _at_once(lookout: Lookout) -> None:
    """There is always something new."""


async def _ready(client: Client) -> Client:
    return client


async def test_the_deployment_is_not_read_for_every_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with many changes has a picture each second; the Deployment hardly ever changes."""
    monkeypatch.setattr(standing, "HEALTH_SECONDS", 1e9)
    lines, reads = await pictures(monkeypatch, 4)
    assert lines == ["1 of 2 replicas are ready"] * 4
    assert reads == 0


async def test_the_deployment_is_read_once_for_the_mode_and_the_replicas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where its time is over, once for each picture."""
    monkeypatch.setattr(standing, "HEALTH_SECONDS", 0.0)
    _, reads = await pictures(monkeypatch, 4)
    assert reads == 3
