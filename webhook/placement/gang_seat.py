"""Gives seats to an object whose gang holds a place already, or extends the gang. Pure.

The objects of a gang arrive one at a time, of several kinds and in any order. A seat that the gang holds
never moves, whatever arrives later. The pods of an object get:

    the pods, or their subgroup, have seats already   these seats
    seats are kept for unknown members                those seats, on the same nodes
    no seat is kept, or none is large enough          additional seats beside the held ones
    all members have a seat, and a pod arrives        any seat that is large enough, or a gang of its own
    each seat has a bound pod                         a gang of its own
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.names import namespace_of
from planner.model.pod import PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.model.resources import Resources
from planner.planning.replay import fingerprint
from planner.request.device_claims import with_devices
from planner.request.validation import Refusal
from webhook.placement.hold import bound_seats
from webhook.workloads import Workload
from webhook.workloads.keys.annotation_keys import POD_SET, RESERVATION
from webhook.workloads.shared_gangs.pod_groups import OTHERS
from webhook.workloads.templates import value_at
from webhook.workloads.workload import GangShare

NODE_SEPARATOR = "@"
"""Separates PodSet and node in the name "PODSET@NODE". While a growing gang is planned, each PodSet is split
into one for each of its nodes, so that its held seats stay there."""


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
    seats = GangSeats(held, _asked(snapshot, group, share) if workload.claims else {})
    is_bare = workload.kind == "Pod" and not workload.owner
    if is_bare and seats.total >= group.size and _is_full(snapshot, held, obj):
        return _alone(workload, share, group, f"each of the {seats.total} seats of {group.name} has a pod")
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
    if fresh and (workload.kind != "Pod" or seats.unknown_members or seats.total < group.size):
        added = seats.names([own.name for own in share.own])
        return _renamed(
            workload, replace(share, adds_seats=True), added, seats.with_added_seats(group, share.own, added)
        )
    fitting = {own.name: next(iter(seats.fitting(own)), "") for own in share.own}
    if all(fitting.values()):
        return _renamed(workload, share, fitting, seats.group(group, share.own, fitting))
    lacks = f"asks for more than a seat of {group.name} has"
    return _alone(workload, share, group, lacks, "apply the largest first")


def _asked(snapshot: Snapshot, group: PodGroup, share: GangShare) -> Mapping[str, Resources]:
    """Returns what a pod of each of the object's PodSets requests, with the devices that it claims."""
    with suppress(Refusal):  # the plan will report it
        own = with_devices(snapshot, replace(group, pod_sets=share.own))
        return {pod_set.name: pod_set.shape.requests for pod_set in own.pod_sets}
    return {}


def _is_full(snapshot: Snapshot, held: Reservation, pod: Mapping[str, Any]) -> bool:
    """Returns whether each seat of a gang that pods join has a bound pod other than `pod`.

    If so, `pod` does not replace a pod that has ended, and on the gang's nodes it would use capacity that no
    reservation counts."""
    metadata = pod.get("metadata") or {}
    name = f"{namespace_of(held.gang)}/{metadata.get('name') or ''}"
    return bound_seats(snapshot, held, name) >= GangSeats(held).total


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


