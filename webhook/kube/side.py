"""Everything that one replica keeps open toward its cluster: the picture, the book, and the controller."""

from __future__ import annotations

from dataclasses import dataclass

from planner.snapshot import Snapshot
from webhook.kube.client import Api, connect
from webhook.kube.ledger import KubeLedger
from webhook.kube.watch import ClusterWatch
from webhook.surroundings import Surroundings

NAMESPACE = "bayplan-system"
"""Where Bayplan's own objects lie."""


@dataclass(slots=True)
class ClusterSide:
    """`webhook.cluster.ClusterSource` of a cluster that is watched, with the ledger that lies in it."""

    api: Api
    watch: ClusterWatch
    ledger: KubeLedger

    @classmethod
    async def connect(
        cls, kubeconfig: str | None, *, in_cluster: bool, namespace: str = NAMESPACE, controls: bool = True
    ) -> ClusterSide:
        """Begin to watch, and with `controls` stand for election in `namespace`. Waits for nothing.

        Raises `InputError` for a kubeconfig or service account that cannot be used.
        """
        api = await connect(kubeconfig, in_cluster=in_cluster)
        side = cls(api, ClusterWatch(api), KubeLedger(api))
        await side.watch.start()
        await side.ledger.start()
        return side

    async def close(self) -> None:
        """Stop, the last first."""
        await self.ledger.close()
        await self.watch.close()
        await self.api.close()

    def snapshot(self) -> Snapshot | None:
        """The picture, None until it is whole."""
        return self.watch.snapshot()

    def surroundings(self) -> Surroundings:
        """What policies may look up there."""
        return self.watch.surroundings()

    def problem(self) -> str:
        """What is broken now: the picture or the book may be older than they should be."""
        return "; ".join(filter(None, (self.watch.problem(), self.ledger.problem())))

    def waiting(self) -> str:
        """What has not been read yet for the first time."""
        return self.watch.waiting() or self.ledger.waiting()
