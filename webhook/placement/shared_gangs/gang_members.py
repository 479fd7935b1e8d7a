"""Combines the stored objects of one gang, for the controller, with the seats that the gang holds. Pure.

What the controller plans or restores:

the gang holds nothing               the gang of all known members, with room for unknown ones
the gang holds a place               its seats; each member has the seats that a plan wrote onto it
a further member waits for a place   free seats of the gang for this member, or additional seats
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.model.resources import Resources
from planner.request.created_pods import as_admitted
from webhook.placement.shared_gangs.seats import GangSeats
from webhook.workloads import Workload
from webhook.workloads.shared_gangs.merge import pod_set_in, with_whole_gang
from webhook.workloads.shared_gangs.pod_groups import OTHERS

SeatNames = Mapping[str, str]
"""By PodSet name of a member, the name of the gang's PodSet whose seats its pods have."""


@dataclass(frozen=True, slots=True)
class GangMember:
    """A stored object that is a member of a gang.

    `uid`: the object's UID. `workload`: the object as it was read, with its share of the gang. `stamps`: the
    seat names that plans wrote onto its templates (`POD_SET`), by its own PodSet names; "" for none. `ids`:
    the ids of reservations in its annotations. `waits`: the object has no place yet."""

    uid: str
    workload: Workload
    stamps: SeatNames = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    waits: bool = False

    @property
    def own(self) -> tuple[PodSet, ...]:
        """The object's own PodSets."""
        return self.workload.share.own if self.workload.share is not None else ()


@dataclass(frozen=True, slots=True)
class SeatedGang:
    """A gang with the seats that it holds. `seats`: the seats of each member's pods, by the member's UID.
    `left`: the waiting members for which there are no free seats."""

    group: PodGroup
    seats: Mapping[str, SeatNames]
    left: tuple[GangMember, ...]


def combined_workload(members: Sequence[GangMember]) -> Workload:
    """Returns the workload of the first member, with the gang of all members.

    The gang's PodSets have the names that plans wrote onto the templates, so that a lost reservation is
    restored under the names by which the pods refer to its seats."""
    workload = with_whole_gang(members[0].workload, [member.workload for member in members])
    (group,) = workload.gangs
    stamped = {
        pod_set_in(group, own): member.stamps[own.name]
        for member in reversed(members)
        for own in member.own
        if member.stamps.get(own.name)
    }
    names = {pod_set.name: stamped.get(pod_set.name, pod_set.name) for pod_set in group.pod_sets}
    if len(set(names.values())) < len(names):  # equal names would not tell the PodSets apart
        return workload
    group = replace(
        group,
        pod_sets=_renamed(group.pod_sets, names),
        within=tuple((level, tuple(names[name] for name in tied)) for level, tied in group.within),
    )
    share = workload.share
    share = share and replace(share, known_sets=_renamed(share.known_sets, names))
    return replace(workload, gangs=(group,), share=share)


def seats_of(group: PodGroup, member: GangMember) -> SeatNames:
    """Returns the seat names of this member. `group`: the gang that `combined_workload` returned."""
    names = {pod_set.name for pod_set in group.pod_sets}
    stamps = {own.name: member.stamps.get(own.name, "") for own in member.own}
    return {
        own.name: stamps[own.name] if stamps[own.name] in names else pod_set_in(group, own)
        for own in member.own
    }


def seated_gang(
    snapshot: Snapshot,
    held: Reservation,
    group: PodGroup,
    members: Iterable[GangMember],
    bound: Iterable[Resources],
) -> SeatedGang:
    """Returns the gang with its members on the seats of its reservation `held`.

    Members whose annotations name the reservation have seats already; members that wait get free ones.
    `group`: the gang as its members request it. `bound`: the requests of each bound pod of the gang."""
    kept = GangSeats(held, snapshot.nodes)
    admitted = (_with_admitted_pods(snapshot, group, member) for member in members)
    listed = sorted(admitted, key=lambda member: member.workload.name)
    placed = [member for member in listed if held.id in member.ids]
    seats: dict[str, SeatNames] = {}
    shapes: dict[str, PodSet] = {}
    by_objects, by_pods = Counter[str](), Counter[str]()
    for member in placed:
        names = {own.name: _placed_seat(kept, own, member.stamps.get(own.name, "")) for own in member.own}
        seats[member.uid] = names
        taken = by_pods if member.workload.kind == "Pod" else by_objects
        for own in member.own:
            shapes.setdefault(names[own.name], own)
            taken[names[own.name]] += own.count
    free = Counter({name: kept.count(name) for name, _ in held.requests if name != OTHERS})
    # An object's pods count in `by_objects`, and again once they are bound: the larger number (`|`) counts.
    free -= by_pods + (by_objects | _on_nodes(kept, bound))
    left = []
    for member in listed:
        if not member.waits or held.id in member.ids:
            continue
        chosen, after = _free_seats(kept, member, free)
        if chosen:
            seats[member.uid], free = chosen, after
            shapes |= {chosen[own.name]: own for own in member.own if chosen[own.name] not in shapes}
        else:
            left.append(member)
    return SeatedGang(_as_held(kept, group, listed, shapes), seats, tuple(left))


