"""Whose a hold is that nobody claimed: the stored object that names it, read from the API server itself.

A hold ends for want of an object, and time alone does not tell that there is none: the API server may have
been away, the replica that answered killed, and the leader's Lease not yet taken over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, Json
from webhook.kube.api.reflector import served_path
from webhook.workloads import KINDS
from webhook.workloads.annotation_keys import RESERVATION, kind_of, namespace_of

Owner: TypeAlias = Callable[[Reservation], Awaitable[str]]
"""Gives the UID of the stored object that a hold is for, "" where there is none."""


async def nobody(held: Reservation) -> str:
    """No hold is anybody's: each ends with its time."""
    return ""


async def owner_of(api: Api, held: Reservation) -> str:
    """The UID of the workload that names the reservation, or else of a pod that does; "" for none.

    A list of the one name, for which the right to list that watches need is enough. Raises `ApiError`.
    """
    if not kind_of(held.gang):  # written by a hand: no object has such a name
        return ""
    namespace, name = namespace_of(held.gang), held.gang.split("/")[2]
    rows = [row for (_, kind), row in KINDS.items() if kind == kind_of(held.gang) and kind != "Pod"]
    for row in rows:
        path = await served_path(api, row.group, row.resource)
        if path:
            query = {"fieldSelector": f"metadata.name={name}"}
            if owner := await _owner_among(api, _inside(path, namespace), held.id, **query):
                return owner
    return await _owner_among(api, _inside("/api/v1/pods", namespace), held.id)


async def _owner_among(api: Api, path: str, reservation: str, **query: str) -> str:
    def uid(item: Json) -> str:
        metadata = item["metadata"]
        names = str((metadata.get("annotations") or {}).get(RESERVATION, "")).split(",")
        return str(metadata["uid"]) if reservation in names else ""

    uids, _ = await api.list(path, uid, **query)
    return next(filter(None, uids), "")


def _inside(path: str, namespace: str) -> str:
    folder, _, resource = path.rpartition("/")
    return f"{folder}/namespaces/{namespace}/{resource}"
