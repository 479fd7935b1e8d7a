"""The decisions of the controller: release, claim, ungate, admit by priority and age, backfill, replan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.manifests.growth import pools_from_text
from planner.model.errors import Where
from planner.model.labels import Requirement
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.reservation import reservation_id
from tests.builders import amounts, gang, of_class, racks, with_classes
from tests.webhook.kube.worlds import NOW, booked, held, pod, waiting, with_book, work, world
from webhook.kube.controller.memory import Memory, alive, claim_of, gangs_without_reservation, unused
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Admit, ClaimFor, LetIn, MoveTo, Release, Restore, Stuck, WaitAction
from webhook.kube.controller.waiting.queue import queue
from webhook.kube.controller.world import World
from webhook.kube.state import gathering
from webhook.kube.state.gangs import Work
from webhook.placement.stamp import PlacementAnnotation


def job(name: str, pods: int = 2, *, required: str = "rack") -> PodGroup:
    """A gang of whole nodes in one rack."""
    return gang(pods, name=f"default/Job/{name}", required=required)


def admitted(actions: list[object]) -> list[str]:
    """The names of the gangs that are let in, in order."""
    return [action.gang.name.split("/")[2] for action in actions if isinstance(action, Admit)]


def positions(actions: list[object]) -> list[tuple[str, int, int]]:
    """Who waits at which position of how many."""
    return [
        (action.gang.name.split("/")[2], action.position, action.of)
        for action in actions
        if isinstance(action, WaitAction)
    ]


def test_a_gang_that_runs_is_left_alone():
    """Its Job exists and its nodes are ready, so no action is due."""
    snapshot = booked(racks(2, 2), job("a"))
    assert reconcile(world(snapshot, works=(work(job("a")),))) == []


def test_a_finished_gang_is_released():
    """Its Job is complete."""
    snapshot = booked(racks(2, 2), job("a"))
    (action,) = reconcile(world(snapshot, works=(work(job("a"), finished=True),)))
    assert isinstance(action, Release)
    assert (action.reservation.gang, action.why) == ("default/Job/a", "finished")


def deleted(snapshot: Snapshot) -> Memory:
    """The API server has confirmed that the objects of all reservations are deleted."""
    return Memory({reservation.id: reservation for reservation in snapshot.reservations})


def test_a_gang_whose_job_is_deleted_is_released():
    """The API server has confirmed it, and no watch shows the Job."""
    snapshot = booked(racks(2, 2), job("a"))
    (action,) = reconcile(world(snapshot), deleted(snapshot))
    assert isinstance(action, Release)
    assert action.why == "deleted"


def test_a_place_that_was_claimed_again_since_its_job_was_deleted_is_kept():
    """Another Job of the name has it now, which no watch shows yet."""
    snapshot = booked(racks(2, 2), job("a"))
    (held,) = snapshot.reservations
    former = Memory({held.id: replace(held, owner_uid="of the former Job")})
    assert reconcile(world(snapshot), former) == []


def test_a_gang_of_several_objects_keeps_its_place_while_one_of_its_jobs_is_there():
    """Between two tries a Job has no pod; when it is finished, nobody needs the place any more."""
    shared = replace(job("a"), name="default/PodGroup/serve")
    snapshot = booked(racks(2, 2), shared)
    (held,) = snapshot.reservations
    member = replace(work(job("prefill")), ids=(held.id,))
    confirmed = Memory({held.id: held})
    assert reconcile(world(snapshot, works=(member,)), confirmed) == []
    (action,) = reconcile(world(snapshot, works=(replace(member, finished=True),)), confirmed)
    assert isinstance(action, Release)
    other_namespace = replace(member, ref=replace(member.ref, namespace="elsewhere"))
    (action,) = reconcile(world(snapshot, works=(other_namespace,)), confirmed)
    assert isinstance(action, Release)


def test_a_gang_of_a_kind_that_is_not_watched_is_never_taken_for_gone():
    """Only what is known to be absent is released."""
    snapshot = booked(racks(2, 2), gang(2, name="default/Strange/a", required="rack"))
    assert reconcile(world(snapshot, now=NOW + 1000), deleted(snapshot)) == []


def test_a_reservation_whose_pods_run_is_kept_without_its_workload():
    """A pod on a node names it."""
    snapshot = booked(racks(2, 2), job("a"))
    (mine,) = snapshot.reservations
    running = BoundPod("default/p", "r1-n1", amounts(gpu=8, pods=1), reservation=f"other,{mine.id}")
    snapshot = replace(snapshot, pods=(running,))
    assert reconcile(world(snapshot, now=NOW + 1000), deleted(snapshot)) == []
    assert alive(world(snapshot)) == {claim_of(mine)}


def test_a_hold_whose_job_is_there_is_claimed_for_it():
    """No validating pass came by."""
    snapshot = racks(2, 2)
    snapshot = with_book(snapshot, held(snapshot, job("a"), claimed=False))
    (action,) = reconcile(world(snapshot, works=(work(job("a")),)))
    assert isinstance(action, ClaimFor)
    assert action.gang.ref.uid == "uid-a"


def test_gated_pods_of_a_gang_that_holds_a_place_are_let_in():
    """Also those that its Job makes later, from a template with the gate in it."""
    snapshot = booked(racks(2, 2), job("a"))
    pods = (pod("a-1", "a"), pod("a-2", "a", gated=False))
    (action,) = reconcile(world(snapshot, works=(work(job("a"), queued=True),), pods=pods))
    assert isinstance(action, LetIn)
    assert [gated.ref.name for gated in action.pods] == ["a-1"]


def test_a_queued_gang_is_admitted_when_there_is_room():
    """With a reservation of its own, and all its pods."""
    pods = (pod("a-1", "a"), pod("a-2", "a"))
    (action,) = reconcile(world(racks(1, 2), works=(work(job("a"), queued=True),), pods=pods))
    assert isinstance(action, Admit)
    assert action.reservation is not None
    assert action.reservation.domains == (("r1",),)
    assert action.gang.pods == pods


def test_a_queued_gang_that_waits_for_nodes_is_let_in_without_a_place():
    """An autoscaler adds no node for gated pods: a pool that may grow by now opens their gate."""
    pods = (pod("a-1", "a"), pod("a-2", "a"))
    full, works = racks(1, 1), (work(job("a"), queued=True),)
    grown = full.with_stated_settings(pools_from_text("h100: nvidia.com/gpu=8", Where()))
    assert not any(isinstance(action, LetIn) for action in reconcile(world(full, works=works, pods=pods)))
    (action,) = reconcile(world(grown, works=works, pods=pods))
    assert isinstance(action, LetIn)
    assert (action.reservation, action.pods) == (None, pods)


def test_a_pod_whose_job_is_gone_is_no_gang_of_its_own():
    """The Job's pods go too; letting them in one by one would place what nobody wants any more."""
    assert reconcile(world(racks(1, 2), pods=(pod("a-1", "a"),))) == []


