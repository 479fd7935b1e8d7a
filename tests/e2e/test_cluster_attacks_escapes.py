"""Bypassing the plan needs a permission: an editor of a namespace does not have it, an administrator does.

The API server alone decides (manifests/32-escapes.yaml); no webhook runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.kubectl import Output
from tests.e2e.processes import wait_until
from tests.e2e.stage import Cluster

SPACE, FREE = "escapes", "escapes-free"
FILES = ("20-crds.yaml", "32-escapes.yaml")


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


def owned() -> Json:
    """A pod whose owner reference names a Job of its author's."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "mine", "uid": "u", "controller": True}
    return {**pod(), "metadata": {"name": "escapes", "ownerReferences": [owner]}}


ESCAPES: dict[str, Json] = {
    "skip": {**pod(), "metadata": {"name": "escapes", "annotations": {"bayplan.dev/skip": "true"}}},
    "skip-in-a-template": job(**{"bayplan.dev/skip": "true"}),
    "reserve-domain": job(**{"bayplan.dev/reserve": "domain"}),
    "bind": pod(nodeName="r1-n1"),
    "adopt": owned(),
}


def apply(cluster: Cluster, user: str, body: Json, space: str = SPACE) -> Output:
    """`kubectl create --dry-run=server` as this user."""
    arguments = ("create", "--dry-run=server", "-n", space, f"--as={user}", "-f", "-")
    return cluster.kubectl(*arguments, text=json.dumps(body))


@pytest.mark.parametrize("escape", ESCAPES)
def test_an_editor_may_not(cluster: Cluster, escape: str) -> None:
    """The message names the verb, the resource and the role."""
    output = apply(cluster, "ann", ESCAPES[escape])
    assert output.status != 0
    verb = "skip" if escape.startswith("skip") else escape
    assert f"needs the verb {verb} on reservations.bayplan.dev" in output.err


@pytest.mark.parametrize("escape", ESCAPES)
def test_an_administrator_of_the_namespace_may(cluster: Cluster, escape: str) -> None:
    """The verbs are added to the ClusterRole admin."""
    assert apply(cluster, "bob", ESCAPES[escape]).status == 0


GATE = {"name": "bayplan.dev/queued"}


@pytest.fixture
def queued(cluster: Cluster) -> Iterator[str]:
    """A pod that waits at the gate; editors here may bind pods too, as roles with `pods/*` say."""
    cluster.kubectl("create", "role", "binds", "--verb=create", "--resource=pods/binding", "-n", SPACE)
    cluster.kubectl("create", "rolebinding", "binds", "--role=binds", "--user=ann", "--user=bob", "-n", SPACE)
    body = {**pod(schedulingGates=[GATE]), "metadata": {"name": "queued", "namespace": SPACE}}
    assert cluster.kubectl("create", "-n", SPACE, "-f", "-", text=json.dumps(body)).status == 0
    yield "queued"
    cluster.kubectl("delete", "pod", "queued", "-n", SPACE, "--grace-period=0", "--force")
    cluster.kubectl("delete", "rolebinding/binds", "role/binds", "-n", SPACE)


def ungate(cluster: Cluster, user: str, name: str) -> Output:
    """The gate taken from the pod by this user, as a dry run."""
    patch = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])
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
