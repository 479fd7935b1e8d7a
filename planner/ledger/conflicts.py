"""Which reservations cannot exist together. Pure; every ledger uses it.

A reservation conflicts with any other gang's live reservation that
- holds a domain of the same topology that equals, contains or lies in one of its own (domains are paths, so
  one is a prefix of the other), or has its whole placement in one of its domains;
- shares a node, by name and in any topology, where either of the two holds that node whole;
- shares a node that both only use (mode `nodes`) and takes, with all else that the plan has not counted
  there, more than the plan leaves free. Counted is what was in the book before, and what the same replica was
  about to reserve; of a reservation that takes more than was counted, the difference is not counted.

What a plan leaves free on its nodes is its `Headroom`. A node is missing there where amounts alone do not say
whether pods fit (NUMA zones, parts of GPUs, claimed devices), and so is a resource that the node does not
have: what came since is in the way then, and the gang is planned again. So are pods with anti-affinity, and
beside such pods another request under a name that was counted. Less than nothing is free where the plan
relies on a place that others, who were counted too, have filled since it was proposed: they are in the way.

    node dgx-1 has 8 GPUs; ours was planned on revision 5 and takes 1, so it leaves {"nvidia.com/gpu": 7}
    since revision 5 three gangs came to dgx-1, of 2, 2 and 3 GPUs:   7 <= 7, all live side by side
    since revision 5 a fourth came, of 1 GPU:                         8 >  7, the newer ones are in the way

A reservation of the same id, fingerprint and place is kept. At another place it is replaced if the plan knew
it: its place is then no longer valid (for example, a node is gone), and the new one is claimed if the former
was. If the plan did not know it, it is in the way: the gang is planned again, and its answer names the place
that it holds. One of the same id with another fingerprint is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner.cluster.usage.occupancy import used_by
from planner.model.reservation import Reservation
from planner.model.resources import Resources
from planner.model.topology import Domain, contains


@dataclass(frozen=True, slots=True)
class Counted:
    """A reservation that a plan has counted on a node: the fingerprint of its request, and what it takes."""

    fingerprint: str
    uses: Resources


NOT_COUNTED = Counted("", {})


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What a plan leaves free on a node, by resource in base units. `counted`: the other reservations there
    that the plan knew of, by id, also where they came into the book later than its revision."""

    free: Resources
    counted: Mapping[str, Counted]


Headroom = Mapping[str, NodeRoom]
"""By node name what a planned reservation leaves free there."""

NO_HEADROOM: Headroom = {}
"""Nothing is known to be free: every newer user of a node is in the way."""