def test_those_that_wait_are_let_in_by_priority_then_age():
    """Two racks for three gangs: the urgent one and the older of the others."""
    gangs = [
        waiting(job("young"), created=2.0),
        waiting(job("old"), created=1.0),
        waiting(of_class(job("urgent"), "urgent"), created=3.0),
    ]
    actions = queue(with_classes(racks(2, 2), urgent=10), gangs)
    assert admitted(actions) == ["urgent", "old"]
    assert positions(actions) == [("young", 1, 1)]


def test_the_order_does_not_hang_on_the_order_in_which_gangs_are_seen():
    """The end of the sort is total."""
    gangs = [waiting(job(name), created=1.0) for name in ("c", "a", "b")]
    assert queue(racks(1, 2), gangs) == queue(racks(1, 2), gangs[::-1])
    assert admitted(queue(racks(1, 2), gangs)) == ["a"]


def test_a_later_gang_passes_the_first_only_beside_its_place():
    """r1 is taken; the first waits for both racks, so the free r2 is kept for it."""
    snapshot = booked(racks(2, 2), job("running"))
    first = waiting(gang(4, name="default/Job/wide"), created=1.0)
    small = waiting(job("small"), created=2.0)
    assert admitted(queue(snapshot, [first, small])) == []
    assert admitted(queue(snapshot, [small])) == ["small"]


