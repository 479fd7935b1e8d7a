"""Finds reservations whose object no watch shows, and asks the API server whether it stores the object all
the same.

A watch may be behind: its connection broke, or it has just been opened again. An object that it does not show
yet is not deleted, and its place must not be given to a second gang. The controller therefore makes a
consistent read from the API server before it releases a place because of a deletion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from planner.model.names import kind_of, namespace_of
from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.discovery import in_namespace
from webhook.kube.controller.memory import Claim, claim_of
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import finished
from webhook.placement.hold import is_used
from webhook.workloads.shared_gangs.pod_groups import POD_GANGS
from webhook.workloads.stored import reservation_ids

GRACE_SECONDS = 10.0
"""Seconds for which a claimed reservation may exist before its object is stored and the leader sees it: the
validating call claims, the API server stores the object after the webhooks that follow, and the watch of the
replica that claimed may be ahead of the leader's.
"""


log = logging.getLogger("bayplan")


def ownerless(world: World, seen: frozenset[Claim]) -> tuple[Reservation, ...]:
    """Returns the claimed reservations to which no object in the watches belongs.

    A reservation is included once it is older than `GRACE_SECONDS`, or at once if its claim is in `seen`: the
    claims whose object the watches have shown in a former round.
    """
    return tuple(
        held
        for held in world.snapshot.reservations
        if (claim_of(held) in seen or world.now - held.created > GRACE_SECONDS)
        and held.expires is None
        and is_ownerless(world, held)
    )


def is_ownerless(world: World, reservation: Reservation) -> bool:
    """Returns whether no object in the watches belongs to a reservation; False if the kind of its object is
    not watched.
    """
    kind = kind_of(reservation.gang)
    if reservation.gang in world.gangs or is_used(world.snapshot, reservation):
        return False
    if kind not in POD_GANGS and kind not in world.kinds:
        return False  # objects of this kind are not watched
    if any(reservation.id in pod.ids for pod in world.pods):
        return False
    # A gang of several objects exists as long as any of them: between two retries a Job has no pods.
    space = namespace_of(reservation.gang)
    alive = (w for w in world.works if w.ref.namespace == space and not (w.finished or w.leaving))
    return not (kind in POD_GANGS and any(reservation.id in work.ids for work in alive))


Shows = Callable[[str, str, str], bool]
"""Returns whether the watches show an object in its current version: its kind, NAMESPACE/NAME and
resourceVersion.
"""


async def with_stored_owner(
    api: Api, paths: Mapping[str, Iterable[str]], shows: Shows, reservations: Iterable[Reservation]
) -> frozenset[str]:
    """Returns the ids of the reservations to which a stored object belongs that the watches do not show in
    its current version, and of those for which that cannot be read.

    An object belongs to a reservation if it has the kind and name of the gang, has the UID that claimed the
    reservation, or names the reservation. An object that the watches show in its current version does not
    count, because the watches have shown that it needs no reservation: a suspended Job, for example, is no
    gang. `paths`: the API paths of each kind's objects. Each path is read once for each namespace.
    """
    stored = _StoredObjects(api, paths, shows)
    return frozenset([held.id for held in reservations if await stored.may_own(held)])


@dataclass(frozen=True, slots=True)
class _Object:
    name: str
    uid: str
    version: str
    ids: tuple[str, ...]
    ended: bool


class _StoredObjects:
    """The objects that the API server stores; those of a kind in a namespace are read at most once."""

    def __init__(self, api: Api, paths: Mapping[str, Iterable[str]], shows: Shows) -> None:
        self._api, self._paths, self._shows = api, paths, shows
        self._read: dict[str, list[_Object] | None] = {}

    async def may_own(self, reservation: Reservation) -> bool:
        """Returns whether a stored object may be the owner of the reservation, or cannot be read."""
        namespace, kind, name = reservation.gang.split("/")[:3]
        # A gang that is not named after a workload may consist of objects of any kind.
        for served in self._paths if kind in POD_GANGS else (kind,):
            for path in self._paths.get(served, ()):
                objects = await self._objects(in_namespace(path, namespace))
                if objects is None:
                    return True
                for stored in objects:
                    has_name = served == kind and stored.name == name
                    belongs = has_name or stored.uid == reservation.owner_uid or reservation.id in stored.ids
                    key = f"{namespace}/{stored.name}"
                    if belongs and not stored.ended and not self._shows(served, key, stored.version):
                        return True
        return False

    async def _objects(self, path: str) -> list[_Object] | None:
        """Returns the objects at a path; None if they cannot be read."""
        if path not in self._read:
            try:
                self._read[path], _ = await self._api.list(path, _object)
            except ApiError as error:
                log.info("controller: no place is released for a deletion: %s: %s", path, error)
                self._read[path] = [] if error.status == 404 else None  # 404: the kind was uninstalled
        return self._read[path]


def _object(item: Json) -> _Object:
    metadata = item["metadata"]
    ids = reservation_ids(metadata.get("annotations") or {})
    version = str(metadata.get("resourceVersion", ""))
    return _Object(metadata["name"], metadata.get("uid", ""), version, ids, finished(item))
