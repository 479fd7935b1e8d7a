"""Tests which reservations conflict, by the rules of both ledgers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.ledger.conflicts import Blocked, RecordedReservation, judge
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation

HELD = Reservation(
    id="a",
    gang="a",
    topology="t",
    level="rack",
    domain=("z", "r1"),
    mode="domain",
    domains=(("z", "r1"),),
    nodes=frozenset({"n1", "n2"}),
    assignments=(Assignment("w", "n1", 1),),
    requests=(("w", {"cpu": 1}),),
    fingerprint="f",
)
"""A gang that holds rack r1 of zone z."""
PART = replace(HELD, mode="nodes", domains=(), nodes=frozenset(), domain=("z", "r1", "n1"))
"""A gang that uses a part of n1."""


def other(reservation: Reservation, **changes: object) -> Reservation:
    """The reservation of another gang."""
    return replace(reservation, id="b", gang="b", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "blocked"),
    [
        (other(HELD), True),
        (other(HELD, domains=(("z",),), domain=("z",), nodes=frozenset({"n9"})), True),
        (other(HELD, domains=(("z", "r1", "n2"),), domain=("z", "r1", "n2")), True),
        (other(HELD, domains=(("z", "r10"),), domain=("z", "r10"), nodes=frozenset({"n9"}),
               assignments=(Assignment("w", "n9", 1),)), False),
        (other(HELD, topology="u", domains=(("y", "q"),), domain=("y", "q")), True),
        (other(PART), True),
        (other(PART, domain=("z", "r2", "n3"), assignments=(Assignment("w", "n3", 1),)), False),
    ],
    ids=["same rack", "the zone around", "a host within", "a name that begins alike", "same node",
         "a part of a held node", "elsewhere"],
)  # fmt: skip
def test_a_held_domain_has_one_holder(wanted: Reservation, blocked: bool) -> None:
    """In either order."""
    assert isinstance(judge(wanted, 9, [RecordedReservation(HELD, 1)]), Blocked) is blocked
    assert isinstance(judge(HELD, 9, [RecordedReservation(wanted, 1)]), Blocked) is blocked


def test_two_parts_of_a_node_live_together_if_the_plan_knew_of_the_first() -> None:
    """A reservation that came later was not counted."""
    assert judge(other(PART), 5, [RecordedReservation(PART, 5)]) == other(PART)
    assert judge(other(PART), 4, [RecordedReservation(PART, 5)]) == Blocked("a")


def test_the_first_by_name_is_told() -> None:
    """Every replica gives the same answer."""
    book = [RecordedReservation(replace(HELD, id=name, gang=name), 1) for name in ("z", "c")]
    assert judge(other(HELD), 9, book) == Blocked("c")


def test_asked_again_the_gang_keeps_its_place() -> None:
    """A plan that says the same changes nothing; one that did not know of it is made again."""
    moved = replace(HELD, domains=(("z", "r2"),))
    assert judge(moved, 4, [RecordedReservation(HELD, 5)]) == Blocked("a")
    assert judge(HELD, 4, [RecordedReservation(HELD, 5)]) == RecordedReservation(HELD, 5)
    assert judge(HELD, 5, [RecordedReservation(HELD, 5)]) == RecordedReservation(HELD, 5)


def test_a_plan_that_knew_the_former_place_moves_the_gang_with_its_owner() -> None:
    """It is still claimed by the same workload."""
    claimed = replace(HELD, state="claimed", owner_uid="u")
    moved = judge(replace(HELD, domains=(("z", "r2"),), expires=9.0), 5, [RecordedReservation(claimed, 5)])
    assert moved == replace(claimed, domains=(("z", "r2"),))


def test_another_request_under_the_same_name_replaces_it() -> None:
    """It is not its own obstacle."""
    wanted = replace(HELD, fingerprint="g")
    assert judge(wanted, 0, [RecordedReservation(HELD, 5)]) == wanted
