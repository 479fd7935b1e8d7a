"""A gang for which KAI evicts others is let in without a place, once the gangs that hold nodes have started.

r1: a b, both in use by a gang of KAI's default class    r2: c d, held by a gang that has not started
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.priority import PriorityClass, PriorityClasses
from planner.model.reservation import reservation_id
from planner.model.schedulers import SchedulersSeen
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.placement.schedulers.evictions import fits_beside_unstarted, open_reservations, unstarted
from webhook.placement.schedulers.kai_preemption import is_preemptible
from webhook.placement.stamp import placement_annotation, placement_note
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.wire.request import from_object

KAIS = "kai.scheduler/topology-required-placement"
CLASSES = {"train": 50, "build": 100}


def full(*, kai: bool = True) -> Snapshot:
    """Both racks taken, in a cluster with KAI and its classes."""
    snapshot = cluster("r1: a b\nr2: c d")
    for name in ("running", "held"):
        group = gang(2, name=f"team/Job/{name}", required="rack")
        reservation = reservation_for(snapshot, group, plan(snapshot, group))
        assert reservation is not None
        snapshot = snapshot.with_reservation(reservation)
        if name == "running":
            for node in sorted(assigned.node for assigned in reservation.assignments):
                snapshot = snapshot.with_pod(
                    BoundPod(f"team/{node}", node, amounts(gpu=8, pods=1), reservation.id)
                )
    seen = SchedulersSeen({"kai-scheduler": "pod kai/scheduler"} if kai else {}, watched=True)
    classes = PriorityClasses({name: PriorityClass(name, value) for name, value in CLASSES.items()})
    return replace(snapshot, base=replace(snapshot.base, schedulers=seen, priorities=classes))


def job(priority: str = "build", level: str = KAIS) -> Any:
    """A gang of one rack for KAI, of this class."""
    manifest: Any = o.annotated(o.JOB, {level: "rack"})
    manifest["metadata"]["labels"] = {"priorityClassName": priority} if priority else {}
    manifest["spec"]["parallelism"] = manifest["spec"]["completions"] = 2
    spec = manifest["spec"]["template"]["spec"]
    spec["schedulerName"] = "kai-scheduler"
    spec["containers"][0]["resources"]["limits"][o.GPU] = 8
    return manifest


def ask(obj: Any, snapshot: Snapshot | None = None) -> Decision:
    """The decision on a new object."""
    return decide(
        from_object(obj, uid="uid"), policies("node-affinity"), snapshot or full(), "mutate", Environment()
    )


def test_it_is_let_in_and_told_for_what() -> None:
    """KAI alone would start it after seconds; behind a gate of ours it would never see it."""
    decision = ask(job())
    assert decision.response.allowed
    assert decision.object is not None
    note = placement_annotation(decision.object["metadata"]["annotations"])
    assert (note.decision, note.in_queue, note.waits_for_eviction) == ("queued", False, True)
    words = "team/Job/demo is admitted without a place, for KAI to evict gangs of lower priority: 2 pods"
    assert any(warning.startswith(words) for warning in decision.response.warnings)


def created(template: Any, **annotations: str) -> Any:
    """A pod that the job's controller creates from its template."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo", "uid": "u", "controller": True}
    pod: Any = {"apiVersion": "v1", "kind": "Pod", **template["spec"]["template"]}
    pod["metadata"] = {
        **pod["metadata"],
        "annotations": {**pod["metadata"]["annotations"], **annotations},
        "name": "demo-0",
        "namespace": "team",
        "labels": {"batch.kubernetes.io/job-completion-index": "0"},
        "ownerReferences": [owner],
    }
    return pod


