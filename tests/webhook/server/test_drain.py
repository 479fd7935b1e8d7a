"""A replica that is told to stop goes on answering until its callers have left it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from planner.ledger.sqlite import SqliteLedger
from webhook.cli.common.inputs import policy_store
from webhook.server.http import Webhook
from webhook.server.listening import start
from webhook.server.service import Service


async def test_while_it_drains_it_answers_closes_connections_and_is_not_ready(tmp_path: Path) -> None:
    """Before it connections are kept; each answer during it is its connection's last; then none is taken."""
    ledger = SqliteLedger(tmp_path / "ledger.db")
    running = await start(Webhook(Service(policy_store(()), ledger)), "127.0.0.1", 0, None)
    url = f"http://127.0.0.1:{running.port}"
    async with aiohttp.ClientSession() as session:
        kept = await session.get(f"{url}/readyz")
        assert (kept.status, kept.headers.get("Connection")) == (200, None)
        draining = asyncio.create_task(running.drain(3600))
        await asyncio.sleep(0)  # it has begun
        for path, status in (("/readyz", 503), ("/healthz", 200), ("/no-such-path", 404)):
            answer = await session.get(url + path)
            assert (answer.status, answer.headers["Connection"]) == (status, "close")
        assert not draining.done()
        draining.cancel()
        await running.drain(0)
        await running.stop()
    await ledger.close()
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", running.port)
    except OSError:
        return
    writer.close()
    raise AssertionError("it listens still")
