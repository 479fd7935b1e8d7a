"""What the controller does for a gang of several objects: admission and it read the same gang.

r1: a b c d (8 GPUs each)    r2: e f g h
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.pod import BoundPod, NodeSelection
from planner.node.runtime_class import RuntimeClass, RuntimeClasses
from tests.builders import cluster
from tests.webhook.kube.worlds import NOW, world
from tests.webhook.placement.test_gangs_across_objects import (
    GANG,
    RACKS,
    Member,
    applied,
    group,
    on_nodes,
    places,
    seats,
    seats_of_members,
)
from tests.webhook.workloads import objects as o
from webhook.kube.controller.memory import NO_MEMORY, Memory, gangs_without_reservation
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import (
    Action,
    Admit,
    Beside,
    ClaimFor,
    Follow,
    LetIn,
    MoveTo,
    Release,
    Restore,
)
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Unbound, Work, unbound_from, work_from
from webhook.kube.state.gathering import Gang
from webhook.placement.shared_gangs.gang_members import seated_gang
from webhook.workloads.keys.annotation_keys import QUEUED_GATE

PREFILL, DECODE = Member("Job", "prefill", 2, 8), Member("Job", "decode", 2, 4)
GROUP = group(4, "rack")
GROUPS = {("team", "serve"): GROUP}


def stored(state: Snapshot, *members: Member, of: Any = GROUP) -> tuple[Snapshot, tuple[Work, ...]]:
    """The cluster after the webhook was asked for these Jobs in turn, and what the controller reads."""
    objects = [obj for member in members for obj in member.objects()]
    after, decisions = applied(state, [of, *objects])
    works = [watched(decision.object or obj, of) for decision, obj in zip(decisions, objects, strict=True)]
    return after, tuple(works)


def watched(obj: Any, of: Any = GROUP, **status: Any) -> Work:
    """A Job as the controller watches it."""
    metadata = {**obj["metadata"], "uid": f"uid-{obj['metadata']['name']}"}
    read = work_from(
        {**obj, "metadata": metadata, "status": status}, Where(), "batch/v1", "Job", {("team", "serve"): of}
    )
    assert read is not None
    return read


def pods_of(*works: Work, gated: bool = True) -> tuple[Unbound, ...]:
    """The pods that these Jobs make, which wait at the gate."""
    result = []
    for work in works:
        assert work.member is not None
        for number in range(work.member.own[0].count):
            template: Any = o.pod_template(8)
            metadata = {"name": f"{work.ref.name}-{number}", "namespace": "team"}
            metadata["ownerReferences"] = [  # type: ignore[assignment]
                {"apiVersion": "batch/v1", "kind": "Job", "name": work.ref.name, "uid": work.ref.uid,
                 "controller": True}
            ]  # fmt: skip
            spec = {**template["spec"], "schedulingGates": [{"name": QUEUED_GATE}] if gated else []}
            pod = unbound_from({"metadata": {**metadata, "uid": metadata["name"]}, "spec": spec}, Where())
            assert pod is not None
            result.append(pod)
    return tuple(result)


def watching(state: Snapshot, works: tuple[Work, ...], pods: tuple[Unbound, ...] = ()) -> World:
    """What the controller sees, on a leader that has seen every kind."""
    return world(state, works=works, pods=pods)


def done(seen: World, kind: type[Action], memory: Memory = NO_MEMORY) -> list[Any]:
    """The actions of a kind."""
    return [action for action in reconcile(seen, memory) if isinstance(action, kind)]


def parts(gang: Gang) -> dict[str, int]:
    """The gang's PodSets, with the number of their pods."""
    return {pod_set.name: pod_set.count for pod_set in gang.group.pod_sets}


def claimed(state: Snapshot) -> Snapshot:
    """The same, the gang's place being claimed."""
    held = state.holding(GANG)
    assert held is not None
    return state.with_reservation(replace(held, state="claimed", owner_uid="uid-prefill", expires=None))


def test_the_hold_of_several_jobs_is_claimed_before_any_pod_is_bound() -> None:
    """The hold is in the name of the PodGroup, which the controller once did not know."""
    state, works = stored(cluster(RACKS), PREFILL, DECODE)
    held = state.holding(GANG)
    assert held is not None
    state = state.with_reservation(replace(held, expires=20_000.0))
    (claim,) = done(watching(state, works), ClaimFor)
    assert (claim.reservation.gang, claim.gang.ref.name) == (GANG, "decode")
    assert {ref.name for ref in claim.gang.refs} == {"prefill", "decode"}


def test_a_lost_node_of_several_jobs_is_replanned_for_the_pods_that_stood_there() -> None:
    """The other pods stay, and each member's PodSet keeps its size."""
    state, works = stored(cluster(RACKS), PREFILL, DECODE)
    state = claimed(state)
    (lost,) = {seat.node for seat in state.reservations[0].assignments if seat.pod_set == "decode"}
    nodes = [node for node in state.nodes.values() if node.name != lost]
    after = replace(snapshot(nodes, state.topologies), reservations=state.reservations)
    (move,) = done(watching(after, works), MoveTo)
    moved = places(move.move.reservation.assignments)
    assert (move.move.moved, move.move.gone) == (2, (lost,))
    assert Counter(part for part, _ in moved.elements()) == {"prefill": 2, "decode": 2}
    assert {seat: n for seat, n in moved.items() if seat[0] == "prefill"} == {
        seat: n for seat, n in seats(state).items() if seat[0] == "prefill"
    }
    assert {ref.name for ref in move.gang.refs} == {"prefill", "decode"}


