"""The ledger steps of a decision: reserve a place, claim it for its owner, release it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.model.names import kind_of
from planner.model.reservation import Reservation, reservation_id
from planner.planning.reservation import headroom
from webhook.placement.workload_plan import WorkloadPlan
from webhook.wire.request import AdmissionRequest
from webhook.workloads.keys.annotation_keys import POD_GANGS, RESERVATION

MOST_NAMED = 32
"""The most reservations named by one object that are looked up if they are unknown. The bound is needed
because any user may write the annotation."""


_ID = re.compile(r"\bbp-[0-9a-f]{16}\b")
"""The form of an id that `planner.model.reservation.reservation_id` returns."""


@dataclass(frozen=True, slots=True)
class ReservationClaim:
    """The workload exists: its reservation no longer expires."""

    reservation: str
    owner_uid: str


@dataclass(frozen=True, slots=True)
class ReservationRelease:
    """The workload is gone: release its reservation."""

    reservation: str


LedgerStep = Wish | ReservationClaim | ReservationRelease


def reservation_identity(held: Reservation) -> tuple[object, ...]:
    """The fields in which two equal reservations agree: the gang, the request and the place."""
    return held.id, held.fingerprint, held.assignments, held.domains


def reserving(
    request: AdmissionRequest, plan: WorkloadPlan | None, before: Iterable[Reservation]
) -> tuple[LedgerStep, ...]:
    """Steps that reserve what the plan adds to the reservations `before`; a replayed gang adds nothing.

    The object of an update already has a UID, by which the ledger knows who may change a place.
    """
    if plan is None:
        return ()
    identities = [reservation_identity(held) for held in before]
    owner_uid = _uid(request.old_object)
    return tuple(
        Wish(replace(held, owner_uid=owner_uid), plan.snapshot.revision, headroom(plan.snapshot, held))
        for held in plan.reservations
        if reservation_identity(held) not in identities
    )


def sealed(reservations: Iterable[Reservation]) -> tuple[Reservation, ...]:
    """The reservations that no call can withdraw any more.

    A hold may be the proposal of another call, which withdraws the hold on a conflict. So a mutating call
    that relies on a hold asks the ledger for it; nothing is written if the hold is valid.
    """
    return tuple(held for held in reservations if held.state == "claimed")


def claiming(request: AdmissionRequest, plan: WorkloadPlan | None) -> tuple[LedgerStep, ...]:
    """Returns the claims of the object's own reservations. A pod of a larger gang claims nothing: its
    workload owns the place, or, for a gang without a workload object, the pod that arrived first.
    """
    owner_uid = _uid(request.object)
    if plan is None or not owner_uid:
        return ()
    kind = request.kind.kind
    return tuple(
        ReservationClaim(held.id, owner_uid)
        for held in plan.reservations
        if kind_of(held.gang) == kind or (held.expires is not None and kind_of(held.gang) in POD_GANGS)
    )


def confirming(request: AdmissionRequest, plan: WorkloadPlan | None) -> tuple[LedgerStep, ...]:
    """Claims for every gang of the object, whether this replica knows of its reservation or not."""
    owner_uid = _uid(request.object)
    placed = plan.placed if plan is not None else ()
    return tuple(ReservationClaim(reservation_id(gang_plan.group.name), owner_uid) for gang_plan in placed)


def releasing(request: AdmissionRequest, snapshot: Snapshot | None) -> tuple[LedgerStep, ...]:
    """Returns the steps that release the reservations of a deleted workload and of its replicas."""
    if snapshot is None or request.sub_resource or request.operation != "DELETE":
        return ()
    kind = f"{request.namespace}/{request.kind.kind}/"
    gang = kind + request.name
    owner_uid = _uid(request.old_object)
    # An object with generateName is reserved under another name; the UID that claimed the reservation
    # identifies it. A pod may have claimed the place of a larger gang; its deletion does not release that.
    return tuple(
        ReservationRelease(held.id)
        for held in snapshot.reservations
        if held.gang == gang
        or held.gang.startswith(gang + "/")
        or (held.gang.startswith(kind) and held.owner_uid and held.owner_uid == owner_uid)
    )


def releasing_suspended(
    obj: Mapping[str, Any] | None, before: Iterable[Reservation]
) -> tuple[LedgerStep, ...]:
    """Returns the steps that release what a suspended workload has claimed: its pods end, and may never start
    again.
    """
    owner_uid = _uid(obj)
    return tuple(ReservationRelease(held.id) for held in before if owner_uid and held.owner_uid == owner_uid)


def reservations_of(request: AdmissionRequest) -> tuple[str, ...]:
    """Returns the ids of the reservations that the request's object names: another replica may have created
    them a moment ago.

    Returns none for a dry run: its mutating call named a reservation without creating it, and to look it up
    would cost the API server a read.
    """
    if request.dry_run:
        return ()
    metadata = (request.object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    annotation = annotations.get(RESERVATION) if isinstance(annotations, Mapping) else None
    return tuple(_ID.findall(annotation)[:MOST_NAMED]) if isinstance(annotation, str) else ()


def _uid(obj: Mapping[str, Any] | None) -> str:
    metadata = (obj or {}).get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    return uid if isinstance(uid, str) else ""
