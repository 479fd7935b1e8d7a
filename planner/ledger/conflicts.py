"""Decides which reservations cannot exist together. Pure; every ledger uses it.

A wanted reservation conflicts with the live reservation of another gang if
- in one topology, a domain that one of them holds equals, contains or lies in a domain that the other holds
  (one path is a prefix of the other), or contains the whole placement of the other;
- they share a node, by name and in any topology, and one of them holds whole domains (mode `domain`);
- both only use the shared node (mode `nodes`), and uncounted reservations take more there than the plan of
  the wanted one leaves free. A plan counts the reservations that were in the book when it was made, and those
  that the same replica was about to write. If a counted reservation takes more than was counted, the
  difference is uncounted.

The `Headroom` of a plan contains what it leaves free on its nodes. Exceptions to the comparison of amounts:
- The headroom has no entry for a node if amounts alone do not determine whether pods fit (NUMA zones, parts
  of GPUs, claimed devices): every reservation that came to the node after the plan conflicts. A resource
  without an entry is not free.
- If pods of one of the two have required anti-affinity, the other reservation conflicts unless it was counted
  with the same request (fingerprint) and amounts.
- If the free amount of a resource that the wanted reservation takes is negative, counted reservations have
  overfilled the node: all reservations on the node conflict.
After a conflict, the gang is planned again.

    node dgx-1 has 8 GPUs; the wanted reservation takes 1: its plan on revision 5 leaves {"nvidia.com/gpu": 7}
    since revision 5 three gangs came to dgx-1, of 2, 2 and 3 GPUs:   7 <= 7, no conflict
    since revision 5 a fourth came, of 1 GPU:                         8 >  7, all four conflict

A former reservation of the same gang (same id):
- same fingerprint and place: the former one is kept;
- same fingerprint, another place, and in the book when the gang was planned: it is replaced, because its
  place is not valid any more (for example, a node is gone). The new one is claimed if the former one was;
- same fingerprint, another place, and newer than the plan: it conflicts. The gang is planned again, and the
  answer names the place that it holds;
- another fingerprint: it is replaced.
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
    """A reservation that a plan has counted on a node: its fingerprint, and the amounts it takes there."""

    fingerprint: str
    uses: Resources


NOT_COUNTED = Counted("", {})
"""For a reservation that the plan has not counted."""


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """The amounts that a plan leaves free on a node, by resource in base units.

    `counted`: by id, the other reservations on the node that the plan has counted, even if they were written
    into the book after the plan's revision."""

    free: Resources
    counted: Mapping[str, Counted]


Headroom = Mapping[str, NodeRoom]
"""By node name, what the plan of a reservation leaves free there."""

NO_HEADROOM: Headroom = {}
"""The headroom if free amounts are not known: every newer reservation on a shared node conflicts."""


@dataclass(frozen=True, slots=True)
class RecordedReservation:
    """A reservation in the book, and the revision at which it was added or last replaced."""

    reservation: Reservation
    since: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A wanted reservation, the revision of the book on which it was planned, and the plan's headroom."""

    reservation: Reservation
    planned_on: int
    headroom: Headroom = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blocked:
    """The verdict that a wanted reservation conflicts. `holder`: of the gangs that it conflicts with, the
    first by name; or the gang itself, if it holds another place."""

    holder: str


def judge(
    wanted: Reservation,
    planned_on: int,
    book: Iterable[RecordedReservation],
    headroom: Headroom = NO_HEADROOM,
) -> Reservation | RecordedReservation | Blocked:
    """Returns the verdict on a wanted reservation, given the live reservations in `book`.

    A `Reservation` is to be stored: `wanted`, with the owner of the claimed reservation that it replaces, if
    any. A `RecordedReservation` is in the book already and is kept. `Blocked`: `wanted` conflicts. `book` may
    omit reservations that neither conflict with `wanted` nor have its id.
    """
    listed = tuple(book)
    former = next((kept for kept in listed if kept.reservation.id == wanted.id), None)
    if former is not None and former.reservation.fingerprint == wanted.fingerprint:
        if placement(former.reservation) == placement(wanted):
            return former
        if former.since > planned_on:
            return Blocked(former.reservation.gang)
        wanted = with_former_owner(former.reservation, wanted)
    holder = in_the_way(wanted, planned_on, listed, headroom)
    return wanted if holder is None else Blocked(holder)