def test_a_reservation_of_several_jobs_that_vanished_is_made_again() -> None:
    """It has the PodSets that the templates name, of all members."""
    state, works = stored(cluster(RACKS), PREFILL, DECODE)
    without = state.without(GANG)
    seen = watching(without, works)
    assert gangs_without_reservation(seen) == {GANG}
    (restore,) = done(seen, Restore, Memory(missing=frozenset({GANG})))
    again = places(restore.reservation.assignments)
    assert Counter(part for part, _ in again.elements()) == {"prefill": 2, "decode": 2}
    assert restore.reservation.domains == state.reservations[0].domains


def test_pods_of_several_jobs_that_are_bound_elsewhere_are_followed() -> None:
    """Each takes along a seat of its own PodSet."""
    state, works = stored(cluster(RACKS), PREFILL, DECODE)
    state = claimed(state)
    (name,) = {held.id for held in state.reservations}
    amounts = dict(state.reservations[0].requests)["prefill"]
    free = next(node for node in "abcd" if node not in on_nodes(seats(state)))
    stray = BoundPod("team/prefill-0", "e", amounts, reservation=name)
    (follow,) = done(watching(state.with_pod(stray), works), Follow)
    after = places(follow.reservation.assignments)
    assert (after["prefill", "e"], after.total(), free not in on_nodes(after)) == (1, 4, True)


def queued(state: Snapshot, *members: Member) -> tuple[Snapshot, tuple[Work, ...]]:
    """The same on a full cluster: they wait, and then the cluster is free."""
    full = cluster(RACKS.replace("\n", " used=8\n") + " used=8")
    _, works = stored(full, *members)
    return state, works


def test_several_jobs_that_wait_are_let_in_as_one_gang_each_on_its_own_seats() -> None:
    """Each pod is told which places are its own."""
    state, works = queued(cluster(RACKS), PREFILL, DECODE)
    assert all(work.queued for work in works)
    (admit,) = done(watching(state, works, pods_of(*works)), Admit)
    assert (admit.gang.name, parts(admit.gang)) == (GANG, {"decode": 2, "prefill": 2})
    assert {(pod.ref.name.partition("-")[0], pod.pod_set) for pod in admit.gang.pods} == {
        ("prefill", "prefill"),
        ("decode", "decode"),
    }
    assert {ref.name for ref in admit.gang.refs} == {"prefill", "decode"}


def test_members_that_are_known_by_number_alone_keep_nobody_out() -> None:
    """Four of five members are known, and the rack has room for four."""
    big = replace(PREFILL, count=4)
    _, works = stored(cluster("r1: a b c d used=8"), big, of=group(5, "rack"))
    (admit,) = done(watching(cluster("r1: a b c d"), works, pods_of(*works)), Admit)
    assert parts(admit.gang) == {"prefill": 4}


def test_a_member_that_waited_for_room_beside_its_gang_gets_it_when_there_is_some() -> None:
    """The places that were reserved before stay."""
    used = "r1: a b\nr1: c d used=8\nr2: e f g h used=8"
    state, (first,) = stored(cluster(used), replace(PREFILL, gpus=4))
    state, (second,) = stored(state, replace(DECODE, gpus=8))
    works, pods = (first, second), pods_of(second)
    assert (first.queued, second.queued) == (False, True)
    (waits,) = done(watching(claimed(state), works, pods), Beside)
    assert waits.member == "team/Job/decode"
    assert not done(watching(claimed(state), works, pods), LetIn)
    free = claimed(replace(cluster("r1: a b c d"), reservations=state.reservations))
    (admit,) = done(watching(free, works, pods), Admit)
    assert seats_of_members(seats(state)) <= places(admit.reservation.assignments)
    after = places(admit.reservation.assignments)
    assert Counter(part for part, _ in after.elements()) == {"prefill": 2, "decode": 2}
    assert {pod.pod_set for pod in admit.gang.pods} == {"decode"}


def test_a_member_that_may_not_be_on_the_free_seats_of_its_gang_moves_no_other() -> None:
    """The Job decode is gone. A Job of its size takes its seats only if the pods may be on their nodes."""
    state, (prefill, _) = stored(cluster(RACKS), PREFILL, DECODE)
    state = claimed(state)
    (free,) = {node for part, node in seats(state) if part == "decode"}
    (late,) = Member("Job", "late", 2, 4).objects()
    requirement = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [free]}
    late["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [requirement]}]
        }
    }}  # fmt: skip
    late["metadata"]["annotations"] = {"bayplan.dev/placement": '{"decision": "queued"}'}
    works = (prefill, watched(late))
    seen = watching(state, works, pods_of(*works))
    assert not done(seen, MoveTo)
    (admit,) = done(seen, Admit)
    after = places(admit.reservation.assignments)
    assert seats_of_members(seats(state)) <= after
    assert {node for part, node in after if part == "late"}.isdisjoint({free})