def test_a_later_gang_is_let_in_where_the_first_would_not_go():
    """The first waits for the only rack of three; the other rack is too small for it and free."""
    snapshot = booked(racks(2, 2), job("running"))
    narrow = replace(snapshot.base.nodes["r2-n2"], cordoned=True)
    nodes = {**snapshot.base.nodes, "r2-n2": narrow}
    snapshot = replace(snapshot, base=replace(snapshot.base, nodes=nodes))
    first, small = waiting(job("first"), created=1.0), waiting(job("small", 1), created=2.0)
    actions = queue(snapshot, [first, small])
    assert admitted(actions) == ["small"]
    assert positions(actions) == [("first", 1, 1)]


def test_a_gang_that_can_never_run_keeps_nothing_free():
    """Its place on the emptied cluster is none, and the next one is the first to be kept a place for."""
    snapshot = booked(racks(2, 2), job("running"))
    never = waiting(job("never", 5), created=1.0)
    wide, small = waiting(gang(4, name="default/Job/wide"), created=2.0), waiting(job("small"), created=3.0)
    actions = queue(snapshot, [never, wide, small])
    assert admitted(actions) == []
    assert positions(actions) == [("never", 1, 3), ("wide", 2, 3), ("small", 3, 3)]


def test_of_many_that_wait_only_the_first_are_planned():
    """The others are told their position, so that one pass stays short."""
    gangs = [waiting(job(f"g{n:03}"), created=float(n)) for n in range(70)]
    actions = queue(booked(racks(1, 2), job("running")), gangs)
    waits = [action for action in actions if isinstance(action, WaitAction)]
    assert [wait.answer is not None for wait in waits] == [True] * 64 + [False] * 6


def test_a_gang_on_a_cordoned_node_moves_and_its_gated_pods_follow():
    """One of two pods moves within the rack, and pods that wait at the gate get the new place."""
    snapshot = booked(racks(1, 3), job("a"))
    lost = replace(snapshot.base.nodes["r1-n1"], cordoned=True)
    snapshot = replace(snapshot, base=replace(snapshot.base, nodes={**snapshot.base.nodes, "r1-n1": lost}))
    move, let_in = reconcile(world(snapshot, works=(work(job("a")),), pods=(pod("a-1", "a"),)))
    assert isinstance(move, MoveTo)
    assert (move.move.moved, move.why, move.move.to) == (1, "r1-n1 (cordoned)", ("r1-n3",))
    assert isinstance(let_in, LetIn)
    assert let_in.reservation == move.move.reservation


def test_a_gang_that_has_no_other_place_keeps_what_it_has_and_is_told():
    """What still runs may go on; the next look tries again."""
    snapshot = booked(racks(1, 2), job("a"))
    lost = replace(snapshot.base.nodes["r1-n1"], ready=False)
    snapshot = replace(snapshot, base=replace(snapshot.base, nodes={**snapshot.base.nodes, "r1-n1": lost}))
    (action,) = reconcile(world(snapshot, works=(work(job("a")),)))
    assert isinstance(action, Stuck)
    assert action.why == "r1-n1 (not ready)"


def noted(group: PodGroup, *racks_told: str) -> Work:
    """A Job whose template was stamped and pinned when its gang was in these racks."""
    terms = tuple((Requirement("rack", "In", (rack,)),) for rack in racks_told)
    sets = tuple(replace(pod_set, shape=replace(pod_set.shape, affinity=terms)) for pod_set in group.pod_sets)
    note = PlacementAnnotation("admitted", "topo", tuple((rack,) for rack in racks_told))
    stamped = work(replace(group, pod_sets=sets))
    return replace(stamped, notes=(note,), ids=(reservation_id(group.name),))


