"""Where the webhook gets its snapshots of the cluster: the protocol, and the source without a cluster.

`surroundings_seen` waits until a source has seen what a call is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from planner.cluster.snapshot import Snapshot
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings, everywhere
from webhook.admission.environment import Environment
from webhook.wire.request import AdmissionRequest

LOOKS, LOOK_PAUSE = 50, 0.02
"""How often a pod's owner, or a namespace, is looked up, and seconds between two lookups. A watch is rarely
behind; for a deleted object this costs the whole second.
"""


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


async def surroundings_seen(cluster: ClusterSource, request: AdmissionRequest) -> None:
    """Waits until the request's namespace and its object's controller have been seen by the watches.

    The namespace's label decides whether anything is enforced there, and both may be applied at once; a
    Namespace itself comes with the request. A controller creates pods as soon as it sees their owner, and the
    owners of a pod tell whether its gang waits, and whether it leaves the plan.
    """
    space = "" if request.kind.kind == "Namespace" else request.namespace
    owner = controller_of(request) if request.operation == "CREATE" else ""
    for _ in range(LOOKS):
        if cluster.knows_namespace(space) and (not owner or cluster.knows_owner(owner)):
            return
        await asyncio.sleep(LOOK_PAUSE)


def controller_of(request: AdmissionRequest) -> str:
    """Returns NAMESPACE/KIND/NAME of the controller of the request's object; "" if there is none."""
    metadata = (request.object or {}).get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, Mapping) and reference.get("controller") is True:
            kind, name = reference.get("kind"), reference.get("name")
            return f"{request.namespace}/{kind}/{name}"
    return ""