def joined_late() -> tuple[Snapshot, tuple[Work, Work], tuple[Unbound, ...]]:
    """Two Jobs, of which the first holds two seats in the rack of a to f; the pods of the second, which had
    no room, wait for 100 s."""
    used = "r1: a b\nr1: c d e f used=8\nr2: g h used=8"
    state, (first,) = stored(cluster(used), replace(PREFILL, gpus=4))
    state, (second,) = stored(state, replace(DECODE, gpus=8))
    free = claimed(replace(cluster("r1: a b c d e f"), reservations=state.reservations))
    return free, (first, second), tuple(replace(pod, created=NOW - 100) for pod in pods_of(second))


def test_a_late_member_that_waits_for_kueue_takes_no_place_from_its_gang() -> None:
    """The pods of the first Job may come at any moment."""
    free, works, pods = joined_late()
    waiting = tuple(replace(pod, held_back=True, awaits_kueue=True) for pod in pods)
    assert not done(watching(free, works, waiting), Release)


def in_pools(state: Snapshot, second: str) -> Snapshot:
    """The nodes of this name are the pool of Kueue's second flavor."""
    for name, node in state.nodes.items():
        pool = "second" if name in second else "first"
        state = state.with_node(replace(node, labels={**node.labels, "pool": pool}))
    return state


def test_a_late_member_is_let_in_once_kueue_has_admitted_all_of_its_pods() -> None:
    """One of two is still at its gate; nothing is held for it."""
    free, works, (first, second) = joined_late()
    at_kueues = replace(second, held_back=True, awaits_kueue=True)
    assert not done(watching(free, works, (first, at_kueues)), Admit)
    assert done(watching(free, works, (first, second)), Admit)


def test_a_late_member_is_seated_in_its_own_flavor_and_moves_no_other_seat() -> None:
    """The pods of the first Job are to come, and say nothing of the pool of the second."""
    free, works, pods = joined_late()
    before, pools = free.holding(GANG), in_pools(free, second="ef")
    assert before is not None
    admitted = tuple(replace(pod, selection=NodeSelection({"pool": "second"})) for pod in pods)
    others = pods_of(works[0], gated=False)
    seen = watching(pools, works, (*admitted, *others))
    assert not done(seen, MoveTo)
    (admit,) = done(seen, Admit)
    by_part = places(admit.reservation.assignments)
    assert {node for part, node in by_part if part == "decode"} == {"e", "f"}
    assert seats_of_members(places(before.assignments)) <= by_part


def test_a_member_that_kueue_admits_in_another_flavor_moves_its_own_seats_there() -> None:
    """Its seats have the shape of its object, which names no pool: nodes of the first pool are free too."""
    state, works = stored(cluster("r1: a b c d e f"), PREFILL, DECODE)
    pools, decode = in_pools(claimed(state), second="f"), works[1]
    admitted = (replace(pod, selection=NodeSelection({"pool": "second"})) for pod in pods_of(decode))
    (move,) = done(watching(pools, works, tuple(admitted)), MoveTo)
    by_part = places(move.move.reservation.assignments)
    assert {node for part, node in by_part if part == "decode"} == {"f"}
    assert {seat: n for seat, n in by_part.items() if seat[0] == "prefill"} == {
        seat: n for seat, n in seats(state).items() if seat[0] == "prefill"
    }


def test_a_gang_lives_until_the_last_of_its_jobs_is_finished() -> None:
    """And while a pod of it is on a node."""
    state, (prefill, decode) = stored(cluster(RACKS), PREFILL, DECODE)
    state, over = claimed(state), replace(prefill, finished=True)
    assert not done(watching(state, (over, decode)), Release)
    (release,) = done(watching(state, (over, replace(decode, finished=True))), Release)
    assert release.why == "finished"


def test_a_waiting_member_of_a_runtime_class_gets_no_seat_that_is_too_small_for_its_overhead() -> None:
    """Its template asks for as much as the free seats have, and its pods for the overhead in addition."""
    state, (work,) = stored(cluster(RACKS), PREFILL)
    held, member = state.holding(GANG), work.member
    assert held is not None
    assert member is not None
    assert member.workload.share is not None
    waiting = replace(member, ids=(), waits=True)
    seated = seated_gang(state, held, member.workload.gangs[0], [waiting], [])
    assert seated.left == ()
    own = tuple(
        replace(part, shape=replace(part.shape, runtime_class="kata")) for part in member.workload.share.own
    )
    share = replace(member.workload.share, own=own)
    sandboxed = replace(waiting, workload=replace(member.workload, share=share))
    classes = RuntimeClasses({"kata": RuntimeClass("kata", {"cpu": 250})})
    base = replace(state.base, runtime_classes=classes)
    state = state.evolve(base=base, changed_nodes=frozenset())
    seated = seated_gang(state, held, member.workload.gangs[0], [sandboxed], [])
    assert [left.uid for left in seated.left] == [member.uid]
