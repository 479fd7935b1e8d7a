"""Finds the owner of a hold that nobody has claimed: the stored object that names the reservation.

An expired hold is deleted only if there is no such object. The object may exist although nobody has claimed
the hold in time: the API server may have been unavailable, or the replica that answered the call was killed,
and no other one leads yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from planner.model.names import kind_of, namespace_of
from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, Json
from webhook.kube.api.discovery import in_namespace, served_path
from webhook.workloads import KINDS, WorkloadKind
from webhook.workloads.shared_gangs.pod_groups import JOINED_KINDS
from webhook.workloads.stored import reservation_ids

Owner: TypeAlias = Callable[[Reservation], Awaitable[str]]
"""Returns the UID of the stored object that a hold is for, "" if there is none."""


Owners: TypeAlias = Callable[[], Owner]
"""Starts a series of lookups, for holds that expire at about the same time."""


async def nobody(held: Reservation) -> str:
    """Returns "": no hold has an owner, so each is deleted after it has expired."""
    return ""


def no_owners() -> Owner:
    """Returns a lookup that finds no owners."""
    return nobody


class StoredOwners:
    """Finds the owners of holds in the API server, in one series of lookups that reads no list twice.

    After an outage, or forged calls, hundreds of holds in one namespace expire together, and each lookup
    needs the pods of this namespace. The lists may be seconds old: that is safe, because an object that is
    stored after its list was read has reserved its place again in its own validating call.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._paths: dict[str, str] = {}
        self._uids: dict[tuple[str, str], Mapping[str, str]] = {}

    async def __call__(self, held: Reservation) -> str:
        """Returns the UID of a workload that names the reservation, or else of a pod that does; "" for none.

        Only workloads with the gang's name are listed, or for a gang of several objects all in the namespace;
        the list permission of the watches is sufficient. Raises `ApiError`.
        """
        if not kind_of(held.gang):  # the reservation was written by hand: no object has such a name
            return ""
        namespace, name = namespace_of(held.gang), held.gang.split("/")[2]
        # Objects of any kind may be members of the gang.
        joined = kind_of(held.gang) in JOINED_KINDS
        selector = "" if joined else f"metadata.name={name}"
        rows = [
            row
            for row in KINDS.values()
            if row.name != "Pod" and (row.holds if joined else row.name == kind_of(held.gang))
        ]
        for row in rows:
            path = await self._path(row)
            if path and (
                owner := (await self._owner_uids(in_namespace(path, namespace), selector)).get(held.id)
            ):
                return owner
        return (await self._owner_uids(in_namespace("/api/v1/pods", namespace))).get(held.id, "")

    async def _path(self, row: WorkloadKind) -> str:
        key = f"{row.group}/{row.resource}"
        if key not in self._paths:
            self._paths[key] = await served_path(self._api, row.group, row.resource)
        return self._paths[key]

    async def _owner_uids(self, path: str, selector: str = "") -> Mapping[str, str]:
        """Returns the UID of the first object at a path that names a reservation, by reservation id."""
        key = path, selector
        if key not in self._uids:
            query = {"fieldSelector": selector} if selector else {}
            listed, _ = await self._api.list(path, _reservations, **query)
            self._uids[key] = {name: uid for uid, names in reversed(listed) for name in names}
        return self._uids[key]


def _reservations(item: Json) -> tuple[str, tuple[str, ...]]:
    """Returns the object's UID, and the ids of the reservations that it names."""
    metadata = item["metadata"]
    return str(metadata["uid"]), reservation_ids(metadata.get("annotations") or {})
