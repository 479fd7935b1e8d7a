"""Gives seats to an object whose gang holds a place already, or extends the gang. Pure.

The objects of a gang arrive one at a time, of several kinds and in any order. A seat that the gang holds
never moves, whatever arrives later. The pods of an object get:

    the pods, or their subgroup, have seats already   these seats
    seats are kept for unknown members                those seats, on the same nodes
    no seat is kept, or none fits                     additional seats beside the held ones
    all members have a seat, and a pod arrives        any seat that fits, or a gang of its own
    each seat has a bound pod                         a gang of its own
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.model.resolved import ResolvedShape
from planner.planning.replay import fingerprint
from planner.request.created_pods import as_created
from planner.request.validation import Refusal
from planner.request.volumes import with_volumes
from webhook.placement.hold import is_full
from webhook.placement.shared_gangs.seats import NODE_SEPARATOR, GangSeats
from webhook.workloads import Workload
from webhook.workloads.keys.annotation_keys import POD_SET, RESERVATION
from webhook.workloads.shared_gangs.pod_groups import OTHERS
from webhook.workloads.templates import value_at
from webhook.workloads.workload import GangShare


def with_gang_seat(snapshot: Snapshot | None, workload: Workload, obj: Mapping[str, Any]) -> Workload:
    """Returns the workload with its gang on the seats that the gang's reservation holds, by the table at the
    top of this module.

    The workload is unchanged if it shares no gang with other objects, or if the gang holds nothing."""
    share = workload.share
    if snapshot is None or share is None or not workload.gangs:
        return workload
    (group,) = workload.gangs
    held = snapshot.holding(group.name)
    if held is None:
        return workload
    seats = GangSeats(held, snapshot.nodes, _arriving(snapshot, group, share))
    is_bare = workload.kind == "Pod" and not workload.owner
    if is_bare and held.seats >= group.size and is_full(snapshot, held, obj):
        return _alone(workload, share, group, f"each of the {held.seats} seats of {group.name} has a pod")
    # `fresh`: the object names no reservation, so `POD_SET` in its templates names no seat of `held`.
    fresh = RESERVATION not in _annotations(obj, ("metadata",))
    # If members are unknown, the seats of the reservation are used even if the request is unchanged. Without
    # them, unknown members would count as equal to this pod and as pinned to the same seat.
    some_absent = sum(own.count for own in share.known_sets) < group.size
    if held.fingerprint == fingerprint(group) and not some_absent and not (fresh and seats.unknown_members):
        return workload
    names = {} if fresh else stamped_seats(workload, obj)
    taken = {
        own.name: seats.pod_set_with_seats(own, share, names.get(own.name, ""), fresh=fresh)
        for own in share.own
    }
    if all(taken.values()):
        return _renamed(workload, share, taken, seats.group(group, share.own, taken))
    if fresh and (workload.kind != "Pod" or seats.unknown_members or held.seats < group.size):
        added = seats.names([own.name for own in share.own])
        return _renamed(
            workload, replace(share, adds_seats=True), added, seats.with_added_seats(group, share.own, added)
        )
    fitting = {own.name: next(iter(seats.fitting(own)), "") for own in share.own}
    if all(fitting.values()):
        return _renamed(workload, share, fitting, seats.group(group, share.own, fitting))
    if all(map(seats.large_enough, share.own)):
        return _alone(workload, share, group, f"may not be on the nodes of the seats of {group.name}")
    lacks = f"asks for more than a seat of {group.name} has"
    return _alone(workload, share, group, lacks, "apply the largest first")


def _arriving(snapshot: Snapshot, group: PodGroup, share: GangShare) -> Mapping[str, ResolvedShape]:
    """Returns the shape of the pods of each of the object's PodSets, with the devices that they claim and the
    nodes that their volumes exclude."""
    with suppress(Refusal):  # the plan will report it
        own = with_volumes(snapshot, as_created(snapshot, replace(group, pod_sets=share.own)))
        return {pod_set.name: pod_set.shape for pod_set in own.pod_sets}
    return {}


def with_whole_sets(
    group: PodGroup, answer: Answer, reservation: Reservation | None
) -> tuple[PodGroup, Answer, Reservation | None]:
    """Returns gang, answer and reservation with the grown gang's PodSets "PODSET@NODE" merged into PODSET."""
    counts: Counter[str] = Counter()
    sets: dict[str, PodSet] = {}
    for pod_set in group.pod_sets:
        name = pod_set.name.partition(NODE_SEPARATOR)[0]
        counts[name] += pod_set.count
        sets.setdefault(name, pod_set)
    group = replace(
        group, pod_sets=tuple(replace(own, name=name, count=counts[name]) for name, own in sets.items())
    )
    assignments = tuple(
        replace(seat, pod_set=seat.pod_set.partition(NODE_SEPARATOR)[0]) for seat in answer.assignments
    )
    answer = replace(answer, assignments=assignments)
    if reservation is None:
        return group, answer, None
    requests = {name.partition(NODE_SEPARATOR)[0]: amounts for name, amounts in reservation.requests}
    traits = {name.partition(NODE_SEPARATOR)[0]: own for name, own in reservation.traits}
    reservation = replace(
        reservation,
        assignments=assignments,
        requests=tuple(requests.items()),
        traits=tuple(traits.items()),
        fingerprint=fingerprint(group),
    )
    return group, answer, reservation


