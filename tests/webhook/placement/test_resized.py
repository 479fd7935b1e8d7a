"""A gang that runs asks for other numbers of pods: the seats that it needs on stay where they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.ledger.conflicts import RecordedReservation, in_the_way
from planner.model.podgroup import Assignment, Constraint
from planner.model.reservation import Reservation
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, pod_set, racks, shape
from webhook.placement.resized import resized


def seats_of(reservation: Reservation) -> Counter[tuple[str, str]]:
    """The seats by PodSet and node."""
    return Counter({(seat.pod_set, seat.node): seat.count for seat in reservation.assignments})


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.sampled_from((1, 3, 4, 8)),
    before=st.integers(1, 9),
    after=st.integers(1, 12),
    other=st.integers(0, 5),
    level=st.sampled_from(("", "required", "preferred")),
    reserve=st.sampled_from(("auto", "nodes", "domain")),
)
def test_seats_stay_and_nothing_of_others_is_taken(
    gpus: int, before: int, after: int, other: int, level: str, reserve: str
) -> None:
    """Whatever is beside it, and however it grows or shrinks."""
    constraint = Constraint(**{level: "rack"}) if level else Constraint()
    group = replace(gang(pod_set(before, shape(gpu=gpus)), reserve=reserve), constraint=constraint)
    state = racks(3, 3)
    held = reservation_for(state, group, plan(state, group))
    if held is None:
        return
    state = state.with_reservation(held)
    if other:
        rival = gang(other, name="default/Job/other", reserve="nodes")
        taken = reservation_for(state, rival, plan(state, rival))
        state = state.with_reservation(taken) if taken is not None else state
    wanted = replace(group, pod_sets=(replace(group.pod_sets[0], count=after),))
    outcome = resized(state, wanted, held)
    assert outcome is not None
    if not isinstance(outcome, Reservation):
        assert after > before
        return
    assert sum(seats_of(outcome).values()) == after
    small, large = sorted((seats_of(held), seats_of(outcome)), key=lambda seats: seats.total())
    assert small <= large
    rest = [RecordedReservation(r, 0) for r in state.reservations if r.id != held.id]
    assert in_the_way(outcome, 0, rest) is None
    answer = plan(state.with_reservation(outcome), wanted)
    assert (answer.replayed, answer.assignments) == (True, outcome.assignments)
    if level == "required":
        assert len({seat.node.partition("-")[0] for seat in outcome.assignments}) == 1


def test_the_free_node_of_its_rack_is_used_first() -> None:
    """Both further pods would fit in the next rack, and leave that node idle."""
    group = gang(pod_set(3, shape(gpu=8)), reserve="auto")
    state = racks(2, 4)
    held = reservation_for(state, group, plan(state, group))
    assert held is not None
    wanted = gang(pod_set(5, shape(gpu=8)), reserve="auto")
    outcome = resized(state.with_reservation(held), wanted, held)
    assert isinstance(outcome, Reservation)
    assert {seat.node for seat in outcome.assignments} == {"r1-n1", "r1-n2", "r1-n3", "r1-n4", "r2-n1"}
    assert (outcome.mode, outcome.domains) == ("nodes", ()), "as a new gang of five nodes would hold"


def test_seats_on_nodes_that_have_vanished_move() -> None:
    """As if they were further ones."""
    group = gang(pod_set(3, shape(gpu=8)))
    state = racks(1, 5)
    held = reservation_for(state, group, plan(state, group))
    assert held is not None
    outcome = resized(
        state.with_reservation(held).without_node("r1-n2"), gang(pod_set(4, shape(gpu=8))), held
    )
    assert isinstance(outcome, Reservation)
    assert {seat.node for seat in outcome.assignments} == {"r1-n1", "r1-n3", "r1-n4", "r1-n5"}


def test_a_further_pod_set_gets_seats_beside_those_of_the_others() -> None:
    """A worker group that is added to a RayCluster."""
    first = pod_set(2, shape(gpu=8), name="a")
    state = racks(1, 4)
    held = reservation_for(state, gang(first), plan(state, gang(first)))
    assert held is not None
    grown = gang(first, pod_set(2, shape(gpu=4), name="b"))
    outcome = resized(state.with_reservation(held), grown, held)
    assert isinstance(outcome, Reservation)
    assert Assignment("b", "r1-n3", 2) in outcome.assignments
    assert {name: amounts["nvidia.com/gpu"] for name, amounts in outcome.requests} == {"a": 8, "b": 4}


def test_other_pods_are_no_resized_gang() -> None:
    """They are planned as new ones."""
    group = gang(pod_set(2, shape(gpu=8)))
    state = racks(1, 4)
    held = reservation_for(state, group, plan(state, group))
    assert held is not None
    assert resized(state.with_reservation(held), gang(pod_set(2, shape(gpu=4))), held) is None
