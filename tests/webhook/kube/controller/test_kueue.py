"""Gangs whose pods wait at Kueue's gate: Bayplan queues them after Kueue has admitted them, not before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.manifests.pods.bound_pod import pod_from
from planner.model.errors import Where
from planner.model.labels import Taint, Toleration
from planner.model.pod import BoundPod, NodeSelection
from planner.model.podgroup import ReserveMode
from planner.model.reservation import reservation_id
from planner.node.runtime_class import RuntimeClass, RuntimeClasses
from tests.builders import gang, racks
from tests.webhook.kube.worlds import NOW, booked, pod, work, world
from tests.webhook.workloads import objects as o
from webhook.kube.controller.memory import Memory
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Admit, LeftUnbound, LetIn, MoveTo, Release, Restore
from webhook.kube.state.gangs import Unbound, unbound_from, work_from
from webhook.kube.state.gathering import gangs_of
from webhook.kube.state.kueue_flavors import of_bound_pods, of_pods
from webhook.workloads.keys.annotation_keys import QUEUED_GATE

GROUP = gang(2, name="default/Job/a", required="rack")
AT_KUEUES = pod("a-0", "a", held_back=True)
THROUGH = pod("a-1", "a")


def test_a_gang_is_planned_once_all_of_its_pods_have_passed_kueues_gate() -> None:
    """A placement would be unused while Kueue waits for quota; afterwards the gang is admitted at once."""
    snapshot = racks(2, 2)
    job = work(GROUP, queued=True)
    (left_unbound,) = reconcile(world(snapshot, works=(job,), pods=(AT_KUEUES, THROUGH)))
    assert isinstance(left_unbound, LeftUnbound)
    (admitted,) = reconcile(
        world(snapshot, works=(job,), pods=(replace(AT_KUEUES, held_back=False), THROUGH))
    )
    assert isinstance(admitted, Admit)


def test_a_set_of_kueues_whose_pods_have_not_come_waits_for_them() -> None:
    """It is not known yet whether Kueue admits the set."""
    set_of_kueues = replace(work(GROUP, queued=True), kueue=True)
    assert reconcile(world(racks(2, 2), works=(set_of_kueues,))) == []


def test_a_gang_that_kueue_holds_up_keeps_nobody_waiting() -> None:
    """No room is kept for it."""
    (held_up,) = gangs_of((work(GROUP, queued=True),), (AT_KUEUES,)).values()
    (through,) = gangs_of((work(GROUP, queued=True),), (THROUGH,)).values()
    assert (held_up.waits, through.waits) == (False, True)


def test_kueues_gate_and_queue_are_read_from_what_is_stored() -> None:
    """Of pods the gate `kueue.x-k8s.io/admission`, of sets the queue's label; a Job is suspended instead."""
    stored = o.annotated(o.POD, {})
    stored["spec"]["schedulingGates"] = [{"name": QUEUED_GATE}, {"name": "kueue.x-k8s.io/admission"}]
    waiting = unbound_from(stored, Where())
    assert waiting is not None
    assert (waiting.gated, waiting.held_back) == (True, True)
    for obj, gates_pods in ((o.LWS, True), (o.JOB, False)):
        labelled = o.changed(o.annotated(obj, {}), ("metadata", "labels"), {"kueue.x-k8s.io/queue-name": "q"})
        read = work_from(labelled, Where(), obj["apiVersion"], obj["kind"])
        assert read is not None
        assert read.kueue is gates_pods


AT_ITS_GATE = {"held_back": True, "awaits_kueue": True}
"""Of a pod that Kueue has not admitted."""

SECOND = NodeSelection({"pool": "second"})
"""What Kueue writes onto a pod that it admits in the flavor of rack r2."""


def pools() -> Snapshot:
    """Two racks of two nodes, each a pool of its own, as two flavors of Kueue's have it."""
    snapshot = racks(2, 2)
    names = {"r1": "first", "r2": "second"}
    for node in snapshot.nodes.values():
        pool = names[node.labels["rack"]]
        snapshot = snapshot.with_node(replace(node, labels={**node.labels, "pool": pool}))
    return snapshot


