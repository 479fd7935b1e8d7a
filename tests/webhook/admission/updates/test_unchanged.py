"""Running workloads are not changed: templates by other controllers, and templates that an update leaves
alone.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from tests.policies.helpers import cluster, policies, with_parameters
from tests.webhook.policy.helpers import OURS, mutating, patch
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.admission.updates.unchanged import Changeable
from webhook.jsontools.diff import patch_between
from webhook.placement.fair_order import WaitingGang
from webhook.policy import load
from webhook.policy.engine.mutation.mutate import Effect, Mutated
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object
from webhook.workloads.keys.annotation_keys import APPLIED, PLACEMENT, QUEUED_GATE, RESERVATION

Json = dict[str, Any]
HALL = cluster("superpod-32")
MUTABLE = (o.DEPLOYMENT, o.STATEFUL_SET, o.CRON_JOB, o.LWS, o.RAY_CLUSTER, o.RAY_JOB, o.RAY_SERVICE)
EVERY = [workload for workload in o.EVERY if workload["kind"] != "Pod"]


def kind(obj: Json) -> str:
    """The name of a case."""
    return str(obj["kind"])


def asked(
    obj: Json,
    old: Json | None = None,
    *,
    by: PolicySet | None = None,
    on: Snapshot | None = HALL,
    environment: Environment | None = None,
) -> Decision:
    """The decision on a new object, or on an update of the old one."""
    request = from_object(obj, uid="uid", operation="UPDATE" if old else "CREATE", old_object=old)
    decision = decide(request, by or policies(), on, "mutate", environment or Environment())
    assert decision.response.allowed, decision.response.message
    return decision


def stored(decision: Decision) -> Json:
    """The object as the API server would store it."""
    assert decision.object is not None
    return copy.deepcopy(dict(decision.object))


def holding(decision: Decision) -> Snapshot:
    """The cluster in which what a decision reserves is reserved, and claimed: the object is stored."""
    snapshot = HALL
    for step in decision.steps:
        if isinstance(step, Wish):
            snapshot = snapshot.with_reservation(replace(step.reservation, state="claimed", expires=None))
    return snapshot


def with_metadata(obj: Json, **metadata: Any) -> Json:
    """A copy with more metadata."""
    return {**copy.deepcopy(obj), "metadata": {**copy.deepcopy(obj["metadata"]), **metadata}}


def owned(obj: Json, api_version: str, owner_kind: str, name: str = "above") -> Json:
    """A copy that has a controller."""
    owner = {"apiVersion": api_version, "kind": owner_kind, "name": name, "uid": "1", "controller": True}
    return with_metadata(obj, ownerReferences=[owner])


def with_image(obj: Json, path: tuple[str | int, ...]) -> Json:
    """A copy whose template at `path` has another image."""
    return o.changed(obj, (*path, "spec", "containers", 0, "image"), "trainer:2")


def pointers(decision: Decision) -> set[str]:
    """Where the object was changed, two steps deep."""
    return {"/".join(operation["path"].split("/")[1:3]) for operation in decision.response.patch}


OWNERS = [
    (o.REPLICA_SET, "apps/v1", "Deployment"),
    (o.JOB, "batch/v1", "CronJob"),
    (o.JOB, "jobset.x-k8s.io/v1alpha2", "JobSet"),
    (o.STATEFUL_SET, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    (o.STATEFUL_SET, "v1", "Pod"),
    (o.RAY_CLUSTER, "ray.io/v1", "RayJob"),
    (o.DEPLOYMENT, "nvidia.com/v1alpha1", "DynamoGraphDeployment"),
    (o.PYTORCH_JOB, "kubeflow.org/v1beta1", "Trial"),
    (o.JOB_SET, "example.com/v1", "NobodyKnows"),
]


@pytest.mark.parametrize(
    ("obj", "api_version", "owner_kind"), OWNERS, ids=[f"{row[0]['kind']} of {row[2]}" for row in OWNERS]
)
def test_a_template_that_another_controller_made_is_left_alone(
    obj: Json, api_version: str, owner_kind: str
) -> None:
    """It compares what it made with its own template: 90 ReplicaSets in 25 seconds, when one was scaled."""
    decision = asked(owned(obj, api_version, owner_kind))
    assert stored(decision)["spec"] == obj["spec"]


def test_a_controller_without_templates_asked_nobody_yet() -> None:
    """A TrainJob names a runtime: what its JobSet is like, admission sees in the JobSet alone."""
    assert "spec/replicatedJobs" in pointers(
        asked(owned(o.JOB_SET, "trainer.kubeflow.org/v1alpha1", "TrainJob"))
    )


def test_an_owner_that_is_no_controller_changes_nothing() -> None:
    """Such an owner reference is only for garbage collection."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"}
    assert "spec/template" in pointers(asked(with_metadata(o.DEPLOYMENT, ownerReferences=[owner])))


