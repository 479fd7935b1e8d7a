"""A snapshot takes over the reservations of the ledger and reads only those that changed.

r1: r1-n1 r1-n2    a
r2: r2-n1 r2-n2    b
r3: r3-n1 r3-n2    free
"""

from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Book, Reservation
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, racks


def held(moment: Snapshot, name: str) -> Reservation:
    """The reservation for a gang of two whole nodes in its current place."""
    group = gang(2, name=f"x/Job/{name}")
    return reservation_for(moment, group, plan(moment, group))


@pytest.fixture
def empty() -> Snapshot:
    """Three racks of two nodes."""
    return racks(3, 2)


@pytest.fixture
def a(empty: Snapshot) -> Reservation:
    """The reservation of the first gang."""
    return held(empty, "a")


@pytest.fixture
def b(empty: Snapshot, a: Reservation) -> Reservation:
    """The reservation of the second gang."""
    return held(empty.with_book(Book(1, (a,))), "b")


def test_a_new_reservation_takes_its_nodes(empty, a, b):
    """The reservation that was there keeps its own."""
    moment = empty.with_book(Book(1, (a,))).with_book(Book(2, (a, b)))
    assert moment.holders == {"r1-n1": "x/Job/a", "r1-n2": "x/Job/a", "r2-n1": "x/Job/b", "r2-n2": "x/Job/b"}
    assert (moment.revision, moment.reservations) == (2, (a, b))


def test_a_removed_reservation_frees_its_nodes(empty, a, b):
    """Its rack is free, the other's is not."""
    moment = empty.with_book(Book(1, (a, b))).with_book(Book(2, (b,)))
    assert moment.holders == {"r2-n1": "x/Job/b", "r2-n2": "x/Job/b"}


def test_a_gang_that_moved_holds_its_new_place_alone(empty, a, b):
    """a, planned while b was there and r1 was not free, is in r3."""
    without_first = racks(3, 2).with_book(Book(1, (replace(a, gang="x/Job/other", id="bp-other"), b)))
    moved = held(without_first, "a")
    moment = empty.with_book(Book(1, (a, b))).with_book(Book(2, (moved, b)))
    assert moment.holders == {"r3-n1": "x/Job/a", "r3-n2": "x/Job/a", "r2-n1": "x/Job/b", "r2-n2": "x/Job/b"}


def test_an_equal_reservation_that_was_read_anew_changes_nothing(empty, a):
    """A ledger that reads its reservations anew for each book gives equal ones, not the same."""
    first = empty.with_book(Book(1, (a,)))
    again = first.with_book(Book(2, (replace(a),)))
    assert again.holding("x/Job/a") is a
    assert again.holders == first.holders


def test_reservations_of_the_former_book_are_not_compared_again(empty, a, b, monkeypatch):
    """Thousands are in the book of each decision: those that are the same objects cost one look each."""
    first = empty.with_book(Book(1, (a,)))
    compared = []

    def equal(reservation: Reservation, other: object) -> bool:
        compared.append(reservation.gang)
        return reservation is other

    monkeypatch.setattr(Reservation, "__eq__", equal)
    first.with_book(Book(2, (a, b)))
    assert "x/Job/a" not in compared
