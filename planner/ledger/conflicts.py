"""Which reservations cannot live side by side. Pure; every ledger asks here.

In the way of a reservation is any other gang's live reservation that
- holds a domain of the same topology that is one of ours, lies above one or lies in one (a domain is a path,
  so this is a common prefix), or whose whole placement lies in a domain of ours;
- shares a node, by name and whatever the topology, where either of the two holds it whole;
- shares a node that both only use (mode `nodes`) and came after the revision that ours was planned on: what
  it takes there was not counted. What was there before was, so those two live side by side.

A reservation of the same id and fingerprint stays as it is, unless the plan knew it and yet places the gang
elsewhere: then the former place serves no more (a node went), and the new one replaces it, claimed if that
was. One of the same id with another fingerprint is replaced too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner.model.reservation import Reservation
from planner.model.topology import Domain, contains


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
    wanted: Reservation, planned_on: int, book: Iterable[RecordedReservation]
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
    holder = in_the_way(wanted, planned_on, listed)
    return wanted if holder is None else Blocked(holder)


def in_the_way(wanted: Reservation, planned_on: int, book: Iterable[RecordedReservation]) -> str | None:
    """The name of a gang that holds what `wanted` would take, the first by name; None where it is free."""
    touched = wanted.touched
    gangs = (
        kept.reservation.gang
        for kept in book
        if kept.reservation.id != wanted.id
        and _collide(wanted, touched, kept.reservation, kept.since > planned_on)
    )
    return min(gangs, default=None)


def _collide(wanted: Reservation, touched: frozenset[str], other: Reservation, newer: bool) -> bool:
    if wanted.topology == other.topology and (
        any(_meet(domain, other_domain) for domain in wanted.domains for other_domain in other.domains)
        or any(contains(domain, other.domain) for domain in wanted.domains)
        or any(contains(other_domain, wanted.domain) for other_domain in other.domains)
    ):
        return True
    whole = "domain" in (wanted.mode, other.mode)
    return (whole or newer) and not touched.isdisjoint(other.touched)


def _meet(domain: Domain, other_domain: Domain) -> bool:
    return contains(domain, other_domain) or contains(other_domain, domain)


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
