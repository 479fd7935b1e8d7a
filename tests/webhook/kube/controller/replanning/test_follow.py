"""A reservation follows the bindings of the scheduler: it is updated for pods on other nodes than planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import Pods
from planner.manifests.reservation import reservation_from
from planner.model.errors import Where
from planner.model.labels import Requirement
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup, ReserveMode
from planner.model.reservation import Reservation, reservation_id
from planner.model.topology import HOSTNAME
from planner.node.runtime_class import RuntimeClass, RuntimeClasses
from tests.builders import amounts, gang, racks
from tests.webhook.kube.worlds import booked, pod, work, world
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.replanning.restore import restored
from webhook.kube.controller.steps import Follow, LetIn, MoveTo
from webhook.kube.ledger.documents import proposed

NODE = amounts(gpu=8, pods=1)


def nodes_of(pods: int, *, required: str = "", reserve: ReserveMode = "auto", gpus: int = 8) -> PodGroup:
    """A gang of whole nodes, or of pods with so many GPUs."""
    group = gang(pods, name="default/Job/a", required=required, gpu=gpus, reserve=reserve)
    shape = replace(group.pod_sets[0].shape, requests=amounts(gpu=gpus, pods=1))
    return replace(group, pod_sets=(replace(group.pod_sets[0], shape=shape),))


def standing(snapshot: Snapshot, *nodes: str, gpus: int = 8, of: str = "default/Job/a") -> Snapshot:
    """Pods of the gang are bound to these nodes."""
    pods = (
        BoundPod(f"default/p{n}", node, amounts(gpu=gpus, pods=1), reservation_id(of))
        for n, node in enumerate(nodes)
    )
    return replace(snapshot, pods=tuple(pods))


def on(node: str, group: PodGroup) -> PodGroup:
    """The gang, pinned to a node."""
    (pod_set,) = group.pod_sets
    term = (Requirement(HOSTNAME, "In", (node,)),)
    return replace(group, pod_sets=(replace(pod_set, shape=replace(pod_set.shape, affinity=(term,))),))


def moved(snapshot: Snapshot, *groups: PodGroup, left: frozenset[str] = frozenset()) -> Reservation | None:
    """What the controller makes the gang hold now; None where it leaves the reservation as it is."""
    works = tuple(work(group) for group in groups)
    (own,) = (held for held in snapshot.reservations if held.gang == "default/Job/a")
    if left:
        snapshot = snapshot.with_reservation(replace(own, left_nodes=left))
    (*actions,) = reconcile(world(snapshot, works=works))
    follows = [action for action in actions if isinstance(action, Follow)]
    assert len(follows) == len(actions) < 2
    return follows[0].reservation if follows else None


def seats(held: Reservation | None) -> dict[str, int]:
    """Pods by node."""
    assert held is not None
    return {seat.node: seat.count for seat in held.assignments}


def test_pods_that_stand_where_they_were_planned_move_nothing():
    """Neither the first pod nor all of them."""
    group = nodes_of(2, required="rack")
    assert moved(standing(booked(racks(2, 3), group), "r1-n1", "r1-n2"), group) is None
    assert moved(standing(booked(racks(2, 3), group), "r1-n1"), group) is None


def test_a_pod_that_was_bound_outside_takes_its_seat_along():
    """Its reserved place is released, and what it uses belongs to the gang."""
    group = nodes_of(2, reserve="nodes")
    snapshot = standing(booked(racks(2, 3), group), "r1-n1", "r2-n1")
    held = moved(snapshot, group)
    assert seats(held) == {"r1-n1": 1, "r2-n1": 1}
    assert held is not None
    assert held.touched == {"r1-n1", "r2-n1"}
    former = snapshot.reservations[0]
    assert (held.id, held.fingerprint, held.owner_uid, held.state) == (
        former.id, former.fingerprint, former.owner_uid, "claimed",
    )  # fmt: skip


def of_kata(group: PodGroup, snapshot: Snapshot, *nodes: str) -> tuple[PodGroup, Snapshot]:
    """The gang with a RuntimeClass in its template, and a cluster in which it holds a place;
    bound pods on these nodes have the overhead of the class.
    """
    (own,) = group.pod_sets
    sandboxed = replace(own, shape=replace(own.shape, runtime_class="kata"))
    group = replace(group, pod_sets=(sandboxed,))
    classes = RuntimeClasses({"kata": RuntimeClass("kata", {"cpu": 250})})
    base = replace(snapshot.base, runtime_classes=classes)
    snapshot = booked(snapshot.evolve(base=base, changed_nodes=frozenset()), group)
    pods = standing(snapshot, *nodes).pods
    created = (replace(pod, requests={**pod.requests, "cpu": 250}) for pod in pods)
    return group, replace(snapshot, pods=tuple(created))


def test_pods_of_a_runtime_class_take_their_seats_along():
    """They are recognised with the overhead, which the template lacks."""
    group, snapshot = of_kata(nodes_of(2, reserve="nodes"), racks(2, 3), "r1-n1", "r2-n1")
    assert seats(moved(snapshot, group)) == {"r1-n1": 1, "r2-n1": 1}


def test_a_vanished_place_is_restored_around_pods_of_a_runtime_class():
    """At the nodes where they run."""
    group, snapshot = of_kata(nodes_of(2, reserve="nodes"), racks(2, 3), "r2-n1", "r2-n3")
    outcome = restored(replace(snapshot, reservations=()), group, group)
    assert isinstance(outcome, Reservation)
    assert seats(outcome) == {"r2-n1": 1, "r2-n3": 1}
    assert dict(outcome.requests)["worker"]["cpu"] == 250


def test_a_promise_to_pods_that_are_still_to_come_stays():
    """One of three is bound elsewhere; two places stay reserved where the others are pinned."""
    group = nodes_of(3, reserve="nodes")
    held = moved(standing(booked(racks(2, 3), group), "r2-n3"), group)
    assert seats(held) == {"r1-n1": 1, "r1-n2": 1, "r2-n3": 1}


def test_inside_its_rack_a_gang_is_followed_once_all_of_it_stands():
    """The rack is reserved whole, so the scheduler may choose nodes in it."""
    group = nodes_of(2, required="rack")
    some = standing(booked(racks(2, 3), group), "r1-n3")
    assert moved(some, group) is None
    held = moved(standing(booked(racks(2, 3), group), "r1-n3", "r1-n1"), group)
    assert seats(held) == {"r1-n1": 1, "r1-n3": 1}
    assert held is not None
    assert (held.mode, held.domains) == ("domain", (("r1",),))


def test_a_gang_that_left_its_rack_holds_the_racks_in_which_it_stands():
    """The first rack is free once no pod of the gang is in it."""
    group = nodes_of(2, required="rack")
    held = moved(standing(booked(racks(2, 3), group), "r1-n1", "r2-n1"), group)
    assert held is not None
    assert held.domains == (("r1",), ("r2",))
    held = moved(standing(booked(racks(2, 3), group), "r2-n2", "r2-n1"), group)
    assert held is not None
    assert (held.domain, held.domains) == (("r2",), (("r2",),))


def test_where_others_use_the_rack_a_gang_holds_only_what_it_uses_there():
    """The other pods keep what they use."""
    group, other = nodes_of(2, required="rack"), gang(1, name="default/Job/other", reserve="nodes", gpu=8)
    snapshot = booked(racks(2, 3), group, on("r2-n3", other))
    held = moved(standing(snapshot, "r1-n1", "r2-n1"), group, other)
    assert held is not None
    assert (held.mode, held.domains, held.touched) == ("nodes", (), {"r1-n1", "r2-n1"})


def test_a_node_that_another_gang_holds_whole_is_not_taken_from_it():
    """The pod counts there like any other; the gang's own place stays reserved."""
    group, other = nodes_of(2, required="rack"), gang(2, name="default/Job/other", required="rack")
    snapshot = booked(racks(2, 3), group, other)
    assert moved(standing(snapshot, "r1-n1", "r2-n1"), group, other) is None