def shared_gang_changed(snapshot: Snapshot, workload: Workload) -> bool:
    """Returns whether the workload's shared gang requests something else than its reservation holds, so that
    it needs a new plan. False if the gang holds nothing."""
    if workload.share is None or not workload.gangs:
        return False
    held = snapshot.holding(workload.gangs[0].name)
    return held is not None and held.fingerprint != fingerprint(workload.gangs[0])


def stamped_seats(workload: Workload, obj: Mapping[str, Any]) -> dict[str, str]:
    """Returns the seat name that the plan wrote onto each template (`POD_SET`), "" for none, by PodSet."""
    return {
        template.pod_set: str(_annotations(obj, template.metadata_path).get(POD_SET, ""))
        for template in workload.templates
    }


def _annotations(obj: Mapping[str, Any], path: tuple[str | int, ...]) -> Mapping[str, Any]:
    metadata = value_at(obj, path)
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def _renamed(workload: Workload, share: GangShare, names: Mapping[str, str], group: PodGroup) -> Workload:
    """Returns the workload in `group`, with its PodSets renamed: `names` has the new name by the old one."""
    templates = tuple(
        replace(template, pod_set=names.get(template.pod_set, template.pod_set))
        for template in workload.templates
    )
    own = tuple(replace(pod_set, name=names[pod_set.name]) for pod_set in share.own)
    known_sets = tuple(pod_set for pod_set in group.pod_sets if pod_set.name != OTHERS)
    share = replace(share, own=own, known_sets=known_sets)
    return replace(workload, gangs=(group,), templates=templates, share=share)


def _alone(workload: Workload, share: GangShare, group: PodGroup, why: str, advice: str = "") -> Workload:
    """Returns the workload as a gang of its own, with a warning made from `why` and `advice`."""
    warning = f"{why}: planned by itself{advice and f' ({advice})'}"
    alone = replace(
        group, name=workload.name, pod_sets=share.own, within=(), warnings=(*group.warnings, warning)
    )
    return replace(workload, gangs=(without_slices(alone),), share=None)


def without_slices(group: PodGroup) -> PodGroup:
    """Returns the gang without slices, which a part of its pods need not fill."""

    def unsliced(constraint: Constraint) -> Constraint:
        return replace(constraint, slice_level="", slice_size=0, segments=False)

    sets = tuple(replace(own, constraint=unsliced(own.constraint)) for own in group.pod_sets)
    return replace(group, pod_sets=sets, constraint=unsliced(group.constraint))