@pytest.mark.parametrize("obj", EVERY, ids=kind)
def test_a_label_brings_no_patch_to_what_was_there_before(obj: Json) -> None:
    """A label on a running StatefulSet once caused a rolling restart."""
    assert asked(with_metadata(obj, labels={"team": "blue"}), obj).response.patch == []
    assert asked(with_metadata(obj, finalizers=["example.com/hold"]), obj).response.patch == []
    assert asked({**obj, "status": {"observedGeneration": 2}}, obj).response.patch == []


@pytest.mark.parametrize("obj", EVERY, ids=kind)
def test_a_label_brings_no_patch_to_what_was_mended_by_other_policies(obj: Json) -> None:
    """Parameters and policies may have changed since the object was applied."""
    first = stored(asked(obj))
    other = with_parameters(**{"guaranteed-qos.direction": "cut", "scheduler-name.name": "volcano"})
    assert asked(with_metadata(first, labels={"team": "blue"}), first, by=other).response.patch == []
    assert (
        asked(
            with_metadata(first, labels={"team": "blue"}), first, by=policies("guaranteed-qos")
        ).response.patch
        == []
    )


@pytest.mark.parametrize("obj", [o.DEPLOYMENT, o.STATEFUL_SET, o.LWS], ids=kind)
def test_what_was_there_before_is_scaled_without_a_plan(obj: Json) -> None:
    """Its pods have their places, which no plan knows of; and no number of them is refused."""
    for replicas in (1, 4, 400):
        decision = asked(o.changed(obj, ("spec", "replicas"), replicas), obj)
        assert (decision.response.patch, decision.steps, decision.plan) == ([], (), None)


def test_a_gang_that_has_a_plan_is_scaled_without_a_touch_of_its_template() -> None:
    """The third replica's place is held, and the object says so; its pods are pinned when they come."""
    first = asked(o.changed(o.LWS, ("spec", "leaderWorkerTemplate", "size"), 2))
    old = stored(first)
    decision = asked(o.changed(old, ("spec", "replicas"), 3), old, on=holding(first))
    assert pointers(decision) == {"metadata/annotations"}
    assert [step.reservation.gang for step in decision.steps if isinstance(step, Wish)] == [
        "team/LeaderWorkerSet/demo/2"
    ]


TEMPLATES = [
    (o.DEPLOYMENT, ("spec", "template"), "its pods will be replaced"),
    (o.STATEFUL_SET, ("spec", "template"), "its pods will be replaced"),
    (o.CRON_JOB, ("spec", "jobTemplate", "spec", "template"), "its later jobs"),
    (o.LWS, ("spec", "leaderWorkerTemplate", "workerTemplate"), "its groups will be replaced"),
    (o.RAY_SERVICE, ("spec", "rayClusterConfig", "headGroupSpec", "template"), "a new cluster"),
]  # fmt: skip


@pytest.mark.parametrize(("obj", "path", "words"), TEMPLATES, ids=[row[0]["kind"] for row in TEMPLATES])
def test_a_template_that_is_changed_is_mended_and_a_warning_says_what_that_means(
    obj: Json, path: tuple[str | int, ...], words: str
) -> None:
    """It came from before Bayplan; its pods are replaced anyway."""
    gpus = o.changed(obj, (*path, "spec", "containers", 0, "resources"), {"limits": {o.GPU: 1}})
    decision = asked(with_image(gpus, path), gpus)
    assert "cpu" in str(stored(decision)["spec"])
    (warning,) = (warning for warning in decision.response.warnings if words in warning)
    assert "guaranteed-qos" in warning
    assert ".".join(map(str, path)) in warning


def test_a_change_of_what_was_mended_already_is_not_warned_of() -> None:
    """`kubectl set image` on it: the user's own change alone replaces the pods."""
    old = stored(asked(o.DEPLOYMENT))
    decision = asked(with_image(old, ("spec", "template")), old)
    assert not [warning for warning in decision.response.warnings if "replaced" in warning]


def test_leader_and_workers_are_one_revision_and_are_mended_together() -> None:
    """Otherwise half of a gang would go to another scheduler, and never start."""
    decision = asked(with_image(o.LWS, ("spec", "leaderWorkerTemplate", "workerTemplate")), o.LWS)
    group = stored(decision)["spec"]["leaderWorkerTemplate"]
    assert (
        group["leaderTemplate"]["spec"]["schedulerName"] == group["workerTemplate"]["spec"]["schedulerName"]
    )


