"""A pod that arrives for a gang which has its place: it takes a seat there, or the gang grows by it. Pure.

Pods of a PodGroup come one at a time, of several kinds and in any order; the first speaks for those that are
known by number alone. What the gang was promised stays: a seat is where it was, whatever comes later.

    the pod's own seat, or one kept for its like    the plan that is held
    members are missing that nobody was kept for    the seats that are held, and one more beside them
    all members have a seat                         any seat that is large enough, or a gang of its own
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.planning.replay import fingerprint
from webhook.workloads import Workload
from webhook.workloads.annotation_keys import POD_SET, RESERVATION
from webhook.workloads.pod_groups import OTHERS

_OWN = 0
"""The index of the pod's own PodSet among those of its gang."""


def with_gang_seat(snapshot: Snapshot | None, workload: Workload, pod: Mapping[str, Any]) -> Workload:
    """The workload of a pod, with the gang as its reservation knows it; any other workload as it is."""
    if snapshot is None or workload.kind != "Pod" or not workload.gangs:
        return workload
    (group,) = workload.gangs
    held = snapshot.holding(group.name)
    if group.name == workload.name or held is None or held.fingerprint == fingerprint(group):
        return workload
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    seat = _seat(group, held, str(notes.get(POD_SET, "")), fresh=RESERVATION not in notes)
    if seat:
        return _of_pod_set(workload, seat, _held(group, held, seat))
    if RESERVATION not in notes and _held_count(held) < group.size:
        name = _new_name(group.pod_sets[_OWN].name, held)
        return _of_pod_set(workload, name, _grown(group, held, name))
    seat = next(iter(_fitting(group, held)), "")
    return _of_pod_set(workload, seat, _held(group, held, seat)) if seat else _alone(workload, group)


def grows(snapshot: Snapshot, workload: Workload) -> bool:
    """Whether a pod's gang is planned with a seat more than it holds."""
    if workload.kind != "Pod" or not workload.gangs or workload.gangs[0].name == workload.name:
        return False
    held = snapshot.holding(workload.gangs[0].name)
    return held is not None and held.fingerprint != fingerprint(workload.gangs[0])


def _seat(group: PodGroup, held: Reservation, stamped: str, *, fresh: bool) -> str:
    """The PodSet whose seat is this pod's: the one that it was given, its own, or one of those kept for pods
    that were not known."""
    seats = _fitting(group, held)
    own = group.pod_sets[_OWN].name
    for name in (stamped, own if not fresh or _held_count(held) >= group.size else "", OTHERS):
        if name in seats:
            return name
    return ""


def _fitting(group: PodGroup, held: Reservation) -> list[str]:
    """The PodSets whose seats are large enough for the pod."""
    asked = group.pod_sets[_OWN].shape.requests.items()
    return [
        name
        for name, seat in held.requests
        if all(amount <= seat.get(resource, 0) for resource, amount in asked)
    ]


def _held_count(held: Reservation) -> int:
    return sum(assignment.count for assignment in held.assignments)


def _new_name(name: str, held: Reservation) -> str:
    taken = dict(held.requests)
    names = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return next(free for free in names if free not in taken)


def _held(group: PodGroup, held: Reservation, seat: str) -> PodGroup:
    """The gang as it is held, all of its PodSets, the pod's own first."""
    stated = {pod_set.name: pod_set.constraint for pod_set in group.pod_sets}
    own = group.pod_sets[_OWN]
    sets = [
        PodSet(
            name,
            sum(assigned.count for assigned in held.assignments if assigned.pod_set == name),
            replace(own.shape, requests=requests),
            stated.get(name, Constraint()),
        )
        for name, requests in sorted(held.requests, key=lambda part: (part[0] != seat, part[0]))
    ]
    return replace(group, pod_sets=tuple(sets))


def _grown(group: PodGroup, held: Reservation, name: str) -> PodGroup:
    """The gang with a seat more. Each seat that is held stays on its node; the new one goes to what the gang
    holds, where it holds domains for a level that it requires."""
    own = group.pod_sets[_OWN]
    if group.constraint.required and held.nodes:
        inside = Requirement(NODE_NAME_FIELD, "In", tuple(sorted(held.nodes)))
        terms = tuple((*term, inside) for term in own.shape.affinity) or ((inside,),)
        own = replace(own, shape=replace(own.shape, affinity=terms))
    kept = [
        replace(
            pod_set,
            shape=replace(pod_set.shape, node_selector={}, affinity=((_on(held, pod_set.name),),), claims=()),
        )
        for pod_set in _held(group, held, "").pod_sets
    ]
    return replace(group, pod_sets=(replace(own, name=name, count=1), *kept))


def _on(held: Reservation, name: str) -> Requirement:
    nodes = sorted({assigned.node for assigned in held.assignments if assigned.pod_set == name})
    return Requirement(NODE_NAME_FIELD, "In", tuple(nodes))


def _of_pod_set(workload: Workload, name: str, group: PodGroup) -> Workload:
    """The pod as one of this PodSet."""
    templates = tuple(replace(template, pod_set=name) for template in workload.templates)
    return replace(workload, gangs=(group,), templates=templates)


def _alone(workload: Workload, group: PodGroup) -> Workload:
    """The pod as a gang of its own, with a warning that says why."""
    warning = f"asks for more than a seat of {group.name} has: planned by itself (apply the largest first)"
    pod_set = replace(group.pod_sets[_OWN], count=1)
    alone = replace(group, name=workload.name, pod_sets=(pod_set,), warnings=(*group.warnings, warning))
    return replace(workload, gangs=(alone,))
