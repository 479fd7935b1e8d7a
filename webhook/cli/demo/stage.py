"""Serves the webhook for the demo: over TLS on a free loopback port, with its own ledger."""

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
"""Time limit of a call in seconds: the maximum timeoutSeconds of a webhook. A busy laptop needs several
seconds.
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """The webhook's cluster (from files) and ledger, and the API server that calls it."""

    cluster: ClusterFiles
    ledger: SqliteLedger
    server: ApiServer

    def example(self, name: str) -> Path:
        """Returns the file of an example."""
        return _examples() / f"{name}.yaml"

    async def snapshot(self) -> Snapshot:
        """Returns the cluster with its current reservations."""
        return self.cluster.snapshot().with_book(await self.ledger.book(time.time()))


@asynccontextmanager
async def served(folder: Path, clusters: Sequence[str], number: int = 0) -> AsyncIterator[Stage]:
    """Serves the webhook with these example clusters until the context ends.

    `folder`: has the certificates in `certs`, and stores the ledger. `number`: part of the ledger's file
    name, so that each scene has its own.
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
