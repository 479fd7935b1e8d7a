"""Kueue's assignments are reserved, moved and released with Kueue; nothing is taken away from others for
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation, reservation_id
from planner.planning.plan import plan
from tests.builders import gang, racks
from tests.webhook.kube.kueue_worlds import assigned, bound, seats
from tests.webhook.kube.worlds import booked, pod, with_book, work, world
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Action, Adopt, LetIn, NotAdopted, Release
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.kueue_places import KueuePlace

JOB = gang(2, name="default/Job/a", required="rack")
OTHER = gang(2, name="default/Job/b", required="rack")


def steps(snapshot: Snapshot, *places: KueuePlace, **fields: Any) -> list[Action]:
    """What the controller does where Kueue has assigned these."""
    seen = world(snapshot, **fields)
    return reconcile(replace(seen, kueue={place.gang: place for place in places}))


def after(snapshot: Snapshot, actions: list[Action]) -> Snapshot:
    """The snapshot with what is adopted in the book, and claimed; and without what is released."""
    for action in actions:
        if isinstance(action, Adopt):
            taken = action.reservation
            if taken.state != "claimed":
                taken = replace(taken, state="claimed", owner_uid=action.place.ref.uid)
            snapshot = snapshot.with_reservation(taken)
        elif isinstance(action, Release):
            snapshot = snapshot.without(action.reservation.gang)
    return snapshot


def adopted(snapshot: Snapshot, *places: KueuePlace, **fields: Any) -> Snapshot:
    """After one round."""
    return after(snapshot, steps(snapshot, *places, **fields))


def test_an_assignment_is_held_before_any_pod_is_bound() -> None:
    """The next gang is placed elsewhere; before, it could get the same nodes for a second or two."""
    place = assigned("w", {"r1-n1": 1, "r1-n2": 1}, owner="a")
    snapshot = adopted(racks(2, 2), place)
    assert seats(snapshot, place.gang) == {"r1-n1": 1, "r1-n2": 1}
    assert plan(racks(2, 2), OTHER).domain == ("r1",)
    assert plan(snapshot, OTHER).domain == ("r2",)


class Walked(tuple[Unbound, ...]):
    """Pods that count how often all of them are read."""

    walks = 0

    def __iter__(self) -> Iterator[Unbound]:
        self.walks += 1
        return super().__iter__()


def test_a_round_reads_the_unbound_pods_no_more_often_for_many_abandoned_groups_than_for_one() -> None:
    """The UIDs of all pods were collected again for each of them."""

    def walks(groups: int) -> int:
        places = [assigned(f"w{n}", {f"r1-n{n + 1}": 1}) for n in range(groups)]
        snapshot = adopted(racks(1, groups), *places)
        pods = Walked(pod(f"p-{n}") for n in range(5))
        released = steps(snapshot, *(replace(place, waits_for_pods=True) for place in places), pods=pods)
        assert [type(step) for step in released] == [Release] * groups
        return pods.walks

    assert walks(1) == walks(20)


def test_what_is_adopted_stays_as_it_is_in_the_next_round() -> None:
    """A cordoned or unready node does not change it, because Kueue replaces nodes."""
    place = assigned("w", {"r1-n1": 1, "r1-n2": 1})
    snapshot = adopted(racks(2, 2), place)
    assert steps(snapshot, place) == []
    cordoned = snapshot.with_node(replace(snapshot.nodes["r1-n1"], cordoned=True, ready=False))
    assert steps(cordoned, place) == []


def test_pods_that_are_bound_take_the_seats_that_are_held_for_them() -> None:
    """Pods name their Workload, so nothing is counted twice."""
    place = assigned("w", {"r1-n1": 1, "r1-n2": 1})
    snapshot = adopted(racks(2, 2), place)
    full = snapshot.with_pod(bound(place, "r1-n1")).with_pod(bound(place, "r1-n2", 1))
    assert full.taken == snapshot.taken
    assert steps(full, place) == []


def test_a_workload_whose_pods_are_bound_already_is_adopted_around_them() -> None:
    """When Bayplan is installed later, the pods do not conflict with their own Workload."""
    place = assigned("w", {"r1-n1": 1, "r1-n2": 1})
    running = racks(2, 2).with_pod(bound(place, "r1-n1")).with_pod(bound(place, "r1-n2", 1))
    snapshot = adopted(running, place)
    assert seats(snapshot, place.gang) == {"r1-n1": 1, "r1-n2": 1}
    assert snapshot.taken == running.taken


def test_the_hold_ends_with_the_assignment() -> None:
    """While the state of Kueue is unknown, nothing is released."""
    place = assigned("w", {"r1-n1": 1})
    snapshot = adopted(racks(1, 2), place)
    (released,) = steps(snapshot)
    assert isinstance(released, Release)
    assert released.reservation.gang == place.gang
    assert reconcile(world(snapshot)) == []


def test_a_group_whose_pods_failed_holds_nothing_until_somebody_makes_others() -> None:
    """Kueue v0.19.2 admitted a group again that it had just preempted, and waited for pods that nobody made.

    What counts is the group as a whole: while one of its pods is on a node, or waits for one, all is held.
    """
    place = assigned("w", {"r1-n1": 2}, gpu=4, owner="w-0")
    failed = replace(place, waits_for_pods=True)
    snapshot = adopted(racks(1, 2), place)
    (released,) = steps(snapshot, failed)
    assert isinstance(released, Release)
    assert released.why == "its pods have ended, and nobody has made those that Kueue waits for"
    empty = after(snapshot, [released])
    assert steps(empty, failed) == []
    (again,) = steps(empty, failed, pods=(pod("w-0", gated=False),))
    assert isinstance(again, Adopt)
    assert seats(after(empty, [again]), place.gang) == {"r1-n1": 2}
    stands = snapshot.with_pod(bound(place, "r1-n1", gpu=4))
    assert steps(stands, failed) == []


def test_the_hold_moves_with_the_assignment() -> None:
    """Kueue replaced a node; the reservation changes in one write."""
    snapshot = adopted(racks(1, 3), assigned("w", {"r1-n1": 1, "r1-n2": 1}))
    moved = assigned("w", {"r1-n1": 1, "r1-n3": 1})
    (step,) = steps(snapshot, moved)
    assert isinstance(step, Adopt)
    before = snapshot.holding(moved.gang)
    assert before is not None
    assert (step.reservation.id, step.reservation.owner_uid) == (before.id, before.owner_uid)
    assert seats(after(snapshot, [step]), moved.gang) == {"r1-n1": 1, "r1-n3": 1}


def test_a_gang_that_holds_a_place_moves_to_where_kueue_puts_it() -> None:
    """Its own reservation moves in one write, and nothing replans it afterwards."""
    snapshot = booked(racks(2, 2), JOB)
    place = assigned("w", {"r2-n1": 1, "r2-n2": 1}, owner="a")
    jobs = (work(JOB),)
    (step,) = steps(snapshot, place, works=jobs)
    assert isinstance(step, Adopt)
    assert (step.reservation.gang, step.reservation.mode) == ("default/Job/a", "nodes")
    state = after(snapshot, [step])
    assert seats(state, "default/Job/a") == {"r2-n1": 1, "r2-n2": 1}
    assert state.holding(place.gang) is None
    assert plan(state, OTHER).domain == ("r1",)
    assert steps(state, place, works=jobs) == []
    gone = state.with_node(replace(state.nodes["r2-n1"], ready=False))
    assert steps(gone, place, works=jobs) == []


def test_pods_at_our_gate_are_let_in_without_a_pin_where_kueue_places_them() -> None:
    """A pin would contradict the node that Kueue writes onto each pod."""
    place = assigned("w", {"r2-n1": 1, "r2-n2": 1}, owner="a")
    pods = (pod("a-0", "a"), pod("a-1", "a"))
    (first, let_in) = steps(booked(racks(2, 2), JOB), place, works=(work(JOB),), pods=pods)
    assert isinstance(first, Adopt)
    assert isinstance(let_in, LetIn)
    assert (let_in.pins, len(let_in.pods)) == (False, 2)
    assert let_in.reservation is not None
    assert let_in.reservation.gang == "default/Job/a"


def test_a_gang_in_our_queue_that_kueue_places_leaves_the_queue() -> None:
    """It is reserved under the name of its Workload, where Kueue assigned it."""
    place = assigned("w", {"r2-n1": 1, "r2-n2": 1}, owner="a")
    actions = steps(racks(2, 2), place, works=(work(JOB, queued=True),), pods=(pod("a-0", "a"),))
    assert [type(action) for action in actions] == [Adopt, LetIn]
    assert isinstance(actions[1], LetIn)
    assert (actions[1].reservation, actions[1].pins) == (None, False)
    assert seats(after(racks(2, 2), actions), place.gang) == {"r2-n1": 1, "r2-n2": 1}


def test_what_another_gang_holds_is_not_taken_and_is_told() -> None:
    """The event names pods, node and gang; free nodes are reserved."""
    snapshot = booked(racks(2, 2), JOB)
    place = assigned("w", {"r1-n2": 1, "r2-n1": 1}, owner="w")
    adopt, not_adopted = steps(snapshot, place, works=(work(JOB),))
    assert isinstance(adopt, Adopt)
    assert isinstance(not_adopted, NotAdopted)
    assert not_adopted.why == "1 pod on r1-n2, which default/Job/a holds"
    assert not_adopted.tell.key == "default/Job/w"
    state = after(snapshot, [adopt])
    assert seats(state, place.gang) == {"r2-n1": 1}
    assert state.holding("default/Job/a") == snapshot.holding("default/Job/a")
    (again,) = steps(state, place, works=(work(JOB),))
    assert again == not_adopted
    freed = state.without("default/Job/a")
    assert seats(adopted(freed, place), place.gang) == {"r1-n2": 1, "r2-n1": 1}


def test_a_node_that_gangs_use_in_part_is_shared_as_far_as_there_is_room() -> None:
    """Six of its eight GPUs are reserved by another gang."""
    part = gang(1, name="default/Job/a", gpu=6, reserve="nodes")
    snapshot = booked(racks(1, 1), part)
    small, large = assigned("s", {"r1-n1": 2}, gpu=1), assigned("l", {"r1-n1": 3}, gpu=1)
    assert seats(adopted(snapshot, small), small.gang) == {"r1-n1": 2}
    adopt, not_adopted = steps(snapshot, large)
    assert isinstance(not_adopted, NotAdopted)
    assert not_adopted.why == "1 pod on r1-n1, where default/Job/a has its place"
    assert seats(after(snapshot, [adopt]), large.gang) == {"r1-n1": 2}


def test_an_assigned_node_that_is_gone_is_reported() -> None:
    """Until Kueue replaces the node."""
    adopt, not_adopted = steps(racks(1, 1), assigned("w", {"r1-n1": 1, "r9-n9": 1}))
    assert isinstance(adopt, Adopt)
    assert isinstance(not_adopted, NotAdopted)
    assert not_adopted.why == "1 pod in r9-n9, which no node is"


def test_a_rack_is_filled_where_there_is_room_and_then_followed() -> None:
    """A Kueue Topology that ends at racks leaves the choice of nodes to the scheduler."""
    place = assigned("w", {"r1": 2}, level="rack")
    busy = booked(racks(1, 3), gang(1, name="default/Job/a", gpu=8, reserve="nodes"))
    (taken,) = (seat.node for held in busy.reservations for seat in held.assignments)
    free = sorted({"r1-n1", "r1-n2", "r1-n3"} - {taken})
    snapshot = adopted(busy, place)
    assert seats(snapshot, place.gang) == dict.fromkeys(free, 1)
    assert steps(snapshot, place) == []
    roomy = adopted(racks(1, 3), place)
    left = next(iter({"r1-n1", "r1-n2", "r1-n3"} - seats(roomy, place.gang).keys()))
    with_stray = roomy.with_pod(bound(place, left))
    followed = adopted(with_stray, place)
    assert left in seats(followed, place.gang)
    assert followed.taken_on(left)["nvidia.com/gpu"] == 8
    assert sum(seats(followed, place.gang).values()) == 2


def test_pods_that_have_succeeded_need_no_seat() -> None:
    """Kueue gives their share to others; running pods keep theirs."""
    place = assigned(
        "w", {"r1-n1": 1, "r1-n2": 1}, status={"reclaimablePods": [{"name": "main", "count": 1}]}
    )
    snapshot = racks(1, 2).with_pod(bound(place, "r1-n1"))
    assert seats(adopted(snapshot, place), place.gang) == {"r1-n1": 1}


def test_a_namespace_that_is_not_enforced_holds_nothing() -> None:
    """Also not for a Workload that Kueue has placed."""
    seen = replace(world(racks(1, 1)), observed=frozenset({"default"}))
    place = assigned("w", {"r1-n1": 1})
    assert reconcile(replace(seen, kueue={place.gang: place})) == []


def test_replicas_that_hold_places_of_their_own_give_them_up_where_one_workload_has_all() -> None:
    """Kueue does not state which replica goes where, so the Workload is reserved as a whole."""
    replicas = [gang(1, name=f"default/Job/a/{number}", reserve="nodes") for number in range(2)]
    snapshot = booked(racks(1, 4), *replicas)
    job = replace(work(replicas[0]), gangs=tuple(replicas))
    place = assigned("w", {"r1-n3": 1, "r1-n4": 1}, owner="a")
    released = steps(snapshot, place, works=(job,))
    assert [type(action) for action in released] == [Release, Release]
    free = after(snapshot, released)
    state = adopted(free, place, works=(job,))
    assert seats(state, place.gang) == {"r1-n3": 1, "r1-n4": 1}


def test_a_kueue_place_is_never_fenced_by_taint() -> None:
    """Kueue looks at the taints that a Workload tolerates, before our tolerations come: case 10. A rack that
    was held whole, and so fenced, is held by nodes once Kueue has put the gang there."""
    snapshot = booked(racks(2, 2), JOB)
    place = assigned("w", {"r1-n1": 1, "r1-n2": 1}, owner="a")
    assert snapshot.holders
    state = adopted(snapshot, place, works=(work(JOB),))
    assert state.holders == {}
    assert seats(state, "default/Job/a") == {"r1-n1": 1, "r1-n2": 1}


def test_a_reservation_of_a_workload_that_was_recreated_follows_it() -> None:
    """The id is made from the name."""
    place = assigned("w", {"r1-n1": 1})
    snapshot = adopted(racks(1, 2), place)
    held: Reservation = snapshot.reservations[0]
    assert held.id == reservation_id("default/KueueWorkload/w")
    again = with_book(racks(1, 2), held)
    assert steps(again, replace(place, ref=replace(place.ref, uid="uid-later"))) == []


def test_a_workload_whose_gang_has_come_to_hold_a_place_is_held_once() -> None:
    """The gang's reservation moves, and the one under the Workload's name is released."""
    place = assigned("w", {"r2-n1": 1, "r2-n2": 1}, owner="a")
    doubled = booked(adopted(racks(2, 2), place), JOB)
    released, moved = steps(doubled, place, works=(work(JOB),))
    assert isinstance(released, Release)
    assert released.reservation.gang == place.gang
    assert isinstance(moved, Adopt)
    state = after(doubled, [released, moved])
    assert [held.gang for held in state.reservations] == ["default/Job/a"]
    assert seats(state, "default/Job/a") == {"r2-n1": 1, "r2-n2": 1}


def test_a_copied_id_does_not_give_another_namespaces_place_to_a_workload() -> None:
    """Anybody may write the annotation onto their own pods."""
    other = replace(JOB, name="other/Job/a")
    place = assigned("w", {"r2-n1": 1})
    pods = f"{reservation_id(place.gang)},{reservation_id(other.name)}"
    snapshot = booked(racks(2, 2), other).with_pod(replace(bound(place, "r2-n1"), reservation=pods))
    (step,) = steps(snapshot, place)
    assert isinstance(step, Adopt)
    assert step.reservation.gang == place.gang


def test_a_workload_that_names_an_owner_of_another_namespace_moves_nothing_there() -> None:
    """The API server stores any UID as an owner's."""
    other = replace(JOB, name="other/Job/a")
    job = replace(work(other), ref=replace(work(other).ref, namespace="other"))
    place = assigned("w", {"r2-n1": 1, "r2-n2": 1}, owner="a")
    (step,) = steps(booked(racks(2, 2), other), place, works=(job,))
    assert isinstance(step, Adopt)
    assert step.reservation.gang == place.gang