def test_a_gang_that_moved_once_can_move_again():
    """Its template tells the first place for ever, which is neither where it is nor where it must stay."""
    group = job("a")
    snapshot = booked(racks(3, 2), group)
    (now,) = (
        replace(reservation, domain=("r2",), domains=(("r2",),)) for reservation in snapshot.reservations
    )
    seats = tuple(replace(seat, node=seat.node.replace("r1", "r2")) for seat in now.assignments)
    moved = replace(now, assignments=seats, nodes=frozenset({"r2-n1", "r2-n2"}))
    nodes = dict(snapshot.base.nodes)
    for name in ("r1-n1", "r2-n1"):
        nodes[name] = replace(nodes[name], cordoned=True)
    snapshot = with_book(replace(snapshot, base=replace(snapshot.base, nodes=nodes)), moved)
    (move,) = reconcile(world(snapshot, works=(noted(group, "r1"),)))
    assert isinstance(move, MoveTo)
    assert move.move.reservation.domains == (("r3",),)


def test_a_replica_that_waits_is_not_bound_to_the_other_replicas_places():
    """The shared template is pinned to the first replica's rack; the second gets another."""
    first = gang(2, name="default/LeaderWorkerSet/s/0", required="rack")
    second = replace(first, name="default/LeaderWorkerSet/s/1")
    snapshot = booked(racks(2, 2), first)
    stamped = noted(first, "r1")
    replicas = replace(stamped, gangs=(*stamped.gangs, replace(stamped.gangs[0], name=second.name)))
    pods = (pod("s-1", gated=True, replica=second.name),)
    seen = replace(world(snapshot, works=(replicas,), pods=pods), kinds=frozenset({"LeaderWorkerSet"}))
    (action,) = reconcile(seen)
    assert isinstance(action, Admit)
    assert action.gang.name == second.name
    assert action.reservation is not None
    assert action.reservation.domains == (("r2",),)


def test_a_gang_that_would_rather_start_than_wait_has_its_gate_opened():
    """A replica's pod was held back by its template's note; its object says `on-unavailable: admit`."""
    group = replace(job("a"), on_unavailable="admit")
    (action,) = reconcile(world(racks(1, 1), works=(work(group),), pods=(pod("a-1", "a"),)))
    assert isinstance(action, LetIn)
    assert action.reservation is None


def vanished(snapshot: Snapshot, *works: Work) -> tuple[World, Memory]:
    """The world in which these gangs' reservations have been missing for a while."""
    seen = world(snapshot, works=works)
    return seen, Memory(missing=gangs_without_reservation(seen))


def test_a_reservation_that_vanished_is_made_again_where_the_templates_pin_the_gang():
    """Nothing stands yet: the same rack, although another one comes first."""
    (action,) = reconcile(*vanished(racks(2, 2), noted(job("a"), "r2")))
    assert isinstance(action, Restore)
    assert action.reservation.domains == (("r2",),)
    assert reconcile(world(racks(2, 2), works=(noted(job("a"), "r2"),))) == [], "not at once"


@pytest.mark.parametrize("standing", [1, 2])
def test_a_vanished_reservation_is_made_again_around_the_pods_that_stand(standing):
    """They keep their nodes, and are counted once."""
    group = job("a")
    pods = tuple(
        BoundPod(f"default/a-{n}", f"r2-n{n + 1}", amounts(gpu=8, pods=1), reservation_id(group.name))
        for n in range(1, standing + 1)
    )
    snapshot = replace(racks(2, 3), pods=pods)
    shape = replace(group.pod_sets[0].shape, requests=amounts(gpu=8, pods=1))
    group = replace(group, pod_sets=(replace(group.pod_sets[0], shape=shape),))
    (action,) = reconcile(*vanished(snapshot, noted(group, "r2")))
    assert isinstance(action, Restore)
    nodes = {seat.node for seat in action.reservation.assignments}
    assert nodes >= {pod.node for pod in pods}
    assert (len(nodes), action.reservation.domains) == (2, (("r2",),))