@dataclass(frozen=True, slots=True)
class RecordedReservation:
    """A reservation in the book, and the revision at which it was added or last moved."""

    reservation: Reservation
    since: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A reservation that is asked for, the revision that it was planned on, and what its plan leaves free."""

    reservation: Reservation
    planned_on: int
    headroom: Headroom = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blocked:
    """A reservation conflicts; `holder` is the first gang by name, or the gang itself at another place."""

    holder: str


def judge(
    wanted: Reservation,
    planned_on: int,
    book: Iterable[RecordedReservation],
    headroom: Headroom = NO_HEADROOM,
) -> Reservation | RecordedReservation | Blocked:
    """The result of a request for a reservation, given the live ones.

    A `Reservation` is to be stored (`wanted`, with its owner if the gang moves). A `RecordedReservation` is
    in the book already and is kept. `book` may omit reservations that neither conflict nor have the same id.
    """
    listed = tuple(book)
    former = next((kept for kept in listed if kept.reservation.id == wanted.id), None)
    if former is not None and former.reservation.fingerprint == wanted.fingerprint:
        if placement(former.reservation) == placement(wanted):
            return former
        if former.since > planned_on:
            return Blocked(former.reservation.gang)
        wanted = moved(former.reservation, wanted)
    holder = in_the_way(wanted, planned_on, listed, headroom)
    return wanted if holder is None else Blocked(holder)


def in_the_way(
    wanted: Reservation,
    planned_on: int,
    book: Iterable[RecordedReservation],
    headroom: Headroom = NO_HEADROOM,
) -> str | None:
    """The name of a gang that holds what `wanted` would take, the first by name; None where it is free."""
    touched = wanted.touched
    blocking: list[str] = []
    beside: list[tuple[Reservation, bool]] = []
    for recorded in book:
        other = recorded.reservation
        if other.id == wanted.id:
            continue
        if _excludes(wanted, touched, other):
            blocking.append(other.gang)
        elif not touched.isdisjoint(other.touched):
            beside.append((other, recorded.since > planned_on))
    return min([*blocking, *_crowding(wanted, touched, beside, headroom)], default=None)


def _excludes(wanted: Reservation, touched: frozenset[str], other: Reservation) -> bool:
    """Whether one of the two holds whole what the other holds or uses."""
    if wanted.topology == other.topology and (
        any(_meet(domain, other_domain) for domain in wanted.domains for other_domain in other.domains)
        or any(contains(domain, other.domain) for domain in wanted.domains)
        or any(contains(other_domain, wanted.domain) for other_domain in other.domains)
    ):
        return True
    return "domain" in (wanted.mode, other.mode) and not touched.isdisjoint(other.touched)


def _crowding(
    wanted: Reservation,
    touched: frozenset[str],
    beside: Iterable[tuple[Reservation, bool]],
    headroom: Headroom,
) -> list[str]:
    """The gangs on nodes where what the plan has not counted takes more than `wanted` leaves free.

    `beside`: other reservations, and whether they came after the plan. Older ones are looked at too: the plan
    may have counted another state of theirs, which was in flight then and never came into the book.
    """
    guarded, own = _keeps_apart(wanted), used_by(wanted)
    taken: dict[str, dict[str, int]] = {}
    users: dict[str, list[str]] = {}
    crowded: set[str] = set()
    for other, newer in beside:
        for node, amounts in used_by(other).items():
            if node not in touched:
                continue
            room = headroom.get(node)
            if room is None and not newer:
                continue
            apart = guarded or _keeps_apart(other)
            counted = room.counted.get(other.id, NOT_COUNTED) if room is not None else NOT_COUNTED
            uncounted = _beyond(amounts, counted.uses)
            full = room is not None and any(room.free.get(resource, 0) < 0 for resource in own.get(node, ()))
            if not uncounted and not full and not (apart and other.fingerprint != counted.fingerprint):
                continue
            users.setdefault(node, []).append(other.gang)
            total = taken.setdefault(node, {})
            for resource, amount in uncounted.items():
                total[resource] = total.get(resource, 0) + amount
            if room is None or full or apart or not _within(total, room.free):
                crowded.add(node)
    return [gang for node in crowded for gang in users[node]]


def _beyond(amounts: Resources, counted: Resources) -> dict[str, int]:
    """What is taken beyond what was counted."""
    return {
        resource: amount - counted.get(resource, 0)
        for resource, amount in amounts.items()
        if amount > counted.get(resource, 0)
    }


def _keeps_apart(reservation: Reservation) -> bool:
    """Whether pods of it have required anti-affinity: then amounts alone do not say that they fit."""
    return any(traits.terms for _, traits in reservation.traits)


def _within(taken: Resources, free: Resources) -> bool:
    return all(amount <= free.get(resource, 0) for resource, amount in taken.items() if amount)


def _meet(domain: Domain, other_domain: Domain) -> bool:
    return contains(domain, other_domain) or contains(other_domain, domain)


def placement(reservation: Reservation) -> tuple[object, ...]:
    """The parts of a reservation that say where the gang is: without times and derived node lists."""
    return (
        reservation.topology,
        reservation.mode,
        frozenset(reservation.domains),
        frozenset(reservation.assignments),
    )


def moved(former: Reservation, wanted: Reservation) -> Reservation:
    """The reservation at its new place, with the former owner if there was one."""
    if former.state != "claimed":
        return wanted
    return replace(wanted, state=former.state, expires=former.expires, owner_uid=former.owner_uid)
