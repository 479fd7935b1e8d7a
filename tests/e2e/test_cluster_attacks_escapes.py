"""Bypassing the plan needs a permission: an editor of a namespace does not have it, an administrator does.

The API server alone decides (manifests/32-escapes.yaml); no webhook runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.kubectl import Output
from tests.e2e.processes import wait_until
from tests.e2e.stage import Cluster
from tests.manifests.test_conditions import annotated

SPACE, FREE = "escapes", "escapes-free"
FILES = ("20-crds.yaml", "32-escapes.yaml")
OPERATED = "jobsets.jobset.x-k8s.io,leaderworkersets.leaderworkerset.x-k8s.io,pytorchjobs.kubeflow.org,\
mpijobs.kubeflow.org,rayclusters.ray.io,rayjobs.ray.io"
"""Kinds of operators, whose roles give them to editors."""


@pytest.fixture(scope="module", autouse=True)
def installed(cluster: Cluster) -> Iterator[None]:
    """The admission policy; an enforced namespace and one without the label; ann, an editor, and bob, an
    administrator.
    """
    for name in FILES:
        assert cluster.kubectl("apply", "-f", str(ROOT / "manifests" / name)).status == 0
    for space in (SPACE, FREE):
        cluster.kubectl("create", "namespace", space)
        cluster.kubectl("create", "rolebinding", "ann", "--clusterrole=edit", "--user=ann", "-n", space)
        cluster.kubectl("create", "rolebinding", "bob", "--clusterrole=admin", "--user=bob", "-n", space)
        account = f"--serviceaccount={SPACE}:tenant"
        cluster.kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", account, "-n", space)
        operated = ("role", "operated", "--verb=create", f"--resource={OPERATED}", "-n", space)
        assert cluster.kubectl("create", *operated).status == 0
        users = ("--role=operated", "--user=ann", "--user=bob", "-n", space)
        cluster.kubectl("create", "rolebinding", "operated", *users)
    cluster.kubectl("label", "namespace", SPACE, "bayplan.dev/mode=enforce")
    wait_until(lambda: "bayplan-escapes" in apply(cluster, "ann", ESCAPES["skip"]).err, "the policy", 60)
    wait_until(lambda: apply(cluster, "bob", ESCAPES["skip"]).status == 0, "the role to be aggregated", 60)
    yield
    for space in (SPACE, FREE):
        cluster.kubectl("delete", "namespace", space, "--wait=false")
    cluster.kubectl("delete", "-f", str(ROOT / "manifests" / FILES[1]), "--ignore-not-found")


def pod(**spec: Any) -> Json:
    """A pod with a GPU."""
    container = {"name": "main", "image": "busybox:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "escapes"}}
    return {**body, "spec": {"containers": [container], **spec}}


def job(**annotations: str) -> Json:
    """A Job whose template has these annotations."""
    template = {"metadata": {"annotations": annotations}, "spec": {**pod()["spec"], "restartPolicy": "Never"}}
    head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "escapes"}}
    return {**head, "spec": {"template": template}}


def owned(body: Json, api_version: str, kind: str) -> Json:
    """The object with an owner reference that names a controller of its author's."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "mine", "uid": "u", "controller": True}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [owner]}}