def admitted_in(selection: NodeSelection, **fields: object) -> tuple[Unbound, ...]:
    """The two pods of the gang, let through by Kueue in a flavor, at our gate."""
    return tuple(pod(f"a-{n}", "a", selection=selection, **fields) for n in (0, 1))


def nodes(action: object) -> set[str]:
    """Where the pods of an admitted, moved or restored gang go."""
    assert isinstance(action, (Admit, MoveTo, Restore)), action
    reservation = action.move.reservation if isinstance(action, MoveTo) else action.reservation
    assert reservation is not None
    return {seat.node for seat in reservation.assignments}


def test_a_gang_is_planned_on_the_nodes_of_the_flavor_that_kueue_wrote_onto_its_pods() -> None:
    """Its template names no pool, and the first rack is free too."""
    (action,) = reconcile(world(pools(), works=(work(GROUP, queued=True),), pods=admitted_in(SECOND)))
    assert nodes(action) == {"r2-n1", "r2-n2"}


def test_only_what_all_pods_of_a_part_say_of_their_flavor_counts() -> None:
    """Pods in two flavors have no pool in common; a pod that Kueue has not admitted says nothing."""
    first, second = admitted_in(SECOND)
    mixed = (first, replace(second, selection=NodeSelection({"pool": "first"})))
    (gang_in_both,) = gangs_of((work(GROUP, queued=True),), mixed).values()
    waiting = (first, replace(second, selection=NodeSelection(), **AT_ITS_GATE))
    (gang_in_second,) = gangs_of((work(GROUP, queued=True),), waiting).values()
    selectors = [g.group.pod_sets[0].shape.node_selector for g in (gang_in_both, gang_in_second)]
    assert selectors == [{}, {"pool": "second"}]


def test_what_many_pods_say_alike_is_compared_once_with_each_part() -> None:
    """Pods that name no part say it for all: 200 parts and 2,000 pods were 400,000 comparisons a round."""
    parts = tuple(replace(GROUP.pod_sets[0], name=f"part-{n}") for n in range(20))
    pods = tuple(pod(f"a-{n}", "a", selection=replace(SECOND), pod_set="") for n in range(50))
    selections = of_pods(replace(GROUP, pod_sets=parts), pods)
    assert [list(own) for own in selections.values()] == [[SECOND]] * 20


def test_pods_of_a_template_for_leader_and_workers_say_it_for_both() -> None:
    """A LeaderWorkerSet without a template for its leaders writes no PodSet onto its pods."""
    leader, worker = (replace(GROUP.pod_sets[0], name=name, count=1) for name in ("leader", "worker"))
    set_of_kueues = work(replace(GROUP, pod_sets=(leader, worker)), queued=True)
    pods = admitted_in(SECOND, pod_set="")
    (action,) = reconcile(world(pools(), works=(set_of_kueues,), pods=pods))
    assert nodes(action) == {"r2-n1", "r2-n2"}


def test_a_flavors_tolerations_count_too() -> None:
    """The nodes have a taint that the template does not tolerate."""
    snapshot = pools()
    for name in ("r2-n1", "r2-n2"):
        node = snapshot.nodes[name]
        snapshot = snapshot.with_node(replace(node, taints=(Taint("dedicated", "second", "NoSchedule"),)))
    tolerating = replace(SECOND, tolerations=(Toleration("dedicated", value="second"),))
    (action,) = reconcile(world(snapshot, works=(work(GROUP, queued=True),), pods=admitted_in(tolerating)))
    assert nodes(action) == {"r2-n1", "r2-n2"}


def runs(snapshot: Snapshot, *names: str) -> Snapshot:
    """The snapshot with pods of the gang on these nodes, admitted in the flavor of rack r2."""
    for number, name in enumerate(names):
        requests = GROUP.pod_sets[0].shape.requests
        bound = BoundPod(f"default/a-{number}", name, requests, reservation_id(GROUP.name), selection=SECOND)
        snapshot = snapshot.with_pod(bound)
    return snapshot


def held_in_second() -> Snapshot:
    """The gang has its place in the rack of the second pool."""
    template = GROUP.pod_sets[0]
    shape = replace(template.shape, node_selector=SECOND.node_selector)
    pinned = replace(GROUP, pod_sets=(replace(template, shape=shape),))
    return booked(pools(), pinned)


