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
"""The deadline of a call in seconds: the maximum `timeoutSeconds` of a webhook in Kubernetes, because a
call may take several seconds on a busy laptop.
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A running webhook: its cluster (from files), its ledger, and the API server that calls it."""

    cluster: ClusterFiles
    ledger: SqliteLedger
    server: ApiServer

    def example(self, name: str) -> Path:
        """Returns the path of the example with this name."""
        return _examples() / f"{name}.yaml"

    async def snapshot(self) -> Snapshot:
        """Returns the cluster with its current reservations."""
        return self.cluster.snapshot().with_book(await self.ledger.book(time.time()))


@asynccontextmanager
async def served(folder: Path, clusters: Sequence[str], number: int = 0) -> AsyncIterator[Stage]:
    """A context in which the webhook is served on loopback, with the cluster in these example files.

    `folder`: has the certificates in `certs`, and will contain the ledger. `number`: part of the ledger's
    file name, so that each scene has its own ledger.
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