def alone() -> Any:
    """A pod of a high class without an owner, which takes a node."""
    limits = {"limits": {o.GPU: 8}}
    spec = {
        "schedulerName": "kai-scheduler",
        "containers": [{"name": "c", "image": "i", "resources": limits}],
    }
    metadata = {"name": "alone", "namespace": "team", "labels": {"priorityClassName": "build"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def both_pods() -> list[Any]:
    """A pod of the job, and one without an owner."""
    template = ask(job()).object
    assert template is not None
    return [created(template), alone()]


@pytest.mark.parametrize("number", [0, 1], ids=["of a Job", "alone"])
def test_its_pods_wait_at_the_gate_for_gangs_that_have_not_started(number: int) -> None:
    """An affinity that excludes their nodes could not be taken back, and one that excludes all held nodes
    kept a pod without an owner off what KAI evicts."""
    stored = ask(both_pods()[number]).object
    assert stored is not None
    assert stored["spec"]["schedulingGates"] == [{"name": "bayplan.dev/queued"}]
    assert "affinity" not in stored["spec"]
    assert [row["key"] for row in stored["spec"]["tolerations"]] == ["bayplan.dev/reserved"]
    assert placement_annotation(stored["metadata"]["annotations"]).waits_for_eviction


@pytest.mark.parametrize("number", [0, 1], ids=["of a Job", "alone"])
def test_they_are_not_gated_where_all_that_hold_nodes_run(number: int) -> None:
    """KAI evicts for them at once, and nothing is to be protected."""
    snapshot = full().with_pod(
        BoundPod("team/c", "c", amounts(gpu=8, pods=1), reservation_id("team/Job/held"))
    )
    stored = ask(both_pods()[number], snapshot).object
    assert stored is not None
    assert "schedulingGates" not in stored["spec"]
    assert "affinity" not in stored["spec"]
    assert len(stored["spec"]["tolerations"]) == 2


def test_a_gang_that_was_evicted_is_not_about_to_start() -> None:
    """It keeps its reservation, but another gang's pod uses a node of it: what evicted it is not kept off."""
    snapshot = full()
    (held,) = (held for held in snapshot.reservations if held.gang == "team/Job/held")
    assert set(unstarted(snapshot).values()) == {"team/Job/held"}
    daemon = BoundPod("kube-system/agent", "c", amounts(gpu=1, pods=1), daemon=True)
    plain = BoundPod("team/plain", "c", amounts(pods=1))
    assert unstarted(snapshot.with_pod(daemon).with_pod(plain)) == unstarted(snapshot)
    evicted = snapshot.with_pod(BoundPod("team/high-0", "c", amounts(gpu=8, pods=1)))
    assert unstarted(evicted) == {}
    assert held in open_reservations(evicted)
    stored = ask(both_pods()[0], evicted).object
    assert stored is not None
    assert "schedulingGates" not in stored["spec"]
    assert len(stored["spec"]["tolerations"]) == 2


def test_a_gang_that_waits_for_new_nodes_too_waits_for_evictions() -> None:
    """One note decides about the gate, and about what the controller does."""
    group = gang(2, name="team/Job/demo", required="rack")
    answer = replace(plan(full(), group), waits_for_nodes=True, waits_for_eviction=True)
    note = placement_note(WorkloadPlan((GangPlan(group, answer),), full()))
    assert placement_annotation({"bayplan.dev/placement": note}).waits_for_eviction


@pytest.mark.parametrize(
    ("pods", "starting", "fits"),
    [
        (2, "r2: c d", True),
        (3, "r2: c d", False),
        (3, "", True),
        (2, "r1: a b\nr2: c d", False),
    ],
)
def test_the_other_nodes_must_be_enough_for_the_whole_gang(pods: int, starting: str, fits: bool) -> None:
    """Of four nodes some are held by gangs that have not started; what runs on the others may be evicted."""
    snapshot = cluster("r1: a b\nr2: c d")
    for line in filter(None, starting.split("\n")):
        group = gang(2, name=f"team/Job/{line[:2]}", required="rack")
        reservation = reservation_for(snapshot, group, plan(snapshot, group))
        assert reservation is not None
        snapshot = snapshot.with_reservation(reservation)
    free = set(snapshot.nodes) - set(snapshot.holders)
    for node in free:
        snapshot = snapshot.with_pod(BoundPod(f"other/{node}", node, amounts(gpu=8, pods=1)))
    assert fits_beside_unstarted(snapshot, gang(pods, name="team/Job/demo")) == fits


@pytest.mark.parametrize(
    ("priority", "level", "kai"),
    [
        ("train", KAIS, True),
        ("", KAIS, True),
        ("unknown", KAIS, True),
        ("build", "bayplan.dev/required-level", True),
        ("build", KAIS, False),
    ],
    ids=["default class", "no class", "unknown class", "a level that KAI does not read", "no KAI"],
)
def test_others_wait_at_the_gate(priority: str, level: str, kai: bool) -> None:
    """KAI evicts nobody for them, and would start them anywhere."""
    decision = ask(job(priority, level), full(kai=kai))
    assert decision.object is not None
    assert placement_annotation(decision.object["metadata"]["annotations"]).in_queue


@pytest.mark.parametrize(
    ("stated", "class_name", "preempted"),
    [
        ("", "", True),
        ("", "train", True),
        ("", "build", False),
        ("", "nowhere", None),
        ("preemptible", "build", True),
        ("non-preemptible", "train", False),
        ("preemptible", "nowhere", True),
        ("some word", "build", False),
    ],
)
def test_the_label_decides_and_else_the_class(stated: str, class_name: str, preempted: bool | None) -> None:
    """KAI preempts below priority 100; for an unknown class the answer is unknown."""
    classes = PriorityClasses({name: PriorityClass(name, value) for name, value in CLASSES.items()})
    assert is_preemptible(stated, class_name, classes) is preempted


def test_pods_of_a_set_that_was_let_in_get_no_place_of_their_own() -> None:
    """A LeaderWorkerSet's pods are StatefulSets': planned one by one they were pinned each to a free host of
    some rack, and the set could start nowhere, after KAI had evicted others either (seen on KAI)."""
    body: Any = o.annotated(o.LWS, {KAIS: "rack"})
    body["metadata"]["labels"] = {"priorityClassName": "build"}
    group = body["spec"]["leaderWorkerTemplate"]
    group.pop("leaderTemplate", None)
    group["size"] = 2
    body["spec"]["replicas"] = 1
    spec = group["workerTemplate"]["spec"]
    spec["schedulerName"] = "kai-scheduler"
    spec["containers"][0]["resources"]["limits"][o.GPU] = 8
    admitted = ask(body)
    assert admitted.plan is not None
    assert (admitted.plan.decision, admitted.plan.gated) == ("queued", False)
    assert admitted.object is not None
    template = admitted.object["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    snapshot = full().ended("team/Job/held")
    labels = {"leaderworkerset.sigs.k8s.io/name": "demo"}
    for name, owner in (("demo-0", "demo"), ("demo-0-1", "demo-0")):
        metadata = {**template["metadata"], "name": name, "namespace": "team", "labels": labels}
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": "1", "controller": True}
        ]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        decision = ask(pod, snapshot)
        assert decision.plan is None
        assert "affinity" not in (decision.object or pod)["spec"]