def replica_set(replicas: int = 1) -> Json:
    """A ReplicaSet."""
    labels = {"app": "escapes"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    head = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "escapes"}}
    return {
        **head,
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def templated(kind: str, **spec: Any) -> Json:
    """An object of this kind of Kubernetes' own; `spec` is added to that of its pods."""
    labels = {"app": "escapes"}
    head = {"apiVersion": "v1" if kind == "ReplicationController" else "apps/v1", "kind": kind}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": {**pod()["spec"], **spec}}
    return {**head, "metadata": {"name": "escapes"}, "spec": {"selector": selector, "template": template}}


def posing() -> Json:
    """A container with GPUs whose image has the name of a pause container."""
    return {**pod()["spec"]["containers"][0], "image": "registry.example.com/ann/pause:train"}


def operated(kind: str, path: str) -> Json:
    """An object of an operator's kind that leaves the plan by what stands at this path."""
    return {**annotated(kind, path, SKIP)[-1], "metadata": {"name": "escapes"}}


SKIP = {"bayplan.dev/skip": "true"}
ESCAPES: dict[str, Json] = {
    "skip": {**pod(), "metadata": {"name": "escapes", "annotations": SKIP}},
    "skip in a template": job(**SKIP),
    "skip in a JobSet": operated("JobSet", "spec.replicatedJobs[].template.spec.template.metadata"),
    "skip in a JobSet's Job": operated("JobSet", "spec.replicatedJobs[].template.metadata"),
    "skip in a LeaderWorkerSet": operated(
        "LeaderWorkerSet", "spec.leaderWorkerTemplate.workerTemplate.metadata"
    ),
    "skip in a PyTorchJob": operated("PyTorchJob", "spec.pytorchReplicaSpecs{}.template.metadata"),
    "skip in an MPIJob": operated("MPIJob", "spec.mpiReplicaSpecs{}.template.metadata"),
    "skip in a RayCluster": operated("RayCluster", "spec.workerGroupSpecs[].template.metadata"),
    "skip in a RayJob": operated("RayJob", "spec.rayClusterSpec.headGroupSpec.template.metadata"),
    "skip as a placeholder": pod(containers=[posing()]),
    "skip as placeholders": templated("Deployment", containers=[posing()]),
    "reserve-domain": job(**{"bayplan.dev/reserve": "domain"}),
    "bind": pod(nodeName="r1-n1"),
    "bind in a template": templated("Deployment", nodeName="r1-n1"),
    "bind in a ReplicationController": templated("ReplicationController", nodeName="r1-n1"),
    "bind daemons": templated("DaemonSet"),
    "adopt": owned(pod(), "batch/v1", "Job"),
    "adopt a Job": owned(job(), "jobset.x-k8s.io/v1alpha2", "JobSet"),
    "adopt a ReplicaSet": owned(replica_set(), "v1", "ConfigMap"),
    "adopt a planned Job": owned(job(**{"bayplan.dev/placement": "{}"}), "batch/v1", "CronJob"),
}
"""Each begins with the verb that it needs."""


def apply(cluster: Cluster, user: str, body: Json, space: str = SPACE) -> Output:
    """`kubectl create --dry-run=server` as this user."""
    arguments = ("create", "--dry-run=server", "-n", space, f"--as={user}", "-f", "-")
    return cluster.kubectl(*arguments, text=json.dumps(body))


@pytest.mark.parametrize("escape", ESCAPES)
def test_an_editor_may_not(cluster: Cluster, escape: str) -> None:
    """The message names the verb, the resource and the role."""
    output = apply(cluster, "ann", ESCAPES[escape])
    assert output.status != 0
    verb, _, _ = escape.partition(" ")
    assert f"needs the verb {verb} on reservations.bayplan.dev" in output.err


@pytest.mark.parametrize("escape", ESCAPES)
def test_an_administrator_of_the_namespace_may(cluster: Cluster, escape: str) -> None:
    """The verbs are added to the ClusterRole admin."""
    assert apply(cluster, "bob", ESCAPES[escape]).status == 0


def changed(cluster: Cluster, user: str, body: Json, patch: Json, *, dry_run: bool = True) -> Output:
    """`kubectl patch` of the object by this user."""
    arguments = ("patch", body["kind"], body["metadata"]["name"], "-n", SPACE, f"--as={user}")
    how = ("--type=merge", "-p", json.dumps(patch), *(["--dry-run=server"] if dry_run else []))
    return cluster.kubectl(*arguments, *how)


@contextmanager
def stored(cluster: Cluster, body: Json) -> Iterator[Json]:
    """The object as Bob has created it, which is deleted in the end."""
    output = cluster.kubectl(
        "create", "-n", SPACE, "--as=bob", "-f", "-", "-o", "yaml", text=json.dumps(body)
    )
    assert output.status == 0, output.err
    try:
        yield output.object
    finally:
        cluster.kubectl("delete", body["kind"], body["metadata"]["name"], "-n", SPACE)


def suspended() -> Json:
    """A Job that makes no pods."""
    body = job()
    return {**body, "spec": {**body["spec"], "suspend": True}}


LABELLED = {"metadata": {"labels": {"team": "blue"}}}
UPDATES: dict[str, tuple[Json, Json]] = {
    "skip": (suspended(), {"metadata": {"annotations": SKIP}}),
    "skip in a template": (replica_set(0), {"spec": {"template": {"metadata": {"annotations": SKIP}}}}),
    "bind in a template": (replica_set(0), {"spec": {"template": {"spec": {"nodeName": "r1-n1"}}}}),
    "skip as placeholders": (
        replica_set(0),
        {"spec": {"template": {"spec": {"containers": [posing()]}}}},
    ),
    "adopt a Job": (suspended(), owned({"metadata": {}}, "batch/v1", "Job")),
    "adopt a ReplicaSet": (replica_set(0), owned({"metadata": {}}, "apps/v1", "Deployment")),
}
"""An object, and what is changed of it."""


@pytest.mark.parametrize("escape", UPDATES)
def test_an_update_brings_no_escape_either(cluster: Cluster, escape: str) -> None:
    """Of an object that was created without one; a label needs nothing."""
    body, patch = UPDATES[escape]
    verb, _, _ = escape.partition(" ")
    with stored(cluster, body):
        assert (
            f"needs the verb {verb} on reservations.bayplan.dev" in changed(cluster, "ann", body, patch).err
        )
        assert changed(cluster, "bob", body, patch).status == 0
        assert changed(cluster, "ann", body, LABELLED).status == 0


def test_what_an_administrator_allowed_stays_so_in_later_updates(cluster: Cluster) -> None:
    """A skipping template and a controller: an editor may label the object, not name another controller."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
    body = replica_set(0)
    with stored(cluster, config) as owner, stored(cluster, body):
        patch = owned({"metadata": {}}, "v1", "ConfigMap")
        (reference,) = patch["metadata"]["ownerReferences"]
        reference["uid"] = owner["metadata"]["uid"]
        template = {"spec": {"template": {"metadata": {"annotations": SKIP}}}}
        assert changed(cluster, "bob", body, patch | template, dry_run=False).status == 0
        output = changed(cluster, "ann", body, LABELLED)
        assert output.status == 0, output.err
        reference["name"] = "other"
        assert "needs the verb adopt" in changed(cluster, "ann", body, patch).err


def test_the_clusters_own_controllers_own_what_they_make(cluster: Cluster) -> None:
    """Of an editor's Deployment: a ReplicaSet, its pod, and a pod that was there before and is taken over."""
    labels = {"app": "owned"}
    orphan = {**pod(), "metadata": {"name": "orphan", "labels": labels}}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "owned"}, "spec": spec}
    alone = {**replica_set(), "metadata": {"name": "alone"}, "spec": {**spec, "replicas": 1}}
    for body in (orphan, alone):
        output = cluster.kubectl("create", "-n", SPACE, "--as=ann", "-f", "-", text=json.dumps(body))
        assert output.status == 0, output.err

    def owners(selector: str) -> list[str]:
        pods = cluster.api.items(f"/api/v1/namespaces/{SPACE}/pods", labelSelector=selector)
        return [owner["kind"] for item in pods for owner in item["metadata"].get("ownerReferences", [])]

    try:
        wait_until(lambda: owners("app=owned") == ["ReplicaSet"], "the pod to be taken over", 60)
        cluster.kubectl("delete", "rs", "alone", "-n", SPACE)
        cluster.kubectl("create", "-n", SPACE, "--as=ann", "-f", "-", text=json.dumps(deployment))
        wait_until(lambda: owners("app=owned,pod-template-hash") == ["ReplicaSet"] * 2, "pods", 60)
    finally:
        for name in ("deployment/owned", "rs/alone", "pod/orphan"):
            cluster.kubectl("delete", name, "-n", SPACE, "--ignore-not-found", "--wait=false")