def with_added_seats(
    snapshot: Snapshot, held: Reservation, group: PodGroup, member: GangMember
) -> tuple[Workload, SeatNames]:
    """Returns the member's workload with the gang extended by seats for this member, and the names of these
    seats.

    In the gang, PodSets are split by node; `plan_workload` merges them again (`with_whole_sets`)."""
    kept = GangSeats(held, snapshot.nodes)
    names = kept.names([own.name for own in member.own])
    share = member.workload.share
    workload = replace(
        member.workload,
        gangs=(kept.with_added_seats(group, member.own, names),),
        share=share and replace(share, adds_seats=True),
        holds=True,
    )
    return workload, names


def _with_admitted_pods(snapshot: Snapshot, group: PodGroup, member: GangMember) -> GangMember:
    """Returns the member with its own PodSets as the API server admits their pods. Seats and bound pods are
    recognised by their amounts, and these contain the overhead of a RuntimeClass.
    """
    share = member.workload.share
    if share is None:
        return member
    own = as_admitted(snapshot, replace(group, pod_sets=share.own)).pod_sets
    return replace(member, workload=replace(member.workload, share=replace(share, own=own)))


def _renamed(pod_sets: Iterable[PodSet], names: SeatNames) -> tuple[PodSet, ...]:
    return tuple(replace(pod_set, name=names.get(pod_set.name, pod_set.name)) for pod_set in pod_sets)


def _placed_seat(kept: GangSeats, own: PodSet, stamp: str) -> str:
    """Returns the name of the PodSet whose seats these pods have: the one that a plan wrote onto their
    template, otherwise one with equal requests, otherwise one that is large enough; "" for none.
    """
    names = [name for name, _ in kept.held.requests]
    if stamp in names:
        return stamp
    return next(iter(_ordered(kept, own, kept.large_enough(own))), "")


def _free_seats(kept: GangSeats, member: GangMember, free: Counter[str]) -> tuple[SeatNames, Counter[str]]:
    """Returns free seats for all PodSets of a member, and the numbers of seats that are free afterwards.

    Returns no seats if one of the PodSets finds none. `free`: free seats by PodSet name."""
    chosen: dict[str, str] = {}
    free = free.copy()
    for own in member.own:
        candidates = _ordered(kept, own, kept.fitting(own))
        name = next((name for name in candidates if free[name] >= own.count), "")
        if not name:
            return {}, free
        chosen[own.name] = name
        free[name] -= own.count
    return chosen, free


def _ordered(kept: GangSeats, own: PodSet, names: Iterable[str]) -> list[str]:
    """Returns these names of PodSets, those whose seats equal the requests of the pods first, and of these
    the pods' own name."""
    alike = {name for name, amounts in kept.held.requests if dict(amounts) == dict(own.shape.requests)}
    return sorted(names, key=lambda name: (name not in alike, name != own.name, name))


def _on_nodes(kept: GangSeats, bound: Iterable[Resources]) -> Counter[str]:
    """Returns how many seats of each PodSet have a bound pod, recognised by the pod's requests.

    The key "" counts pods that match no free seat."""
    taken = Counter[str]()
    for requests in bound:
        alike = [name for name, amounts in kept.held.requests if dict(amounts) == dict(requests)]
        taken[next((name for name in alike if taken[name] < kept.count(name)), "")] += 1
    return taken


def _as_held(
    kept: GangSeats, group: PodGroup, members: Sequence[GangMember], shapes: Mapping[str, PodSet]
) -> PodGroup:
    """Returns the gang with the PodSets of its reservation.

    Each PodSet has the shape of the pods that have its seats (`shapes`), or, if they are unknown, that of the
    first member."""
    stated = {pod_set.name: pod_set.constraint for pod_set in group.pod_sets}
    any_of_them = members[0].own[0].shape

    def pod_set(name: str, requests: Resources) -> PodSet:
        shape = shapes[name].shape if name in shapes else any_of_them
        constraint = stated.get(name, Constraint())
        return PodSet(name, kept.count(name), replace(shape, requests=requests), constraint)

    sets = tuple(pod_set(name, requests) for name, requests in sorted(kept.held.requests))
    names = {own.name for own in sets}
    within = ((level, tuple(name for name in tied if name in names)) for level, tied in group.within)
    return replace(group, pod_sets=sets, within=tuple((level, tied) for level, tied in within if tied))
