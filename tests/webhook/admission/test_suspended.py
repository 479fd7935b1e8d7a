"""A suspended object reserves nothing: its plan is a preview, and the real one is made when it is resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.manifests.schedulers.systems import DEFINITION, SchedulerSigns
from tests.policies.helpers import policies
from tests.webhook.admission.updates.test_unchanged import HALL, asked, holding, stored
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.ledger_steps import ReservationClaim, ReservationRelease
from webhook.jsontools.path import find
from webhook.wire.request import from_object
from webhook.workloads import read, wants_plan
from webhook.workloads.keys.annotation_keys import PLACEMENT, RESERVATION

SUSPENDED = o.changed(o.JOB, ("spec", "suspend"), True)
KINDS = [
    (o.JOB, ("spec", "suspend")),
    (o.JOB_SET, ("spec", "suspend")),
    (o.RAY_JOB, ("spec", "suspend")),
    (o.PYTORCH_JOB, ("spec", "runPolicy")),
]


def suspended(obj: Any, path: tuple[str, ...], value: bool = True) -> Any:
    """A copy that is suspended, or not."""
    return o.changed(obj, path, {"suspend": value} if path[-1] == "runPolicy" else value)


def reserved(decision: Any) -> list[str]:
    """The gangs for which a decision makes a reservation."""
    return [step.reservation.gang for step in decision.steps if isinstance(step, Wish)]


@pytest.mark.parametrize(("obj", "path"), KINDS, ids=[row[0]["kind"] for row in KINDS])
def test_what_is_suspended_is_previewed_and_holds_nothing(obj: Any, path: tuple[str, ...]) -> None:
    """A warning states the preview; nothing is annotated, pinned or gated."""
    decision = asked(suspended(obj, path))
    assert decision.steps == ()
    (preview,) = [warning for warning in decision.response.warnings if "is suspended" in warning]
    assert "holds nothing until it is resumed. Now it would be admitted: " in preview
    text = str(stored(decision))
    assert PLACEMENT not in text
    assert RESERVATION not in text
    assert "nodeAffinity" not in text


@pytest.mark.parametrize(("obj", "path"), KINDS, ids=[row[0]["kind"] for row in KINDS])
def test_it_is_planned_when_it_is_resumed(obj: Any, path: tuple[str, ...]) -> None:
    """Its placement is reserved then, and written onto the object."""
    old = stored(asked(suspended(obj, path)))
    decision = asked(suspended(old, path, False), old)
    assert reserved(decision) == [f"team/{obj['kind']}/demo"]
    assert stored(decision)["metadata"]["annotations"][RESERVATION]


def test_of_a_job_that_never_started_the_template_learns_the_place() -> None:
    """Only then does the API server allow changes of the template's annotations."""
    old = stored(asked(SUSPENDED))
    for status, learns in (({}, True), ({"startTime": "2026-11-22T10:00:00Z"}, False)):
        before = {**old, "status": status}
        resumed = asked(o.changed(before, ("spec", "suspend"), False), before)
        annotations = stored(resumed)["spec"]["template"].get("metadata", {}).get("annotations", {})
        assert (RESERVATION in annotations) is learns
        container = old["spec"]["template"]["spec"]["containers"]
        assert stored(resumed)["spec"]["template"]["spec"]["containers"] == container


def test_six_suspended_jobs_hold_nothing_and_a_seventh_has_its_place() -> None:
    """The Jobs are created one after another, as Kueue does."""
    for number in range(6):
        job = o.changed(SUSPENDED, ("metadata", "name"), f"train-{number}")
        assert asked(job).steps == ()
    assert reserved(asked(o.JOB)) == ["team/Job/demo"]


@pytest.mark.parametrize("shows", [("kueue.x-k8s.io", "ClusterQueue"), ("", DEFINITION)])
def test_a_job_in_a_queue_of_kueues_is_taken_for_suspended_where_kueue_is(shows: tuple[str, str]) -> None:
    """Kueue's webhook suspends it, before Bayplan's or after; without Kueue it starts at once, and its gang
    needs its place."""
    job = o.changed(o.JOB, ("metadata", "labels"), {"kueue.x-k8s.io/queue-name": "research"})
    assert reserved(asked(job)) == ["team/Job/demo"]
    signs = SchedulerSigns()
    signs.add(*shows, "default/clusterqueues.kueue.x-k8s.io")
    seen = replace(HALL.base.schedulers, shown=signs.seen((), ()).shown)
    assert asked(job, on=Snapshot(replace(HALL.base, schedulers=seen))).steps == ()


def test_a_running_job_that_is_suspended_gives_its_place_back() -> None:
    """In the validating call, when it is sure to be stored; of what others hold it gives nothing."""
    first = asked(o.JOB)
    running = {**stored(first), "metadata": {**stored(first)["metadata"], "uid": "uid-1"}}
    stops = o.changed(running, ("spec", "suspend"), True)
    (held,) = holding(first).reservations
    for owner, released in (("uid-1", 1), ("uid-2", 0)):
        book = HALL.with_reservation(_claimed(held, owner))
        request = from_object(stops, uid="uid", operation="UPDATE", old_object=running)
        decision = decide(request, policies(), book, "validate")
        assert decision.response.allowed
        assert [type(step) for step in decision.steps] == [ReservationRelease] * released
        assert not any(isinstance(step, ReservationClaim) for step in decision.steps)