def test_a_gang_that_loses_a_node_stays_in_the_flavor_of_its_pods_that_stand() -> None:
    """The other pool has room, and Kueue would write the second one's labels onto the new pod."""
    snapshot = runs(held_in_second(), "r2-n1", "r2-n2")
    cordoned = snapshot.with_node(replace(snapshot.nodes["r2-n2"], cordoned=True))
    stuck = reconcile(world(cordoned, works=(work(GROUP),)))
    assert not any(isinstance(action, MoveTo) for action in stuck)
    third = replace(cordoned.nodes["r2-n1"], name="r2-n3")
    third = replace(third, labels={**third.labels, "kubernetes.io/hostname": "r2-n3"})
    (moved,) = reconcile(world(cordoned.with_node(third), works=(work(GROUP),)))
    assert nodes(moved) == {"r2-n1", "r2-n3"}


def test_pods_of_a_runtime_class_show_their_flavor() -> None:
    """Bound pods are recognised with the overhead of the class, which the gang's template lacks."""
    template = GROUP.pod_sets[0]
    sandboxed = replace(template, shape=replace(template.shape, runtime_class="kata"))
    snapshot = pools()
    classes = RuntimeClasses({"kata": RuntimeClass("kata", {"cpu": 250})})
    base = replace(snapshot.base, runtime_classes=classes)
    snapshot = runs(snapshot.evolve(base=base, changed_nodes=frozenset()), "r2-n1")
    (pod,) = snapshot.pods
    created = replace(pod, requests={**pod.requests, "cpu": pod.requests.get("cpu", 0) + 250})
    snapshot = replace(snapshot, pods=(created,))
    group = replace(GROUP, pod_sets=(sandboxed,))
    assert of_bound_pods(snapshot, group) == {template.name: [SECOND]}


def test_a_reservation_that_vanished_is_made_again_in_the_flavor_of_the_pods_that_stand() -> None:
    """One of two stands, and the other one is to come."""
    job = replace(work(GROUP), ids=(reservation_id(GROUP.name),))
    vanished = Memory(missing=frozenset({GROUP.name}))
    (restored,) = reconcile(world(runs(pools(), "r2-n1"), works=(job,)), vanished)
    assert nodes(restored) == {"r2-n1", "r2-n2"}


def test_a_gang_that_kueue_admits_in_another_flavor_moves_there() -> None:
    """None of its pods runs; they are admitted after the move."""
    snapshot = booked(pools(), GROUP)
    moved, let_in = reconcile(world(snapshot, works=(work(GROUP),), pods=admitted_in(SECOND)))
    assert nodes(moved) == {"r2-n1", "r2-n2"}
    assert isinstance(moved, MoveTo)
    assert moved.why == "r1-n1 (not of its flavor in Kueue), r1-n2 (not of its flavor in Kueue)"
    assert isinstance(let_in, LetIn)


@pytest.mark.parametrize("reserve", ["domain", "nodes"])
@pytest.mark.parametrize("in_template", [{}, SECOND.node_selector])
def test_a_pod_that_comes_in_another_flavor_than_those_that_stand_moves_its_seat_once(
    reserve: ReserveMode, in_template: dict[str, str]
) -> None:
    """Of a Deployment each pod is admitted by itself, and a template may be edited while old pods run."""
    standing = gang(2, name="default/Job/a", reserve=reserve)
    requests = standing.pod_sets[0].shape.requests
    first = BoundPod("default/a-0", "r1-n1", requests, reservation_id(standing.name))
    snapshot = booked(pools(), standing)
    snapshot = snapshot.with_pod(replace(first, selection=NodeSelection({"pool": "first"})))
    (template,) = standing.pod_sets
    shape = replace(template.shape, node_selector=in_template)
    edited = replace(standing, pod_sets=(replace(template, shape=shape),))
    seen = world(snapshot, works=(work(edited),), pods=(pod("a-1", "a", selection=SECOND),))
    moved, let_in = reconcile(seen)
    assert isinstance(moved, MoveTo)
    assert nodes(moved) == {"r1-n1", "r2-n1"}
    assert isinstance(let_in, LetIn)
    after = replace(seen, snapshot=snapshot.with_reservation(moved.move.reservation))
    assert [type(action) for action in reconcile(after)] == [LetIn]


