"""A hold: the temporary reservation of a gang's place until its object is stored and claims the place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.names import namespace_of
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation, reservation_id

HOLD_SECONDS = 10.0
"""Time to live, in seconds, of a reservation whose object has not been seen in storage.

It is short because the object may never be stored, and a call may be forged. The API server stores an object
within seconds of the mutating call. If storing takes longer, the validating call reserves the place again; if
that fails too, the controller does (`webhook.kube.controller.replanning.restore`). If the deadline of calls
is set above `webhook.server.http.DEADLINE`, this time is lengthened in proportion.
"""


def hold_of(reservation: Reservation, now: float, seconds: float = HOLD_SECONDS) -> Reservation:
    """Returns the reservation as a hold that expires `seconds` after `now` (seconds since the epoch)."""
    return replace(reservation, created=now, expires=now + seconds)


def is_used(snapshot: Snapshot, reservation: Reservation) -> bool:
    """Returns whether a bound pod uses the reservation.

    The pod must be in the gang's namespace and, if the gang requests devices, request devices itself, so that
    a pod cannot keep a place just by having the annotation. (Names of devices, as of all extended resources,
    contain a slash.)"""
    wants_devices = any("/" in name for _, amounts in reservation.requests for name in amounts)
    return _is_carried(snapshot, reservation.gang, wants_devices)


def has_bound_pod(snapshot: Snapshot, group: PodGroup) -> bool:
    """Returns whether a pod is bound that would use the gang's reservation (see `is_used`), even if the
    snapshot has no reservation of the gang."""
    shapes = [pod_set.shape for pod_set in group.pod_sets]
    wants_devices = any(shape.claims or any("/" in name for name in shape.requests) for shape in shapes)
    return _is_carried(snapshot, group.name, wants_devices)


def _is_carried(snapshot: Snapshot, gang: str, wants_devices: bool) -> bool:
    pods = snapshot.bound.of_gang(gang, reservation_id(gang))
    return any(_has_devices(pod) or not wants_devices for pod in pods)


def _has_devices(pod: BoundPod) -> bool:
    return bool(pod.claims or pod.gpu_groups) or any("/" in name for name in pod.requests)


def is_full(snapshot: Snapshot, held: Reservation, pod: Mapping[str, Any]) -> bool:
    """Returns whether each seat of a gang has a bound pod other than `pod`.

    If so, `pod` does not replace a pod that has ended, and on the gang's nodes it would use capacity that no
    reservation counts."""
    metadata = pod.get("metadata") or {}
    name = f"{namespace_of(held.gang)}/{metadata.get('name') or ''}"
    return bound_seats(snapshot, held, name) >= held.seats


def bound_seats(snapshot: Snapshot, reservation: Reservation, name: str) -> int:
    """Returns how many pods of the reservation's gang are bound, apart from the pod `name`
    (NAMESPACE/NAME)."""
    pods = snapshot.bound.of_gang(reservation.gang, reservation.id)
    return sum(pod.name != name for pod in pods)