def test_an_editor_starts_a_job_of_a_cronjob_by_hand(cluster: Cluster) -> None:
    """kubectl writes the CronJob as its controller."""
    spec = {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": job()["spec"]}}
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}
    with stored(cluster, body):
        arguments = ("create", "job", "now", "--from=cronjob/nightly", "-n", SPACE, "--as=ann")
        output = cluster.kubectl(*arguments, "--dry-run=server", "-o", "yaml")
        assert output.status == 0, output.err
        assert output.object["metadata"]["ownerReferences"][0]["controller"] is True


GATE, KUEUES = {"name": "bayplan.dev/queued"}, {"name": "kueue.x-k8s.io/topology"}


@pytest.fixture
def queued(cluster: Cluster) -> Iterator[str]:
    """A pod that waits at the gate; editors here may bind pods too, as roles with `pods/*` say."""
    cluster.kubectl("create", "role", "binds", "--verb=create", "--resource=pods/binding", "-n", SPACE)
    cluster.kubectl("create", "rolebinding", "binds", "--role=binds", "--user=ann", "--user=bob", "-n", SPACE)
    body = {**pod(schedulingGates=[KUEUES, GATE]), "metadata": {"name": "queued", "namespace": SPACE}}
    assert cluster.kubectl("create", "-n", SPACE, "-f", "-", text=json.dumps(body)).status == 0
    yield "queued"
    cluster.kubectl("delete", "pod", "queued", "-n", SPACE, "--grace-period=0", "--force")
    cluster.kubectl("delete", "rolebinding/binds", "role/binds", "-n", SPACE)