def test_pods_on_nodes_that_the_gang_was_moved_off_are_not_followed_back():
    """A pod stays on a relabelled node until it is evicted."""
    group = nodes_of(2, reserve="nodes")
    snapshot = standing(booked(racks(2, 3), group), "r1-n1", "r2-n1")
    assert moved(snapshot, group, left=frozenset({"r2-n1"})) is None


def test_a_node_to_which_the_gang_has_come_back_is_one_of_its_seats():
    """It was moved off this node earlier, and grew there again; its other pod was bound by hand."""
    group = gang(2, name="default/Job/a", reserve="nodes")
    snapshot = standing(booked(racks(1, 3), group), "r1-n2", "r1-n3")
    assert seats(moved(snapshot, group, left=frozenset({"r1-n2"}))) == {"r1-n2": 1, "r1-n3": 1}


def test_a_gang_of_which_no_pod_has_moved_is_followed_back_as_a_whole():
    """A node of its rack was not ready for a minute: all pods still run where they ran."""
    group = nodes_of(2, required="rack")
    held = moved(standing(booked(racks(2, 2), group), "r2-n1", "r2-n2"), group, left=frozenset({"r2-n2"}))
    assert held is not None
    assert (held.domains, seats(held)) == ((("r2",),), {"r2-n1": 1, "r2-n2": 1})


def test_a_gang_of_which_a_pod_has_moved_waits_for_the_others_in_the_new_rack():
    """It is in one rack again once they are replaced."""
    group = nodes_of(2, required="rack")
    snapshot = standing(booked(racks(2, 2), group), "r1-n1", "r2-n2")
    assert moved(snapshot, group, left=frozenset({"r2-n2"})) is None


