"""The source of the webhook's snapshots: the protocol, and the source for a webhook without a cluster.

`surroundings_seen` waits until a source has seen the namespace and the owner of a call's object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from planner.cluster.snapshot import Snapshot
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings, same_in_all_namespaces
from webhook.admission.environment import Environment
from webhook.wire.request import AdmissionRequest

LOOKS, LOOK_PAUSE = 50, 0.02
"""The maximum number of lookups of a pod's owner and namespace, and the seconds between two of them. A watch
is rarely behind. If the owner or the namespace was deleted, the call waits the whole second.
"""


class ClusterSource(Protocol):
    """Provides nodes, pods and topologies; reservations come from the ledger."""

    def snapshot(self) -> Snapshot | None:
        """Returns the newest snapshot, None if no cluster is known."""
        ...

    def environment(self) -> Environment:
        """Returns what decisions need in addition to the snapshot, such as namespaces and parameters."""
        ...

    def knows_owner(self, owner: str) -> bool:
        """Reports whether the workload NAMESPACE/KIND/NAME has been seen; also True if its kind is not
        watched.
        """
        ...

    def knows_namespace(self, name: str) -> bool:
        """Reports whether the Namespace has been seen; also True for "", and if namespaces are not
        watched.
        """
        ...

    def problem(self) -> str:
        """Returns why the snapshot may be outdated; "" if it is current."""
        ...

    def waiting(self) -> str:
        """Returns what the first snapshot still lacks; "" once it is complete. Until then calls are
        refused.
        """
        ...


@dataclass
class NoCluster:
    """The source without a cluster: policies run, and nothing is planned."""

    settings: Settings = DEFAULT_SETTINGS

    def snapshot(self) -> None:
        """Returns None: no cluster is known."""
        return

    def environment(self) -> Environment:
        """Returns an environment with nothing but the settings."""
        return Environment(settings=same_in_all_namespaces(self.settings))

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
    """Waits until the watches have seen the request's namespace, and for a new object its controller. Waits a
    second at most.

    A user may apply a namespace and its workloads together, and the mode label of the namespace decides
    whether anything is enforced. (The request for a Namespace contains it, so there is nothing to wait for.)
    A controller creates pods as soon as it sees their owner, and the owner tells whether the gang of a pod is
    queued, and whether it is excluded from planning.
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