@dataclass(frozen=True, slots=True)
class GangSeats:
    """The seats that a gang holds, by PodSet. `asked`: requests of arriving pods, with what they claim."""

    held: Reservation
    asked: Mapping[str, Resources] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of all seats."""
        return sum(assignment.count for assignment in self.held.assignments)

    @property
    def unknown_members(self) -> int:
        """The number of seats for members that are not known yet."""
        return self.count(OTHERS)

    def count(self, name: str) -> int:
        """Returns the number of seats of one PodSet."""
        return sum(assigned.count for assigned in self.held.assignments if assigned.pod_set == name)

    def fitting(self, own: PodSet) -> list[str]:
        """Returns the names of the PodSets whose seats are large enough for one of these pods."""
        asked = self.asked.get(own.name, own.shape.requests).items()
        return [
            name
            for name, seat in self.held.requests
            if all(amount <= seat.get(resource, 0) for resource, amount in asked)
        ]

    def pod_set_with_seats(self, own: PodSet, share: GangShare, stamped: str, *, fresh: bool) -> str:
        """Returns the name of the PodSet whose seats these pods have already; "" for none.

        `stamped`: the name that an earlier plan wrote onto their template. `fresh`: their object was not
        planned before; its pods have seats if they belong to a subgroup of the gang, or if the gang has a
        seat for each member."""
        shared = own.name in share.parts or (self.unknown_members == 0 and self.total >= share.size)
        names = (stamped, own.name) if not fresh else (own.name,) if shared else ()
        fits = self.fitting(own)
        return next((name for name in names if name in fits and self.count(name) >= own.count), "")

    def names(self, wanted: Iterable[str]) -> dict[str, str]:
        """Returns the name under which each of these added PodSets is held, by PodSet name.

        It is the PodSet's own name, with a number if that is taken or is the name of unknown members
        (`OTHERS`).
        """
        taken = {name for name, _ in self.held.requests} | {OTHERS}
        result = {}
        for name in wanted:
            free = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
            result[name] = next(candidate for candidate in free if candidate not in taken)
            taken.add(result[name])
        return result

    def group(self, group: PodGroup, own: tuple[PodSet, ...], names: Mapping[str, str]) -> PodGroup:
        """Returns the gang with the PodSets and requests of its reservation; first come the PodSets whose
        seats the object's pods have.

        `own`: the object's PodSets. `names`: by the name of such a PodSet, the PodSet whose seats it has."""
        by_seat = {names[pod_set.name]: pod_set.shape for pod_set in own}
        stated = {pod_set.name: pod_set.constraint for pod_set in group.pod_sets}
        bare = _anywhere(own[0].shape)
        sets = [
            PodSet(
                name,
                self.count(name),
                replace(by_seat.get(name, bare), requests=requests),
                stated.get(name, Constraint()),
            )
            for name, requests in sorted(
                self.held.requests, key=lambda part: (part[0] not in by_seat, part[0])
            )
        ]
        return replace(group, pod_sets=tuple(sets))

    def with_added_seats(
        self, group: PodGroup, own: tuple[PodSet, ...], names: Mapping[str, str]
    ) -> PodGroup:
        """Returns the gang with added seats for these pods, and with that many fewer kept seats.

        Each held seat stays on its node. The added seats go to the nodes with kept seats if these are enough
        and large enough; otherwise, if the gang requires a level, to the nodes that it holds; otherwise
        anywhere. `own`, `names`: the added PodSets, and their new names."""
        count = sum(pod_set.count for pod_set in own)
        spare = self.unknown_members - count
        enough = spare >= 0 and all(OTHERS in self.fitting(pod_set) for pod_set in own)
        inside = self._on(OTHERS) if enough else self.held.nodes if group.constraint.required else ()
        added = [
            replace(pod_set, name=names[pod_set.name], shape=_pinned(pod_set, inside).shape)
            for pod_set in own
        ]
        bare = _anywhere(own[0].shape)
        amounts = dict(self.held.requests)
        kept = [
            _pinned(
                PodSet(
                    f"{seat.pod_set}{NODE_SEPARATOR}{seat.node}",
                    seat.count,
                    replace(bare, requests=amounts[seat.pod_set]),
                ),
                (seat.node,),
            )
            for seat in self.held.assignments
            if seat.pod_set != OTHERS
        ]
        if spare > 0:
            others = PodSet(OTHERS, spare, replace(bare, requests=amounts[OTHERS]))
            kept.append(_pinned(others, self._on(OTHERS)))
        return replace(group, pod_sets=(*added, *kept))

    def _on(self, name: str) -> frozenset[str]:
        return frozenset(assigned.node for assigned in self.held.assignments if assigned.pod_set == name)


def _anywhere(shape: PodShape) -> PodShape:
    """Returns the shape without node selector, required affinity and claims, for the seats of other pods.

    A held seat has only amounts and a node. The constraints of the pod that arrives must not apply to it,
    because they may pin that pod to its own seat."""
    return replace(shape, node_selector={}, affinity=(), claims=())


def _pinned(pod_set: PodSet, nodes: Iterable[str]) -> PodSet:
    """Returns the PodSet with its pods restricted to these nodes; unchanged if there are no nodes."""
    names = tuple(sorted(nodes))
    if not names:
        return pod_set
    inside = Requirement(NODE_NAME_FIELD, "In", names)
    terms = tuple((*term, inside) for term in pod_set.shape.affinity) or ((inside,),)
    return replace(pod_set, shape=replace(pod_set.shape, affinity=terms))


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
    return replace(workload, gangs=(alone,), share=None)
