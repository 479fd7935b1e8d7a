"""Fixtures: a webhook over HTTP on a real cluster file, called as an API server calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from planner.ledger.sqlite import SqliteLedger
from tests.webhook.calls import PATIENCE, Serve, ServedWebhook, clusters
from webhook.cli.common.inputs import policy_store
from webhook.server.cluster_source import ClusterSource
from webhook.server.http import Webhook
from webhook.server.service import Service


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves the shipped policies on a cluster while the `with` block runs."""

    @asynccontextmanager
    async def serving(
        *names: str,
        cluster: ClusterSource | None = None,
        policies: str = "",
        ledger: SqliteLedger | None = None,
    ) -> AsyncIterator[ServedWebhook]:
        now = [1_000_000.0]
        book = ledger or SqliteLedger(tmp_path / "ledger.db")
        store = policy_store([policies] if policies else ())
        service = Service(store, book, cluster or clusters(*names), clock=lambda: now[0])
        webhook = Webhook(service, deadline=PATIENCE)
        async with TestClient(TestServer(webhook.app())) as client:
            yield ServedWebhook(client, book, webhook, now)
        await book.close()

    return serving
