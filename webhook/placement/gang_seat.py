"""An object that arrives for a gang which has its place: its pods take seats there, or the gang grows. Pure.

The members of a gang come one at a time, of several kinds and in any order. What the gang was promised stays:
a seat is where it was, whatever comes later.

    the pods' own seats, or a seat of their part     as it is held
    seats kept for members that were not known       those become the pods' own, on the same nodes
    no seat is kept, or none is large enough          seats more beside those that are held
    all members have a seat, and a pod comes          any seat that is large enough, or a gang of its own
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.pod import PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.planning.replay import fingerprint
from webhook.workloads import Workload
from webhook.workloads.keys.annotation_keys import POD_SET, RESERVATION
from webhook.workloads.pod_groups import OTHERS
from webhook.workloads.templates import value_at
from webhook.workloads.workload import GangShare

NODE_SEPARATOR = "@"
"""Between the name of a PodSet and a node: its seats there, while a gang that grows is planned."""


def with_gang_seat(snapshot: Snapshot | None, workload: Workload, obj: Mapping[str, Any]) -> Workload:
    """The workload with its gang as the reservation knows it; one whose gang is all its own as it is."""
    share = workload.share
    if snapshot is None or share is None or not workload.gangs:
        return workload
    (group,) = workload.gangs
    held = snapshot.holding(group.name)
    if held is None:
        return workload
    seats = GangSeats(held)
    fresh = RESERVATION not in _annotations(obj, ("metadata",))
    # Pods that have a seat are pinned to it: placeholders that are taken to be like them would be so too.
    some_absent = sum(own.count for own in share.known_sets) < group.size
    if held.fingerprint == fingerprint(group) and not some_absent and not (fresh and seats.kept):
        return workload
    names = {} if fresh else stamped_seats(workload, obj)
    taken = {own.name: seats.of(own, share, names.get(own.name, ""), fresh=fresh) for own in share.own}
    if all(taken.values()):
        return _renamed(workload, share, taken, seats.group(group, share.own, taken))
    if fresh and (workload.kind != "Pod" or seats.kept or seats.total < group.size):
        added = seats.names([own.name for own in share.own])
        return _renamed(workload, replace(share, beside=True), added, seats.grown(group, share.own, added))
    fitting = {own.name: next(iter(seats.fitting(own)), "") for own in share.own}
    if all(fitting.values()):
        return _renamed(workload, share, fitting, seats.group(group, share.own, fitting))
    return _alone(workload, share, group)


def with_whole_sets(
    group: PodGroup, answer: Answer, reservation: Reservation | None
) -> tuple[PodGroup, Answer, Reservation | None]:
    """A gang that has grown, with what is held for a PodSet on several nodes as the one PodSet that it is."""
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


def grows(snapshot: Snapshot, workload: Workload) -> bool:
    """Whether the gang is planned with other seats than it holds."""
    if workload.share is None or not workload.gangs:
        return False
    held = snapshot.holding(workload.gangs[0].name)
    return held is not None and held.fingerprint != fingerprint(workload.gangs[0])


@dataclass(frozen=True, slots=True)
class GangSeats:
    """The seats that a gang holds, by PodSet."""

    held: Reservation

    @property
    def total(self) -> int:
        """All of them."""
        return sum(assignment.count for assignment in self.held.assignments)

    @property
    def kept(self) -> int:
        """Those for members that are not known yet."""
        return self.count(OTHERS)

    def count(self, name: str) -> int:
        """Those of one PodSet."""
        return sum(assigned.count for assigned in self.held.assignments if assigned.pod_set == name)

    def fitting(self, own: PodSet) -> list[str]:
        """The PodSets whose seats are large enough for such a pod."""
        asked = own.shape.requests.items()
        return [
            name
            for name, seat in self.held.requests
            if all(amount <= seat.get(resource, 0) for resource, amount in asked)
        ]

    def of(self, own: PodSet, share: GangShare, stamped: str, *, fresh: bool) -> str:
        """The PodSet whose seats these pods have already; "" for none."""
        shared = own.name in share.parts or (self.kept == 0 and self.total >= share.size)
        names = (stamped, own.name) if not fresh else (own.name,) if shared else ()
        fits = self.fitting(own)
        return next((name for name in names if name in fits and self.count(name) >= own.count), "")

    def names(self, wanted: Iterable[str]) -> dict[str, str]:
        """Names for PodSets that are added: none that is taken, and none for members that are not known."""
        taken = {name for name, _ in self.held.requests} | {OTHERS}
        result = {}
        for name in wanted:
            free = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
            result[name] = next(candidate for candidate in free if candidate not in taken)
            taken.add(result[name])
        return result

    def group(self, group: PodGroup, own: tuple[PodSet, ...], names: Mapping[str, str]) -> PodGroup:
        """The gang as it is held, all of its PodSets, the object's own first."""
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

    def grown(self, group: PodGroup, own: tuple[PodSet, ...], names: Mapping[str, str]) -> PodGroup:
        """The gang with seats for these pods, in place of as many that were kept for members not known.

        Each seat that is held stays on its node. The new ones go where some were kept, if those are large
        enough; or else to what the gang holds, where it holds domains for a level that it requires.
        """
        count = sum(pod_set.count for pod_set in own)
        spare = self.kept - count
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
    """A pod whose seat is held: it is known by amounts and nodes, and where else it may go is not asked.

    Least of all where a pod of another part may go: that one is pinned to its own seat by now.
    """
    return replace(shape, node_selector={}, affinity=(), claims=())


def _pinned(pod_set: PodSet, nodes: Iterable[str]) -> PodSet:
    """The same pods on these nodes only; anywhere where there are none."""
    names = tuple(sorted(nodes))
    if not names:
        return pod_set
    inside = Requirement(NODE_NAME_FIELD, "In", names)
    terms = tuple((*term, inside) for term in pod_set.shape.affinity) or ((inside,),)
    return replace(pod_set, shape=replace(pod_set.shape, affinity=terms))


def stamped_seats(workload: Workload, obj: Mapping[str, Any]) -> dict[str, str]:
    """The seats that the plan wrote onto the object's templates, by the names of their PodSets."""
    return {
        template.pod_set: str(_annotations(obj, template.metadata_path).get(POD_SET, ""))
        for template in workload.templates
    }


def _annotations(obj: Mapping[str, Any], path: tuple[str | int, ...]) -> Mapping[str, Any]:
    metadata = value_at(obj, path)
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def _renamed(workload: Workload, share: GangShare, names: Mapping[str, str], group: PodGroup) -> Workload:
    """The workload, whose pods are those of these PodSets of the gang."""
    templates = tuple(
        replace(template, pod_set=names.get(template.pod_set, template.pod_set))
        for template in workload.templates
    )
    own = tuple(replace(pod_set, name=names[pod_set.name]) for pod_set in share.own)
    known_sets = tuple(pod_set for pod_set in group.pod_sets if pod_set.name != OTHERS)
    share = replace(share, own=own, known_sets=known_sets)
    return replace(workload, gangs=(group,), templates=templates, share=share)


def _alone(workload: Workload, share: GangShare, group: PodGroup) -> Workload:
    """The object as a gang of its own, with a warning that says why."""
    warning = f"asks for more than a seat of {group.name} has: planned by itself (apply the largest first)"
    alone = replace(
        group, name=workload.name, pod_sets=share.own, within=(), warnings=(*group.warnings, warning)
    )
    return replace(workload, gangs=(alone,), share=None)
