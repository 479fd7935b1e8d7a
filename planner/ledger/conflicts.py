"""Which reservations cannot live side by side. Pure; every ledger asks here.

In the way of a reservation is any other gang's live reservation that
- holds a domain of the same topology that is one of ours, lies above one or lies in one (a domain is a path,
  so this is a common prefix), or whose whole placement lies in a domain of ours;
- shares a node, by name and whatever the topology, where either of the two holds it whole;
- shares a node that both only use (mode `nodes`), came after the revision that ours was planned on, and
  together with all that came there since takes more than our plan leaves free. What our plan has counted
  (what was in the book before, and what the same replica was about to reserve) is not in the way.

What a plan leaves free on its nodes is its `Headroom`. A node is missing there where amounts alone do not say
whether pods fit (NUMA zones, parts of GPUs, claimed devices), and so is a resource that the node does not
have: what came since is in the way then, and the gang is planned again. So are pods with anti-affinity.

    node dgx-1 has 8 GPUs; ours was planned on revision 5 and takes 1, so it leaves {"nvidia.com/gpu": 7}
    since revision 5 three gangs came to dgx-1, of 2, 2 and 3 GPUs:   7 <= 7, all live side by side
    since revision 5 a fourth came, of 1 GPU:                         8 >  7, the newer ones are in the way

A reservation of the same id and fingerprint stays as it is, unless the plan knew it and yet places the gang
elsewhere: then the former place serves no more (a node went), and the new one replaces it, claimed if that
was. One of the same id with another fingerprint is replaced too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from planner.cluster.occupancy import used_by
from planner.model.quantity import Resources
from planner.model.reservation import Reservation
from planner.model.topology import Domain, contains


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What a plan leaves free on a node, by resource in base units. `counted`: what other reservations take
    there and the plan knew of, by id, also where they came into the book later than its revision."""

    free: Resources
    counted: Mapping[str, Resources]


Headroom = Mapping[str, NodeRoom]
"""By node name what a planned reservation leaves free there."""

NO_HEADROOM: Headroom = {}
"""Nothing is known to be free: every newer user of a node is in the way."""


@dataclass(frozen=True, slots=True)
class RecordedReservation:
    """A reservation in the book, and the revision with which it came (or last moved)."""

    reservation: Reservation
    since: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """Somebody else is in the way; the first by name."""

    holder: str


def judge(
    wanted: Reservation,
    planned_on: int,
    book: Iterable[RecordedReservation],
    headroom: Headroom = NO_HEADROOM,
) -> Reservation | RecordedReservation | Blocked:
    """What becomes of a reservation that is asked for, beside the live ones.

    A `Reservation` is to be taken (it is `wanted`, with its owner where it moves); a `RecordedReservation` is
    in the book already and stays as it is. `book` may leave out what is neither near nor of the same id.
    """
    listed = tuple(book)
    former = next((kept for kept in listed if kept.reservation.id == wanted.id), None)
    if former is not None and former.reservation.fingerprint == wanted.fingerprint:
        known = former.since <= planned_on
        if not known or placement(former.reservation) == placement(wanted):
            return former
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
    newer: list[Reservation] = []
    for recorded in book:
        other = recorded.reservation
        if other.id == wanted.id:
            continue
        if _excludes(wanted, touched, other):
            blocking.append(other.gang)
        elif recorded.since > planned_on and not touched.isdisjoint(other.touched):
            newer.append(other)
    return min([*blocking, *_crowding(wanted, touched, newer, headroom)], default=None)


def _excludes(wanted: Reservation, touched: frozenset[str], other: Reservation) -> bool:
    """Whether one of the two holds whole what the other holds or uses."""
    if wanted.topology == other.topology and (
        any(_meet(ours, theirs) for ours in wanted.domains for theirs in other.domains)
        or any(contains(ours, other.domain) for ours in wanted.domains)
        or any(contains(theirs, wanted.domain) for theirs in other.domains)
    ):
        return True
    return "domain" in (wanted.mode, other.mode) and not touched.isdisjoint(other.touched)


def _crowding(
    wanted: Reservation, touched: frozenset[str], newer: Iterable[Reservation], headroom: Headroom
) -> list[str]:
    """The gangs among `newer` on nodes where these take more than `wanted` leaves free."""
    guarded = _keeps_apart(wanted)
    taken: dict[str, dict[str, int]] = {}
    users: dict[str, list[str]] = {}
    crowded: set[str] = set()
    for other in newer:
        for node, amounts in used_by(other).items():
            if node not in touched:
                continue
            users.setdefault(node, []).append(other.gang)
            room = headroom.get(node)
            if room is None:
                crowded.add(node)
                continue
            counted = room.counted.get(other.id, {})
            total = taken.setdefault(node, {})
            for resource, amount in amounts.items():
                total[resource] = total.get(resource, 0) + max(0, amount - counted.get(resource, 0))
            known = other.id in room.counted
            if ((guarded or _keeps_apart(other)) and not known) or not _within(total, room.free):
                crowded.add(node)
    return [gang for node in crowded for gang in users[node]]


def _keeps_apart(reservation: Reservation) -> bool:
    """Whether pods of it have required anti-affinity: then amounts alone do not say that they fit."""
    return any(traits.terms for _, traits in reservation.traits)


def _within(taken: Resources, free: Resources) -> bool:
    return all(amount <= free.get(resource, 0) for resource, amount in taken.items() if amount)


def _meet(one: Domain, other: Domain) -> bool:
    return contains(one, other) or contains(other, one)


def placement(reservation: Reservation) -> tuple[object, ...]:
    """Where the gang is and what it holds, without the time and the list of nodes in a held domain."""
    return (
        reservation.topology,
        reservation.mode,
        frozenset(reservation.domains),
        frozenset(reservation.assignments),
    )


def moved(former: Reservation, wanted: Reservation) -> Reservation:
    """The same gang elsewhere: still its owner's, where it had one."""
    if former.state != "claimed":
        return wanted
    return replace(wanted, state=former.state, expires=former.expires, owner_uid=former.owner_uid)
