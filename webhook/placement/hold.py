"""A hold: the reservation of a gang that has a place, until its object is stored and claims it."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.occupancy import carried
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation, reservation_id
from webhook.workloads.keys.annotation_keys import namespace_of

HOLD_SECONDS = 10.0
"""Time to live of a reservation whose object was not seen to be stored: nobody else may have the place so
long for an object that never comes, be the call forged. The API server stores an object within seconds of the
mutating call; where it takes longer, the place is reserved again by the validating call, and where that was
missed too, by the controller (`Restore`). Where calls may take longer than `http.DEADLINE`, in proportion."""


def hold_of(reservation: Reservation, now: float, seconds: float = HOLD_SECONDS) -> Reservation:
    """The reservation as it is held from now on, in seconds since the epoch."""
    return replace(reservation, created=now, expires=now + seconds)


def is_used(snapshot: Snapshot, reservation: Reservation) -> bool:
    """Whether a pod on a node makes use of a reservation: one of the gang's namespace, and for a gang with
    devices one with devices, or a pod of nothing but the annotation would keep the place."""
    wants_devices = any("/" in name for _, amounts in reservation.requests for name in amounts)
    return _is_carried(snapshot, reservation.gang, wants_devices)


def stands(snapshot: Snapshot, group: PodGroup) -> bool:
    """Whether such a pod is on a node, be the gang's reservation there or not."""
    shapes = [pod_set.shape for pod_set in group.pod_sets]
    wants_devices = any(shape.claims or any("/" in name for name in shape.requests) for shape in shapes)
    return _is_carried(snapshot, group.name, wants_devices)


def _is_carried(snapshot: Snapshot, gang: str, wants_devices: bool) -> bool:
    pods, name = snapshot.bound, reservation_id(gang)
    return any(
        name in carried(pod)
        and namespace_of(pod.name) == namespace_of(gang)
        and (_has_devices(pod) or not wants_devices)
        for node in pods.carriers.get(name) or ()
        for pod in pods.on(node)
    )


def _has_devices(pod: BoundPod) -> bool:
    return bool(pod.claims or pod.gpu_groups) or any("/" in name for name in pod.requests)