def test_pods_are_not_pinned_before_kueue_has_admitted_them() -> None:
    """The gang is placed, but the flavor of its new pods is not known."""
    young = admitted_in(NodeSelection(), **AT_ITS_GATE, created=NOW - 1)
    assert reconcile(world(booked(pools(), GROUP), works=(work(GROUP),), pods=young)) == []


@pytest.mark.parametrize(("seconds", "is_released"), [(9.0, False), (11.0, True)])
def test_a_gang_that_kueue_evicted_gives_its_place_back(seconds: float, is_released: bool) -> None:
    """The gang for which it was evicted may need its placement."""
    evicted = admitted_in(NodeSelection(), **AT_ITS_GATE, created=NOW - seconds)
    actions = reconcile(world(booked(pools(), GROUP), works=(work(GROUP),), pods=evicted))
    assert [action.why for action in actions if isinstance(action, Release)] == (
        ["Kueue has taken its admission back"] if is_released else []
    )


def test_a_gate_that_is_not_kueues_gives_no_place_back() -> None:
    """Kueue has admitted these pods, and another system gates them."""
    stored = o.annotated(o.POD, {})
    stored["metadata"]["labels"] = {"kueue.x-k8s.io/managed": "true"}
    for gate, awaits_kueue in (("example.com/network", False), ("kueue.x-k8s.io/admission", True)):
        stored["spec"]["schedulingGates"] = [{"name": gate}]
        read = unbound_from(stored, Where())
        assert read is not None
        assert (read.held_back, read.awaits_kueue) == (True, awaits_kueue)
    held_up = admitted_in(SECOND, held_back=True, created=NOW - 100)
    (moved, *rest) = reconcile(world(booked(pools(), GROUP), works=(work(GROUP),), pods=held_up))
    assert nodes(moved) == {"r2-n1", "r2-n2"}
    assert not any(isinstance(action, Release) for action in rest)


def test_a_gang_of_which_a_pod_runs_keeps_its_place_whatever_waits_for_kueue() -> None:
    """A pod that was evicted alone is to come back beside it."""
    evicted = pod("a-1", "a", selection=NodeSelection(), **AT_ITS_GATE, created=NOW - 100)
    actions = reconcile(world(runs(held_in_second(), "r2-n1"), works=(work(GROUP),), pods=(evicted,)))
    assert not any(isinstance(action, Release) for action in actions)


def test_an_evicted_gang_queues_again_when_kueue_admits_it() -> None:
    """It still names its reservation; it is given no place past those that wait before it."""
    job = replace(work(GROUP, created=2.0), ids=(reservation_id(GROUP.name),))
    older = work(gang(2, name="default/Job/b", required="rack"), queued=True, created=1.0)
    seen = world(booked(pools(), gang(2, name="default/Job/c", required="rack")), works=(job, older))
    for waits in (True, False):
        pods = admitted_in(SECOND, held_back=waits, awaits_kueue=waits, created=NOW - 1)
        actions = reconcile(replace(seen, pods=pods), Memory(missing=frozenset({GROUP.name})))
        assert [action.gang.name for action in actions if isinstance(action, Admit)] == ["default/Job/b"]
        assert not any(isinstance(action, Restore) for action in actions)


def test_what_kueue_wrote_is_read_from_a_pod_that_it_gates() -> None:
    """Node selector and tolerations; of a pod that Kueue does not manage neither is kept."""
    stored = o.annotated(o.POD, {})
    stored["spec"] |= {
        "nodeSelector": {"pool": "second"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    }
    plain = unbound_from(stored, Where())
    stored["metadata"]["labels"] = {"kueue.x-k8s.io/managed": "true"}
    managed = unbound_from(stored, Where())
    assert plain is not None
    assert managed is not None
    assert plain.selection is None
    assert managed.selection == NodeSelection({"pool": "second"}, (Toleration("dedicated", "Exists"),))
    on_node = pod_from({**stored, "spec": {**stored["spec"], "nodeName": "n"}}, Where())
    assert on_node is not None
    assert on_node.selection == managed.selection
