"""The webhook as the demo serves it: over TLS on a free loopback port, with a book of its own."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from certs.reload import ReloadingContext
from planner.cluster.snapshot import Snapshot
from planner.ledger.sqlite import SqliteLedger
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.cli.common import inputs
from webhook.cli.demo.apiserver import ApiServer
from webhook.server.http import Webhook
from webhook.server.listening import start
from webhook.server.service import Service

LONGEST_CALL = 30.0
"""Seconds: the longest timeoutSeconds that an API server grants a webhook. A busy laptop takes a few."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster from files under the webhook, and the API server that calls it."""

    cluster: ClusterFiles
    ledger: SqliteLedger
    server: ApiServer

    def example(self, name: str) -> Path:
        """The file of an example."""
        return _examples() / f"{name}.yaml"

    async def snapshot(self) -> Snapshot:
        """The cluster with what is reserved now."""
        return self.cluster.snapshot().with_book(await self.ledger.book(time.time()))


@asynccontextmanager
async def served(folder: Path, clusters: Sequence[str], number: int = 0) -> AsyncIterator[Stage]:
    """The webhook with these clusters (of the examples), until the block ends.

    `folder` has the certificates in `certs`, and takes the book; `number` tells books apart.
    """
    cluster = ClusterFiles([str(_examples() / "clusters" / f"{name}.yaml") for name in clusters])
    ledger = SqliteLedger(folder / f"ledger-{number}.db")
    webhook = Webhook(Service(inputs.policy_store(()), ledger, cluster), deadline=LONGEST_CALL)
    tls = ReloadingContext(folder / "certs" / "tls.crt", folder / "certs" / "tls.key")
    running = await start(webhook, "127.0.0.1", 0, tls.context)
    trust = ssl.create_default_context(cafile=str(folder / "certs" / "ca-bundle.crt"))
    try:
        async with ApiServer(f"https://127.0.0.1:{running.port}", trust) as server:
            yield Stage(cluster, ledger, server)
    finally:
        await running.stop()
        await ledger.close()


def _examples() -> Path:
    return inputs.shipped("manifests") / "examples"
