"""Where the webhook gets its snapshots of the cluster: the protocol, and the source without a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from planner.cluster.snapshot import Snapshot
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings, everywhere
from webhook.admission.environment import Environment


class ClusterSource(Protocol):
    """Provides nodes, pods and topologies; reservations come from the ledger."""

    def snapshot(self) -> Snapshot | None:
        """Returns the newest snapshot, None if no cluster is known."""
        ...

    def environment(self) -> Environment:
        """Returns what the cluster provides for decisions in addition to the snapshot."""
        ...

    def knows_owner(self, owner: str) -> bool:
        """Returns whether the workload NAMESPACE/KIND/NAME has been seen, or never will be."""
        ...

    def knows_namespace(self, name: str) -> bool:
        """Returns whether the Namespace has been seen, or never will be."""
        ...

    def problem(self) -> str:
        """Returns why the snapshot is older than it should be; "" if it is current."""
        ...

    def waiting(self) -> str:
        """Returns what the first snapshot still lacks, so that no request should come yet; "" once it is
        complete.
        """
        ...


@dataclass
class NoCluster:
    """No cluster: policies run, and nothing is planned."""

    settings: Settings = DEFAULT_SETTINGS

    def snapshot(self) -> None:
        """Returns None: no cluster is known."""
        return

    def environment(self) -> Environment:
        """Returns only the settings."""
        return Environment(settings=everywhere(self.settings))

    def knows_owner(self, owner: str) -> bool:
        """Returns True: there is nothing to wait for."""
        return True

    def knows_namespace(self, name: str) -> bool:
        """Returns True: there is nothing to wait for."""
        return True

    def problem(self) -> str:
        """Returns "": there is no snapshot that could be old."""
        return ""

    def waiting(self) -> str:
        """Returns "": there is nothing to wait for."""
        return ""