def _claimed(held: Any, owner: str) -> Any:
    return replace(held, state="claimed", owner_uid=owner)


def test_a_gang_that_is_scaled_from_none_is_planned() -> None:
    """It had no pods before, so none runs outside the plan."""
    old = stored(asked(o.changed(o.LWS, ("spec", "replicas"), 0)))
    decision = asked(o.changed(old, ("spec", "replicas"), 1), old)
    assert reserved(decision) == ["team/LeaderWorkerSet/demo/0"]


def _at_scale(replicas: int, obj: Any, **annotations: str) -> Any:
    return o.changed(o.annotated(obj, annotations), ("spec", "replicas"), replicas)


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (_at_scale(0, o.STATEFUL_SET, **{"bayplan.dev/gang": "demo"}), ("spec", "template")),
        (_at_scale(0, o.DEPLOYMENT, **{"bayplan.dev/gang": "demo"}), ("spec", "template")),
        (_at_scale(0, o.LWS), ("spec", "leaderWorkerTemplate", "workerTemplate")),
    ],
    ids=["StatefulSet", "Deployment", "LeaderWorkerSet"],
)
def test_pods_of_a_gang_that_is_scaled_from_none_by_its_subresource_wait_for_one_another(
    obj: Any, path: tuple[str, ...]
) -> None:
    """`kubectl scale` and autoscalers ask no webhook: its pods are the first that is heard of it."""
    template = find(stored(asked(obj)), path)
    labels = {"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    metadata = {**template["metadata"], "name": "demo-0", "namespace": "team"}
    metadata |= {"labels": labels} if obj["kind"] == "LeaderWorkerSet" else {}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "demo", "uid": "1", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        **template,
        "metadata": {**metadata, "ownerReferences": [owner]},
    }
    decision = asked(pod)
    assert decision.plan is not None
    assert decision.plan.gated
    assert decision.plan.first.group.name.startswith(f"team/{obj['kind']}/demo")
    assert reserved(decision) == []


@pytest.mark.parametrize(
    "obj",
    [_at_scale(0, o.STATEFUL_SET), _at_scale(0, o.LWS, **{"bayplan.dev/skip": "true"})],
    ids=["pods each for themselves", "skips"],
)
def test_nothing_is_said_to_pods_that_start_each_by_itself(obj: Any) -> None:
    """They are planned one by one, or not at all."""
    assert "bayplan.dev/gang-of" not in str(stored(asked(obj)))


def test_a_job_of_independent_pods_is_admitted_where_some_fit() -> None:
    """100 whole-node pods on 32 nodes: the Job reserves nothing, and each pod is planned alone."""
    template = o.pod_template(8)
    bag = o.changed(o.changed(o.BAG, ("spec", "parallelism"), 100), ("spec", "completions"), 100)
    decision = asked(o.changed(bag, ("spec", "template"), template))
    assert decision.steps == ()
    assert decision.plan is not None
    assert decision.plan.decision == "admitted"
    pod = _pod_of(stored(decision), "demo-x1")
    assert reserved(asked(pod)) == ["team/Pod/demo-x1"]
    gang = _pod_of(stored(decision), "demo-0", {"batch.kubernetes.io/job-completion-index": "0"})
    assert reserved(asked(gang)) == []


def test_a_pod_of_a_bag_that_found_no_room_gets_the_place_that_is_free_when_it_comes() -> None:
    """Its template does not say that it waits: each pod asks for itself."""
    full = HALL
    for number in range(40):
        whole = o.changed(o.POD, ("spec",), o.pod_template(8)["spec"])
        decision = asked(o.changed(whole, ("metadata", "name"), f"p-{number}"), on=full)
        for step in decision.steps:
            full = full.with_reservation(step.reservation)
    bag = asked(o.changed(o.BAG, ("spec", "template"), o.pod_template(8)), on=full)
    assert bag.plan is not None
    assert bag.plan.decision == "queued"
    pod = _pod_of(stored(bag), "demo-x1")
    assert "schedulingGates" in stored(asked(pod, on=full))["spec"]
    assert reserved(asked(pod)) == ["team/Pod/demo-x1"]


def _pod_of(job: Any, name: str, annotations: Any = None) -> Any:
    """A pod as the Job controller makes it."""
    template = job["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo", "uid": "1", "controller": True}
    metadata = template.get("metadata") or {}
    notes = {**(metadata.get("annotations") or {}), **(annotations or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "annotations": notes, "ownerReferences": [owner]},
        "spec": template["spec"],
    }


def test_pods_that_kueue_places_are_neither_planned_nor_pinned() -> None:
    """Admitted with a topology, a template has Kueue's gate, and each pod gets its host as a node selector: a
    place of ours would contradict it for ever, and what we held would be used by nobody."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "team"},
        },
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "completionMode": "Indexed",
            "suspend": False,
            "template": {
                "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
                "spec": {
                    "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
                    "containers": [
                        {"name": "t", "image": "t", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
                    ],
                },
            },
        },
    }
    workload = read(job)
    assert workload.skip
    assert not wants_plan(workload)