def in_the_way(
    wanted: Reservation,
    planned_on: int,
    book: Iterable[RecordedReservation],
    headroom: Headroom = NO_HEADROOM,
) -> str | None:
    """Returns the first gang by name with which `wanted` conflicts; None if there is no conflict."""
    touched = wanted.touched
    blocking: list[str] = []
    on_shared_nodes: list[tuple[Reservation, bool]] = []
    for recorded in book:
        other = recorded.reservation
        if other.id == wanted.id:
            continue
        if _excludes(wanted, touched, other):
            blocking.append(other.gang)
        elif not touched.isdisjoint(other.touched):
            on_shared_nodes.append((other, recorded.since > planned_on))
    return min([*blocking, *_crowding(wanted, touched, on_shared_nodes, headroom)], default=None)


def _excludes(wanted: Reservation, touched: frozenset[str], other: Reservation) -> bool:
    """Reports whether one of the reservations holds a domain or node whole that the other holds or uses."""
    if wanted.topology == other.topology and (
        any(_overlap(domain, other_domain) for domain in wanted.domains for other_domain in other.domains)
        or any(contains(domain, other.domain) for domain in wanted.domains)
        or any(contains(other_domain, wanted.domain) for other_domain in other.domains)
    ):
        return True
    return "domain" in (wanted.mode, other.mode) and not touched.isdisjoint(other.touched)


def _crowding(
    wanted: Reservation,
    touched: frozenset[str],
    on_shared_nodes: Iterable[tuple[Reservation, bool]],
    headroom: Headroom,
) -> list[str]:
    """Returns the gangs on nodes where uncounted reservations take more than the plan of `wanted` leaves
    free.

    `on_shared_nodes`: the other reservations on shared nodes, and whether each came after the plan. Older
    ones are compared too: the plan may have counted, instead of a reservation in the book, its replacement,
    which the replica was about to write and never wrote.
    """
    guarded, own = _keeps_apart(wanted), used_by(wanted)
    taken: dict[str, dict[str, int]] = {}
    users: dict[str, list[str]] = {}
    crowded: set[str] = set()
    for other, newer in on_shared_nodes:
        for node, amounts in used_by(other).items():
            if node not in touched:
                continue
            room = headroom.get(node)
            if room is None and not newer:
                continue
            apart = guarded or _keeps_apart(other)
            counted = room.counted.get(other.id, NOT_COUNTED) if room is not None else NOT_COUNTED
            uncounted = _uncounted(amounts, counted.uses)
            full = room is not None and any(room.free.get(resource, 0) < 0 for resource in own.get(node, ()))
            if not uncounted and not full and not (apart and other.fingerprint != counted.fingerprint):
                continue
            users.setdefault(node, []).append(other.gang)
            total = taken.setdefault(node, {})
            for resource, amount in uncounted.items():
                total[resource] = total.get(resource, 0) + amount
            if room is None or full or apart or not _fits(total, room.free):
                crowded.add(node)
    return [gang for node in crowded for gang in users[node]]


def _uncounted(amounts: Resources, counted: Resources) -> dict[str, int]:
    """Returns by resource how much the amounts exceed the counted ones, without zeros."""
    return {
        resource: amount - counted.get(resource, 0)
        for resource, amount in amounts.items()
        if amount > counted.get(resource, 0)
    }


def _keeps_apart(reservation: Reservation) -> bool:
    """Reports whether pods of the reservation have required anti-affinity: amounts alone then do not
    determine whether other pods fit beside them."""
    return any(traits.terms for _, traits in reservation.traits)


def _fits(taken: Resources, free: Resources) -> bool:
    return all(amount <= free.get(resource, 0) for resource, amount in taken.items() if amount)


def _overlap(domain: Domain, other_domain: Domain) -> bool:
    return contains(domain, other_domain) or contains(other_domain, domain)


def placement(reservation: Reservation) -> tuple[object, ...]:
    """Returns the parts of a reservation that say where the gang is: without times and derived node lists."""
    return (
        reservation.topology,
        reservation.mode,
        frozenset(reservation.domains),
        frozenset(reservation.assignments),
    )


def with_former_owner(former: Reservation, wanted: Reservation) -> Reservation:
    """Returns the wanted reservation; if the former is claimed, with the state and owner of the former."""
    if former.state != "claimed":
        return wanted
    return replace(wanted, state=former.state, expires=former.expires, owner_uid=former.owner_uid)