def test_a_vanished_reservation_whose_place_is_taken_goes_elsewhere_or_is_told():
    """Another gang holds the rack: nothing stands, so the gang goes to the next; without one it is told."""
    taken = booked(racks(2, 2), job("other"))
    (action,) = reconcile(*vanished(taken, work(job("other")), noted(job("a"), "r1")))
    assert isinstance(action, Restore)
    assert action.reservation.domains == (("r2",),)
    full = booked(racks(1, 2), job("other"))
    (action,) = reconcile(*vanished(full, work(job("other")), noted(job("a"), "r1")))
    assert isinstance(action, Stuck)
    assert action.why == "its reservation"


def test_the_gangs_are_gathered_once_in_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the controller remembers and what it does then are read off the same gangs."""
    reads, shared_gang = Counter[str](), gathering._shared_gang

    def counted(read: Work) -> str:
        reads[read.ref.name] += 1
        return shared_gang(read)

    monkeypatch.setattr(gathering, "_shared_gang", counted)
    works = (work(job("a")), work(job("b")))
    seen = world(booked(racks(2, 2), job("a")), works=works)
    memory = Memory(missing=gangs_without_reservation(seen), idle=frozenset(unused(seen)))
    reconcile(seen, memory)
    assert reads == {"a": 1, "b": 1}


def unused_for_long(seen: World) -> tuple[World, Memory]:
    """What the controller saw unused for longer than the namespace has patience."""
    return replace(seen, patience={"default": 1800.0}), Memory(idle=frozenset(unused(seen)))


def test_a_place_that_no_pod_comes_to_is_released():
    """The controller saw none on a node for too long: the gang loses it, and is not let in again."""
    snapshot = booked(racks(1, 2), job("slow"))
    (action,) = reconcile(*unused_for_long(world(snapshot, works=(work(job("slow")),))))
    assert isinstance(action, Release)
    assert (action.reservation,) == snapshot.reservations


def test_a_place_that_no_pod_came_to_is_the_next_gangs_at_once():
    """One rack, held for pods that never come; the gang that waits has it in the same round."""
    snapshot = booked(racks(1, 2), job("slow"))
    works = (work(job("slow")), work(job("next"), queued=True))
    released, admitted = reconcile(*unused_for_long(world(snapshot, works=works)))
    assert isinstance(released, Release)
    assert isinstance(admitted, Admit)
    assert admitted.gang.name == "default/Job/next"


@pytest.mark.parametrize(
    ("name", "words", "is_used"),
    [
        ("default/p", {"gpu": 8}, True),
        ("default/p", {"cpu": 1}, False),
        ("thief/p", {"gpu": 8}, False),
    ],
)
def test_only_a_gangs_own_gpu_pod_keeps_its_place(name, words, is_used):
    """A small pod that names the reservation, or one of another namespace, does not."""
    snapshot = booked(racks(1, 2), job("slow"))
    (reservation,) = snapshot.reservations
    pod = BoundPod(name, "r1-n1", amounts(**words), reservation=reservation.id)
    assert (not unused(world(snapshot.with_pod(pod)))) == is_used


@pytest.mark.parametrize(
    ("name", "words", "is_kept"),
    [
        ("default/p", {"gpu": 8}, True),
        ("default/p", {"cpu": 1}, False),
        ("thief/p", {"gpu": 8}, False),
    ],
)
def test_the_place_of_a_deleted_gang_is_kept_only_while_a_pod_of_its_own_uses_it(name, words, is_kept):
    """A pod of nothing but the annotation would keep the rack for ever."""
    snapshot = booked(racks(1, 2), job("gone"))
    (reservation,) = snapshot.reservations
    left = snapshot.with_pod(BoundPod(name, "r1-n1", amounts(**words), reservation=reservation.id))
    actions = reconcile(world(left), Memory({reservation.id: reservation}))
    assert [type(action) for action in actions] == ([] if is_kept else [Release])


def test_a_gang_that_others_hold_back_is_not_let_in():
    """Its pods have somebody else's gate; the younger gang goes first, and nothing is kept for the other."""
    held_back = replace(waiting(job("gated"), created=1.0), held_back=True)
    gangs = (held_back, waiting(job("free"), created=2.0))
    assert admitted(queue(racks(1, 2), (gang for gang in gangs if gang.waits))) == ["free"]