def ungate(cluster: Cluster, user: str, name: str, gate: int = 1) -> Output:
    """The gate taken from the pod by this user, as a dry run. `gate`: its index."""
    patch = json.dumps([{"op": "remove", "path": f"/spec/schedulingGates/{gate}"}])
    arguments = (
        "patch",
        "pod",
        name,
        "-n",
        SPACE,
        "--dry-run=server",
        f"--as={user}",
        "--type=json",
        "-p",
        patch,
    )
    return cluster.kubectl(*arguments)


def bind(cluster: Cluster, user: str, name: str) -> Output:
    """The pod bound to a node by this user, as a dry run."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "r1-n1"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    path = f"/api/v1/namespaces/{SPACE}/pods/{name}/binding?dryRun=All"
    return cluster.kubectl("create", "--raw", path, f"--as={user}", "-f", "-", text=json.dumps(body))


def test_a_pod_that_waits_is_let_in_by_bayplan_or_by_permission(cluster: Cluster, queued: str) -> None:
    """In Kubernetes whoever may change a pod may take its gates away: then it would run unplanned."""
    assert "needs the verb ungate on reservations.bayplan.dev" in ungate(cluster, "ann", queued).err
    assert ungate(cluster, "bob", queued).status == 0
    assert "needs the verb" not in ungate(cluster, "system:serviceaccount:bayplan-system:bayplan", queued).err


def test_the_placement_of_a_pod_that_waits_is_written_by_bayplan(cluster: Cluster, queued: str) -> None:
    """A pod whose scheduler is to evict others is let in by it: anybody could say so of their own."""
    forged = json.dumps({"decision": "queued", "waitsFor": "eviction"})
    arguments = ("annotate", "pod", queued, "-n", SPACE, f"bayplan.dev/placement={forged}")

    def noted(user: str) -> str:
        return cluster.kubectl(*arguments, "--dry-run=server", f"--as={user}").err

    assert "needs the verb ungate on reservations.bayplan.dev" in noted("ann")
    assert noted("bob") == ""
    assert "needs the verb" not in noted("system:serviceaccount:bayplan-system:bayplan")


def test_kueues_gate_is_taken_by_operators_or_by_permission(cluster: Cluster, queued: str) -> None:
    """A pod with it is not planned: without Kueue it would run anywhere."""
    assert "needs the verb ungate on reservations.bayplan.dev" in ungate(cluster, "ann", queued, 0).err
    assert ungate(cluster, "bob", queued, 0).status == 0
    assert "needs the verb" not in ungate(cluster, "system:serviceaccount:kueue-system:kueue", queued, 0).err


def test_other_changes_of_a_pod_that_waits_need_nothing(cluster: Cluster, queued: str) -> None:
    """A label, by an editor."""
    label = ("label", "pod", queued, "-n", SPACE, "a=b", "--as=ann", "--dry-run=server")
    assert cluster.kubectl(*label).status == 0


def test_a_pod_is_bound_by_schedulers_or_by_permission(cluster: Cluster, queued: str) -> None:
    """Who may create bindings says to which node; where it is asked for bob the API server sees the gate."""
    assert "needs the verb bind on reservations.bayplan.dev" in bind(cluster, "ann", queued).err
    assert "needs the verb" not in bind(cluster, "bob", queued).err
    assert "needs the verb" not in bind(cluster, "system:kube-scheduler", queued).err


def test_a_tenants_service_account_is_nobodys_controller(cluster: Cluster) -> None:
    """It is asked as a person is, though it names a controller: that of another namespace is not."""
    tenant = f"system:serviceaccount:{SPACE}:tenant"
    assert "needs the verb adopt" in apply(cluster, tenant, ESCAPES["adopt"]).err
    assert apply(cluster, tenant, ESCAPES["adopt"], FREE).status == 0


@pytest.mark.parametrize("body", [pod(), job(), job(**{"bayplan.dev/reserve": "auto"})], ids=str)
def test_who_escapes_nothing_needs_nothing(cluster: Cluster, body: Json) -> None:
    """Pods and Jobs as ever."""
    assert apply(cluster, "ann", body).status == 0


@pytest.mark.parametrize("escape", ESCAPES)
def test_where_nothing_is_enforced_nothing_is_asked(cluster: Cluster, escape: str) -> None:
    """Without the label Bayplan only audits."""
    assert apply(cluster, "ann", ESCAPES[escape], FREE).status == 0
