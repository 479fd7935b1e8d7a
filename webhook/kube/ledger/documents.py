"""Reads and writes Reservation objects. Pure.

A gang's reservation is the object with the gang's id as its name. An object that names a workload's gang and
has another name was made by hand. It holds its place like every reservation, but for itself, under the name
`Reservation/NAME`: otherwise the gang would seem to hold that place instead of its own.

Reservations are ordered as etcd stored the places of their gangs (docs/decisions/0103). A written place is a
proposal: it blocks every later one from then on, and the gang holds it if no earlier one blocks it.
`Entry.order` is the resource version with which the place was written: that of the object until its next
write, and `status.since` afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.ledger.conflicts import RecordedReservation
from planner.manifests.reservation import API_VERSION, reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.names import kind_of
from planner.model.reservation import Reservation, reservation_id

Json = dict[str, Any]


RESERVATIONS = f"/apis/{API_VERSION}/reservations"
"""The API path of the Reservations, which are cluster-scoped."""


_NEXT = "-next"
"""Suffix of the name of the object in which a gang with a place proposes another one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored Reservation object. `name`: the id of the reservation, with a suffix if the object proposes
    another place (`next_name`). `version`: its resource version. `since`: the resource version with which
    its place was written, 0 if that was the last write of the object. `reservation`: None if the object has
    no state or is malformed; it is then ignored.
    """

    name: str
    uid: str
    version: int
    since: int
    reservation: Reservation | None

    @property
    def order(self) -> int:
        """The resource version with which the place was written."""
        return self.since or self.version

    @property
    def recorded(self) -> RecordedReservation | None:
        """The reservation with its order, None if the object is ignored."""
        return RecordedReservation(self.reservation, self.order) if self.reservation is not None else None


def entry_from(document: Mapping[str, Any]) -> tuple[Entry, str]:
    """Returns the entry of an object, and what is wrong with the object, as a sentence for the log ("" for
    nothing).
    """
    metadata = document["metadata"]
    status = document.get("status") or {}
    since = status.get("since")
    problem, reservation = "", None
    if status.get("state"):
        try:
            reservation = reservation_from(document, Where(object=f"Reservation {metadata['name']}"))
        except InputError as error:
            problem = f"reservation left out: {error}"
        else:
            reservation, problem = _of_named_object(reservation)
    entry = Entry(
        metadata["name"],
        metadata.get("uid", ""),
        int(metadata.get("resourceVersion") or 0),
        since if isinstance(since, int) else 0,
        reservation,
    )
    return entry, problem


def _of_named_object(reservation: Reservation) -> tuple[Reservation, str]:
    """Returns the reservation as that of the object, and a warning, if the object names the gang of a
    workload, and its own name is not one of the gang's; else the same reservation and "".
    """
    name, gang = reservation.id, reservation.gang
    if not kind_of(gang) or name == reservation_id(gang) or is_next(name, gang):
        return reservation, ""
    holder = f"Reservation/{name}"
    problem = (
        f"{holder} was made by hand for {gang}, whose own reservation is {reservation_id(gang)}: it keeps "
        "its place free of all gangs, of this one too; delete it if that is not meant"
    )
    return replace(reservation, gang=holder), problem


def proposed(reservation: Reservation) -> Json:
    """Returns the object that proposes a place."""
    manifest: Json = reservation_manifest(reservation)
    return {**manifest, "status": {**manifest["status"], **_summary(reservation)}}


def as_next(reservation: Reservation, expires: float) -> Reservation:
    """Returns the proposal of another place for a gang that holds a place: the reservation under the name of
    a second object, as a hold that expires at `expires` (seconds since the epoch).

    The gang's own object keeps the former place until the gang is known to hold the new one.
    """
    return replace(reservation, id=next_name(reservation.id), state="held", expires=expires, owner_uid="")


def next_name(name: str) -> str:
    """Returns the name of the second object, in which the gang of the object `name` proposes another
    place.
    """
    return name + _NEXT


def is_next(name: str, gang: str) -> bool:
    """Returns whether the object `name` with a place of `gang` proposes another place for it.

    Any other object whose name ends like that was made by hand, and is a reservation like all others:
    otherwise its place would block every proposal, and no plan would avoid it.
    """
    return name.endswith(_NEXT) and name == next_name(reservation_id(gang))


def moved(reservation: Reservation, order: int, former: Entry) -> Json:
    """Returns the merge patch that gives the gang's own object the place that was proposed with `order`.

    `former`: the object's entry. Like the patches of `claimed` and `prolonged`, this one applies only to the
    version of the entry.
    """
    document = proposed(reservation)
    return {
        "metadata": {"uid": former.uid, "resourceVersion": str(former.version)},
        "spec": document["spec"],
        "status": {**document["status"], "since": order},
    }


def claimed(entry: Entry, owner_uid: str) -> Json:
    """Returns the merge patch that makes a hold permanent. `owner_uid`: the UID of its workload."""
    return {
        "metadata": {"resourceVersion": str(entry.version)},
        "status": {"state": "claimed", "expires": None, "ownerUID": owner_uid, "since": entry.order},
    }


def prolonged(entry: Entry, expires: float) -> Json:
    """Returns the merge patch that lets a hold expire at `expires`, in seconds since the epoch."""
    return {
        "metadata": {"resourceVersion": str(entry.version)},
        "status": {"expires": expires, "since": entry.order},
    }


def _summary(reservation: Reservation) -> Json:
    """Returns the values of the additional printer columns: the path of the domain, the number of nodes
    and of GPUs.
    """
    requests = dict(reservation.requests)
    gpus = sum(
        amount * assignment.count
        for assignment in reservation.assignments
        for name, amount in requests.get(assignment.pod_set, {}).items()
        if name.endswith("/gpu") or name.startswith(("gpu.intel.com/", "habana.ai/"))
    )
    return {
        "where": "/".join(reservation.domain),
        "nodes": len({assignment.node for assignment in reservation.assignments}),
        "gpus": gpus,
    }
