"""A gang for which KAI evicts others is let in without a place, ungated and unfenced, and told so.

r1: a b, both in use by a gang of KAI's default class    r2: c d, held by a gang that has not started
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.priority import PriorityClass, PriorityClasses
from planner.model.schedulers import SchedulersSeen
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.placement.schedulers.kai_preemption import is_preemptible
from webhook.placement.stamp import placement_annotation
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


def test_its_pods_are_fenced_off_what_has_not_started_alone() -> None:
    """Of a rack in use KAI evicts the pods; one that was just promised stays promised."""
    template = ask(job()).object
    assert template is not None
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo", "uid": "u", "controller": True}
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    pod: Any = {"apiVersion": "v1", "kind": "Pod", **template["spec"]["template"]}
    pod["metadata"] = {
        **pod["metadata"],
        "name": "demo-0",
        "namespace": "team",
        "labels": index,
        "ownerReferences": [owner],
    }
    stored = ask(pod).object
    assert stored is not None
    assert "schedulingGates" not in stored["spec"]
    terms = stored["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = terms["nodeSelectorTerms"]
    assert [(row["operator"], row["values"]) for row in term["matchExpressions"]] == [("NotIn", ["c", "d"])]
    assert any(row["key"] == "bayplan.dev/reserved" for row in stored["spec"]["tolerations"])


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
