"""Where the webhook gets its snapshots of the cluster from: the protocol, and the source that has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from planner.cluster.snapshot import Snapshot
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings, everywhere
from webhook.admission.environment import Environment


class ClusterSource(Protocol):
    """Something that knows the nodes, pods and topologies; reservations come from the ledger."""

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot, None where no cluster is known."""
        ...

    def environment(self) -> Environment:
        """What the cluster gives to decisions beside it."""
        ...

    def knows_owner(self, owner: str) -> bool:
        """Whether the workload NAMESPACE/KIND/NAME has been seen, as far as it ever will be."""
        ...

    def knows_namespace(self, name: str) -> bool:
        """Whether the Namespace has been seen, as far as it ever will be."""
        ...

    def problem(self) -> str:
        """Why the snapshot is older than it should be; "" where all is well."""
        ...

    def waiting(self) -> str:
        """What the first snapshot still lacks, so that no request should come yet; "" once it is complete."""
        ...


@dataclass
class NoCluster:
    """No cluster: policies run, nothing is planned."""

    settings: Settings = DEFAULT_SETTINGS

    def snapshot(self) -> None:
        """Nothing is known."""
        return

    def environment(self) -> Environment:
        """The settings alone."""
        return Environment(settings=everywhere(self.settings))

    def knows_owner(self, owner: str) -> bool:
        """There is nothing to wait for."""
        return True

    def knows_namespace(self, name: str) -> bool:
        """There is nothing to wait for."""
        return True

    def problem(self) -> str:
        """Nothing can be wrong with it."""
        return ""

    def waiting(self) -> str:
        """Nothing is waited for."""
        return ""