def after_an_outage(group: PodGroup, *, ready: bool) -> Snapshot:
    """Two racks of two nodes; r1-n1 was not ready, and the gang was moved. `ready`: whether it is by now. The
    reservation is the stored one, which is all that a new leader knows.
    """
    snapshot = booked(racks(2, 2), group)
    down = snapshot.with_node(replace(snapshot.nodes["r1-n1"], ready=False))
    (move,) = reconcile(world(down, works=(work(group),)))
    assert isinstance(move, MoveTo)
    stored = reservation_from(proposed(move.move.reservation), Where())
    return (snapshot if ready else down).with_reservation(stored)


@pytest.mark.parametrize("left", ["r1-n1", "r1-n2"])
def test_a_new_leader_does_not_follow_a_gang_that_another_one_has_moved(left: str):
    """The gang left its rack; one pod is replaced, and the other still runs, on the node that is ready again
    or on the one beside it. Following it would hold two racks for a gang that requires one.
    """
    group = nodes_of(2, required="rack")
    snapshot = after_an_outage(group, ready=True)
    assert moved(standing(snapshot, "r2-n1", left), group) is None
    assert moved(standing(snapshot, "r1-n1", "r1-n2"), group) is not None, "none has gone to the new rack"


def test_a_pod_that_runs_on_after_an_outage_is_followed_back_where_no_level_is_required():
    """Its seat elsewhere is unused, and its node is ready again."""
    group = nodes_of(2, reserve="nodes")
    snapshot = after_an_outage(group, ready=True)
    assert seats(moved(standing(snapshot, "r1-n1", "r1-n2"), group)) == {"r1-n1": 1, "r1-n2": 1}
    assert moved(standing(after_an_outage(group, ready=False), "r1-n1", "r1-n2"), group) is None


def test_a_pod_of_several_gangs_reservations_is_nobodys_to_follow():
    """The template of several replicas names all their reservations, so the pod's own is unknown."""
    group = nodes_of(2, reserve="nodes")
    snapshot = booked(racks(2, 3), group)
    pods = (BoundPod("default/p", "r2-n1", NODE, f"{reservation_id('default/Job/a')},bp-other"),)
    assert moved(replace(snapshot, pods=pods), group) is None


def test_pods_that_share_nodes_swap_seats_between_nodes():
    """Two places on one node and one on another, bound the other way round."""
    group = nodes_of(3, reserve="nodes", gpus=4)
    snapshot = booked(racks(1, 2), group)
    assert seats(snapshot.reservations[0]) == {"r1-n1": 2, "r1-n2": 1}
    held = moved(standing(snapshot, "r1-n1", "r1-n2", "r1-n2", gpus=4), group)
    assert seats(held) == {"r1-n1": 1, "r1-n2": 2}


def test_gated_pods_are_let_in_to_the_seats_that_are_left():
    """The gate opens with what the gang has reserved after its bound pod was followed."""
    group = nodes_of(2, reserve="nodes")
    snapshot = standing(booked(racks(2, 3), group), "r2-n1")
    actions = reconcile(world(snapshot, works=(work(group),), pods=(pod("later", "a"),)))
    follow, let_in = actions
    assert isinstance(follow, Follow)
    assert isinstance(let_in, LetIn)
    assert let_in.reservation == follow.reservation


@pytest.mark.parametrize("reserve", ["nodes", "domain"])
def test_a_pod_of_another_namespace_with_the_gangs_id_is_not_followed(reserve: ReserveMode) -> None:
    """Anybody may write the annotation onto their own pods."""
    group = nodes_of(2, reserve=reserve)
    snapshot = standing(booked(racks(2, 3), group), "r1-n1")
    intruder = BoundPod("intruder/x", "r2-n3", NODE, reservation_id("default/Job/a"))
    assert moved(snapshot.with_pod(intruder), group) is None


def test_a_vanished_place_is_not_restored_around_a_pod_of_another_namespace() -> None:
    """Such a pod does not belong to the gang."""
    group, other = nodes_of(2, reserve="nodes"), BoundPod("intruder/x", "r2-n3", NODE, "")
    copied = replace(other, reservation=reservation_id(group.name))
    places = [restored(racks(2, 3).with_pod(pod), group, group) for pod in (other, copied)]
    assert places[0] == places[1]


def test_a_round_reads_of_all_pods_those_of_its_gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It walks no more often over all pods for many gangs than for one: 4,000 gangs took 6 s."""

    def walks(gangs: int) -> int:
        groups = [replace(nodes_of(1, reserve="nodes"), name=f"default/Job/{n}") for n in range(gangs)]
        snapshot = booked(racks(1, gangs), *groups)
        for group in groups:
            (seat,) = snapshot.reservations[len(snapshot.bound)].assignments
            name = f"default/{len(snapshot.bound)}"
            snapshot = snapshot.with_pod(BoundPod(name, seat.node, NODE, reservation_id(group.name)))
        all_pods, count = Pods.__iter__, 0

        def counted(pods: Pods) -> Iterator[BoundPod]:
            nonlocal count
            count += 1
            return all_pods(pods)

        with monkeypatch.context() as patched:
            patched.setattr(Pods, "__iter__", counted)
            assert reconcile(world(snapshot, works=tuple(map(work, groups)))) == []
        return count

    assert walks(1) == walks(20)
