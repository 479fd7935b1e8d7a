"""Makes the ledger steps of a decision: reserve a place, claim it for its owner, release it. Pure.

A reservation is a *hold*, which expires, until its object is stored and claims it.
"""

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
from webhook.workloads.keys.annotation_keys import RESERVATION
from webhook.workloads.kinds import KINDS
from webhook.workloads.shared_gangs.pod_groups import POD_GANGS

MOST_NAMED = 32
"""Maximum number of reservations that are looked up for one object. The bound is needed because any user may
write ids into the annotation."""

_GANG_KINDS = frozenset({*KINDS, ("scheduling.k8s.io", "Workload")})
"""The API groups and kinds of the objects after which gangs are named. The name of a gang has no API group,
so an object of another group, such as a Job of Volcano, may have the same name.
"""

_ID = re.compile(r"\bbp-[0-9a-f]{16}\b")
"""The form of an id that `planner.model.reservation.reservation_id` returns."""


@dataclass(frozen=True, slots=True)
class ReservationClaim:
    """Claims a reservation for a workload that is stored, so that the reservation does not expire."""

    reservation: str
    owner_uid: str


@dataclass(frozen=True, slots=True)
class ReservationRelease:
    """Releases the reservation of a workload that was deleted or suspended."""

    reservation: str


LedgerStep = Wish | ReservationClaim | ReservationRelease
"""A change of the ledger. A `Wish` makes a reservation."""


def reservation_identity(held: Reservation) -> tuple[object, ...]:
    """Returns what identifies a reservation: its gang, its request and its place."""
    return held.id, held.fingerprint, held.assignments, held.domains


def reserving(
    request: AdmissionRequest, plan: WorkloadPlan | None, before: Snapshot | None, *, claimed: bool = False
) -> tuple[LedgerStep, ...]:
    """Returns the steps that make the plan's reservations; none for reservations that `before` contains.

    `claimed`: only claimed reservations count as contained, because no other call can withdraw them. Another
    call may have made a hold, and withdraws it if it meets a conflict. The mutating call therefore reserves
    again each place for which it finds only a hold; the ledger writes nothing if that hold is still valid.

    On an update, the steps have the object's UID, because the ledger compares it with the owner of a claimed
    reservation before its place is changed.
    """
    if plan is None:
        return ()

    def is_contained(held: Reservation) -> bool:
        former = before.holding(held.gang) if before is not None else None
        return (
            former is not None
            and reservation_identity(former) == reservation_identity(held)
            and (former.state == "claimed" or not claimed)
        )

    owner_uid = _uid(request.old_object)
    return tuple(
        Wish(replace(held, owner_uid=owner_uid), plan.snapshot.revision, headroom(plan.snapshot, held))
        for held in plan.reservations
        if not is_contained(held)
    )


def claiming(request: AdmissionRequest, plan: WorkloadPlan | None) -> tuple[LedgerStep, ...]:
    """Returns the steps that claim the object's own reservations.

    A pod of a larger gang claims nothing: its workload owns the place, or, for a gang without a workload
    object, the pod that arrived first.
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


def claims_of_all_gangs(request: AdmissionRequest, plan: WorkloadPlan | None) -> tuple[LedgerStep, ...]:
    """Returns a claim for each gang of the object, even if this replica does not know its reservation.

    The ledger refuses a claim if there is no such reservation, and so confirms that the place is lost.
    """
    owner_uid = _uid(request.object)
    placed = plan.placed if plan is not None else ()
    return tuple(ReservationClaim(reservation_id(gang_plan.group.name), owner_uid) for gang_plan in placed)


def releasing(request: AdmissionRequest, snapshot: Snapshot | None) -> tuple[LedgerStep, ...]:
    """Returns the steps that release the reservations of a deleted workload and of its replicas."""
    if snapshot is None or request.sub_resource or request.operation != "DELETE":
        return ()
    if (request.kind.group, request.kind.kind) not in _GANG_KINDS:
        return ()
    kind = f"{request.namespace}/{request.kind.kind}/"
    gang = kind + request.name
    replica = gang + "/"
    owner_uid = _uid(request.old_object)
    # An object with generateName is reserved under another name; the UID that claimed the reservation
    # identifies it. A pod may have claimed the place of a larger gang; its deletion does not release that.
    return tuple(
        ReservationRelease(held.id)
        for held in snapshot.reservations
        if held.gang.startswith(kind)  # first, because most of thousands of reservations are of other objects
        and (
            held.gang == gang
            or held.gang.startswith(replica)
            or (held.owner_uid and held.owner_uid == owner_uid)
        )
    )


def releasing_suspended(
    obj: Mapping[str, Any] | None, before: Iterable[Reservation]
) -> tuple[LedgerStep, ...]:
    """Returns the steps that release the reservations that a suspended workload has claimed, because its pods
    end and may never start again. `before`: all reservations before the decision.
    """
    owner_uid = _uid(obj)
    return tuple(ReservationRelease(held.id) for held in before if owner_uid and held.owner_uid == owner_uid)


def reservations_of(request: AdmissionRequest) -> tuple[str, ...]:
    """Returns the reservation ids in the annotation of the request's object, so that the caller can look up
    those that another replica created a moment ago.

    Returns none for a dry run: its mutating call created no reservation, so a look-up would be in vain.
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
