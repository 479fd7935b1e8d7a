"""Which reservations cannot exist together. Pure; every ledger uses it.

A reservation conflicts with any other gang's live reservation that
- holds a domain of the same topology that equals, contains or lies in one of its own (domains are paths, so
  one is a prefix of the other), or has its whole placement in one of its domains;
- shares a node, by name and in any topology, where either of the two holds that node whole;
- shares a node that both only use (mode `nodes`) and came after the revision that the plan was made on: the
  plan did not count what it takes there. Earlier ones were counted, so those two may exist together.

A reservation of the same id and fingerprint is kept, unless the plan knew it and yet places the gang
elsewhere. The former place is then no longer valid (for example, a node is gone), and the new reservation
replaces it, claimed if the former was. One of the same id with another fingerprint is replaced too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner.model.reservation import Reservation
from planner.model.topology import Domain, contains


@dataclass(frozen=True, slots=True)
class RecordedReservation:
    """A reservation in the book, and the revision at which it was added or last moved."""

    reservation: Reservation
    since: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """Another gang's reservation conflicts; `holder` is the first by name."""

    holder: str


def judge(
    wanted: Reservation, planned_on: int, book: Iterable[RecordedReservation]
) -> Reservation | RecordedReservation | Blocked:
    """The result of a request for a reservation, given the live ones.

    A `Reservation` is to be stored (`wanted`, with its owner if the gang moves). A `RecordedReservation` is
    in the book already and is kept. `book` may omit reservations that neither conflict nor have the same id.
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
    """The first gang by name whose reservation conflicts with `wanted`; None for no conflict."""
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