def test_a_worker_group_that_is_added_leaves_the_others_as_they_are() -> None:
    """KubeRay makes its pods in the cluster that runs; a change of the others would make a new one."""
    groups = o.RAY_CLUSTER["spec"]["workerGroupSpecs"]
    added_group = {"groupName": "more", "replicas": 1, "template": o.pod_template(4)}
    decision = asked(
        o.changed(o.RAY_CLUSTER, ("spec", "workerGroupSpecs"), [added_group, *groups]), o.RAY_CLUSTER
    )
    first, *others = stored(decision)["spec"]["workerGroupSpecs"]
    assert "schedulerName" in first["template"]["spec"]
    assert others == groups
    assert stored(decision)["spec"]["headGroupSpec"] == o.RAY_CLUSTER["spec"]["headGroupSpec"]


@pytest.mark.parametrize("obj", EVERY, ids=kind)
def test_the_same_manifest_again_changes_nothing_under_other_policies(obj: Json) -> None:
    """Replaced as it was written, as GitOps tools do: nothing that admission wrote is in it."""
    old = stored(asked(obj))
    for by in (policies(), policies("guaranteed-qos"), with_parameters(**{"scheduler-name.name": "volcano"})):
        after = stored(asked(obj, old, by=by))
        assert after["spec"] == old["spec"]
        ours = {key for key in old["metadata"].get("annotations", {}) if key.startswith("bayplan.dev/")}
        assert ours <= after["metadata"].get("annotations", {}).keys()


def test_a_manifest_that_was_changed_and_goes_back_is_followed() -> None:
    """To the first image again, by whatever tool: the digests of the first manifest no longer count."""
    path = ("spec", "template")
    first = stored(asked(o.DEPLOYMENT))
    for edited in (stored(asked(with_image(o.DEPLOYMENT, path), first)), with_image(first, path)):
        back = stored(asked(o.DEPLOYMENT, edited, by=policies("guaranteed-qos")))
        assert back["spec"]["template"]["spec"]["containers"][0]["image"] == "trainer:1"


def test_a_reinvocation_leaves_the_digests_as_they_are() -> None:
    """The API server asks twice where another webhook changed something elsewhere in the object."""
    first = stored(asked(o.DEPLOYMENT))
    assert stored(asked(first)) == first
    assert len(first["metadata"]["annotations"][APPLIED]) == 33


WRITES = patch('[JSONPatch{op: "add", path: "/spec/template/spec/priorityClassName", value: "high"}]')
DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments"], "operations": ["*"]}


def test_what_a_policy_writes_into_such_a_template_is_taken_back() -> None:
    """Whatever it matches: and it is not told that it changed what it did not change."""
    rules = {"resourceRules": [DEPLOYMENTS]}
    document = mutating(WRITES, name="writes", api=OURS, matchConstraints=rules)
    by = load([("policy.yaml", yaml.safe_dump(document))])
    assert "spec/template" in pointers(asked(o.DEPLOYMENT, by=by))
    decision = asked(with_metadata(o.DEPLOYMENT, labels={"a": "b"}), o.DEPLOYMENT, by=by)
    assert (decision.response.patch, decision.effects) == ([], ())


def pod_of_job(**metadata: Any) -> Json:
    """A pod as the Job controller makes it, of a Job whose template was left alone."""
    template = o.JOB["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "demo-",
            "namespace": "team",
            "labels": {"batch.kubernetes.io/job-completion-index": "0"},
        },
        **template,
    }
    return with_metadata(owned(pod, "batch/v1", "Job", "demo"), **metadata)


def test_a_call_that_relies_on_a_hold_of_its_gang_asks_the_ledger_for_it() -> None:
    """Another call may have proposed it and withdraw it yet; once it is claimed, nothing is asked."""
    job = asked(o.JOB)
    (step,) = (step for step in job.steps if isinstance(step, Wish))
    on = HALL.with_reservation(step.reservation)
    assert [again.reservation for again in asked(o.JOB, on=on).steps if isinstance(again, Wish)] == [
        step.reservation
    ]
    assert asked(o.JOB, on=holding(job)).steps == ()


def test_the_pods_of_an_owned_gang_take_the_place_that_it_holds() -> None:
    """A CronJob's Job is planned, and holds its place; its template does not say so, so its pods are told."""
    job = asked(owned(o.JOB, "batch/v1", "CronJob"))
    (held,) = (step.reservation for step in job.steps if isinstance(step, Wish))
    assert held.gang == "team/Job/demo"
    decision = asked(pod_of_job(), on=holding(job))
    pod = stored(decision)
    assert pod["metadata"]["annotations"][RESERVATION] == held.id
    assert held.domain[-1] in str(pod["spec"]["affinity"])
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert decision.steps == ()


