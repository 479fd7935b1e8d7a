"""A pod that arrives for a gang which has its place: it takes a seat there, or is planned alone. Pure.

Pods of a PodGroup come one at a time, and the first one speaks for the gang. A pod that asks for no more than
a seat has fits that seat; one that asks for more must not replace what the other pods of the gang hold.
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.planning.replay import fingerprint
from webhook.workloads import Workload


def with_gang_seat(snapshot: Snapshot | None, workload: Workload) -> Workload:
    """The workload of a pod, with the gang as its reservation knows it; any other workload as it is."""
    if snapshot is None or workload.kind != "Pod" or not workload.gangs:
        return workload
    (group,) = workload.gangs
    held = snapshot.holding(group.name)
    if group.name == workload.name or held is None or held.fingerprint == fingerprint(group):
        return workload
    return replace(workload, gangs=(_seated(group, held) or _alone(group, workload.name),))


def _seated(group: PodGroup, held: Reservation) -> PodGroup | None:
    """The gang in which the pod takes the first seat that is large enough; None where no seat is."""
    pod_set = group.pod_sets[0]
    for name, seat in held.requests:
        if all(amount <= seat.get(resource, 0) for resource, amount in pod_set.shape.requests.items()):
            count = sum(assigned.count for assigned in held.assignments if assigned.pod_set == name)
            shape = replace(pod_set.shape, requests=seat)
            return replace(group, pod_sets=(replace(pod_set, name=name, count=count, shape=shape),))
    return None


def _alone(group: PodGroup, name: str) -> PodGroup:
    """The pod as a gang of its own, with a warning that says why."""
    warning = f"asks for more than a seat of {group.name} has: planned by itself (apply the largest first)"
    pod_set = replace(group.pod_sets[0], count=1)
    return replace(group, name=name, pod_sets=(pod_set,), warnings=(*group.warnings, warning))