def test_the_pods_of_an_owned_gang_that_waits_wait_at_the_gate() -> None:
    """No template says so here either: the queue tells."""
    job = asked(owned(o.JOB, "batch/v1", "CronJob"))
    assert job.plan is not None
    queue = (WaitingGang(job.plan.first.group),)
    pod = stored(asked(pod_of_job(), environment=Environment(waiting=lambda: queue)))
    assert pod["spec"]["schedulingGates"] == [{"name": QUEUED_GATE}]


def test_a_pod_of_a_job_from_before_is_mended_as_it_comes() -> None:
    """Nobody planned its Job: it is Guaranteed, and is let in."""
    decision = asked(pod_of_job())
    pod = stored(decision)
    assert "cpu" in pod["spec"]["containers"][0]["resources"]["requests"]
    assert "schedulingGates" not in pod["spec"]
    assert decision.steps == ()


def test_a_pod_whose_owner_leaves_the_plan_is_left_alone() -> None:
    """The annotation need not stand on the template."""
    environment = Environment(skips=lambda owner: owner == "team/Job/demo")
    assert asked(pod_of_job(), environment=environment).response.patch == []
    assert asked(o.annotated(o.POD, {"bayplan.dev/skip": "true"})).response.patch == []


def test_a_pod_whose_owner_is_only_named_like_what_leaves_the_plan_is_planned() -> None:
    """A Job of another API group is another object."""
    environment = Environment(skips=lambda owner: owner == "team/Job/demo")
    pod = pod_of_job()
    pod["metadata"]["ownerReferences"][0]["apiVersion"] = "batch.volcano.sh/v1alpha1"
    assert asked(pod, environment=environment).plan is not None


def test_a_pod_of_a_daemon_set_is_left_alone() -> None:
    """It has its node already: no plan, no gate, no scheduler, no resources."""
    assert asked(owned(o.POD, "apps/v1", "DaemonSet")).response.patch == []


@pytest.mark.parametrize(
    "namespace",
    [
        "kube-system",
        "bayplan-system",
        "gpu-operator",
        "kai-resource-reservation",
        "kai-scale-adjust",
        "kueue-system",
    ],
)
def test_what_the_cluster_itself_runs_is_left_alone(namespace: str) -> None:
    """Offline too, where no webhook configuration leaves the namespace out."""
    for obj in (o.POD, o.JOB, o.DEPLOYMENT):
        assert asked(with_metadata(obj, namespace=namespace)).response.patch == []


def test_no_note_of_a_plan_is_written_to_what_had_none() -> None:
    """An update of a Job from before says nothing of a place that it does not hold."""
    decision = asked(with_metadata(o.JOB, labels={"a": "b"}), o.JOB)
    assert PLACEMENT not in stored(decision)["metadata"].get("annotations", {})


@pytest.mark.parametrize("obj", [o.DEPLOYMENT, o.STATEFUL_SET], ids=kind)
def test_an_update_may_mend_what_was_stored_malformed(obj: Json) -> None:
    """The stored object was never checked, for example because its namespace was in mode `off`."""
    old = o.annotated(obj, {"bayplan.dev/reserve": "everything"})
    image = ("spec", "template", "spec", "containers", 0, "image")
    assert asked(o.changed(obj, image, "trainer:2"), old).plan is not None


@pytest.mark.parametrize("obj", EVERY, ids=kind)
def test_a_finalizer_can_be_removed_from_what_was_stored_malformed(obj: Json) -> None:
    """Else the object would never end. Where the update changes its spec, the error is told."""
    malformed = o.annotated(obj, {"bayplan.dev/reserve": "everything"})
    decision = asked(malformed, with_metadata(malformed, finalizers=["example.com/hold"]))
    assert not decision.response.patch
    assert any("was so before" in warning for warning in decision.response.warnings)
    changed = from_object({**malformed, "spec": {}}, uid="uid", operation="UPDATE", old_object=malformed)
    assert not decide(changed, policies(), HALL, "mutate", Environment()).response.allowed


def test_what_is_undone_is_no_effect_whatever_the_names_on_its_path() -> None:
    """A key of a map may have a slash, which a JSON pointer escapes."""
    kept = Changeable(kept=(("spec", "replicas", "a/b", "template"),))
    before = {"spec": {"replicas": {"a/b": {"template": {"x": 1}}}}}
    after = {"spec": {"replicas": {"a/b": {"template": {"x": 2}}}}}
    effect = Effect("p", "", tuple(patch_between(before, after)))
    assert kept.restored(before, Mutated(after, (effect,))) == Mutated(before)
