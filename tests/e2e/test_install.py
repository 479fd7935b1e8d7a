"""`kubectl apply -k manifests/` on an empty cluster: accepted, harmless while no replica runs, and removable.

No replica ever responds, which is the worst case for the user who installs it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import yaml

from certs.authority import bundle_pem, new_authority
from tests.e2e.api import ApiError, Json
from tests.e2e.binaries import ROOT
from tests.e2e.configured import CONFIGURATIONS
from tests.e2e.conftest import policy_set
from tests.e2e.controlplane import exists
from tests.e2e.processes import wait_until
from tests.e2e.rollout import INSTALLED, Rollout
from tests.e2e.stage import Cluster
from webhook.admission.configuration.settings import MODES
from webhook.workloads.options import MODE

MANIFESTS = ROOT / "manifests"
SYSTEM = "bayplan-system"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
BUNDLE = base64.b64encode(bundle_pem([new_authority(datetime.now(UTC)).certificate])).decode()
FOLDER = f"/api/v1/namespaces/{SYSTEM}"


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Iterator[str]:
    """The output of kubectl when everything was applied; all of it is deleted afterwards."""
    output = cluster.kubectl("apply", "-k", str(MANIFESTS))
    assert output.status == 0, output.err
    yield output.out + output.err
    cluster.kubectl("delete", "-k", str(MANIFESTS), "--ignore-not-found", "--timeout=90s")


def pod(name: str, **limits: str) -> Json:
    """A pod with these requests."""
    container = {"name": "c", "image": "busybox", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def test_a_server_side_dry_run_is_accepted_once_the_namespace_is_there(cluster: Cluster) -> None:
    """Every manifest is valid, known to the API server, and within PodSecurity `restricted`: no warning."""
    applied = cluster.kubectl("apply", "-f", str(MANIFESTS / "10-namespace.yaml"))
    assert applied.status == 0, applied.err
    output = cluster.kubectl("apply", "-k", str(MANIFESTS), "--dry-run=server")
    assert output.status == 0, output.err[:2000]
    assert output.err == ""
    assert len(output.out.splitlines()) == len(list(documents()))


def test_everything_applies_at_once_without_a_warning(installed: str) -> None:
    """Each object is created or configured."""
    assert "Warning" not in installed
    assert len(installed.splitlines()) == len(list(documents()))


def test_applying_again_changes_nothing_that_replicas_wrote(cluster: Cluster, installed: str) -> None:
    """The Secret keeps its content and the configurations their caBundle."""
    secret = f"{FOLDER}/secrets/bayplan-tls"
    cluster.api.merge(secret, {"data": {"ca-bundle.crt": "eA=="}})
    paths = [f"{CONFIGURATIONS}/{kind}/bayplan" for kind in KINDS]
    for path in paths:
        webhooks = cluster.api.get(path)["webhooks"]
        for webhook in webhooks:
            webhook["clientConfig"]["caBundle"] = BUNDLE
        cluster.api.merge(path, {"webhooks": webhooks})
    output = cluster.kubectl("apply", "-k", str(MANIFESTS))
    assert output.status == 0, output.err
    assert cluster.api.get(secret)["data"] == {"ca-bundle.crt": "eA=="}
    for path in paths:
        bundles = {webhook["clientConfig"].get("caBundle") for webhook in cluster.api.get(path)["webhooks"]}
        assert bundles == {BUNDLE}


def test_our_own_pods_are_let_in_while_nothing_serves(cluster: Cluster, installed: str) -> None:
    """All replicas pass PodSecurity `restricted`, and our own webhooks do not stand in their way."""
    wait_until(lambda: len(cluster.api.items(f"{FOLDER}/pods")) == 3, "the Deployment's pods", 60)
    accounts = {pod["spec"]["serviceAccountName"] for pod in cluster.api.items(f"{FOLDER}/pods")}
    assert accounts == {"bayplan"}


def test_other_workloads_pass_while_nothing_serves(cluster: Cluster, installed: str) -> None:
    """With every replica down, a pod without a GPU is made as ever, and so is a Deployment with its pods."""
    cluster.api.create("/api/v1/namespaces/default/pods", pod("plain", cpu="1"))
    cluster.api.delete("/api/v1/namespaces/default/pods/plain", grace=0)
    labels = {"app": "plain"}
    template = {"metadata": {"labels": labels}, "spec": pod("plain", cpu="1")["spec"]}
    folder = "/apis/apps/v1/namespaces/default/deployments"
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    cluster.api.create(folder, {"metadata": {"name": "plain"}, "spec": spec})
    pods = "/api/v1/namespaces/default/pods"
    wait_until(lambda: len(cluster.api.items(pods, labelSelector="app=plain")) == 2, "the Deployment's pods")
    cluster.api.delete(f"{folder}/plain")


@pytest.fixture(scope="module")
def spaces(cluster: Cluster) -> Iterator[None]:
    """A namespace for each mode, `in-MODE`, and one without the label."""
    labels = {f"in-{mode}": {MODE: mode} for mode in MODES} | {"in-none": {}}
    for name, own in labels.items():
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": own}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(lambda path=account: exists(cluster.api, path), "its service account")
    yield
    for name in labels:
        cluster.api.delete(f"/api/v1/namespaces/{name}")


def refused(cluster: Cluster, namespace: str, body: Json | None = None) -> str:
    """The error for a GPU pod (this one, or a plain one), or "" if it may be created."""
    folder = f"/api/v1/namespaces/{namespace}/pods"
    try:
        cluster.api.create(folder, body or pod("gpu", **{"nvidia.com/gpu": "1"}))
    except ApiError as error:
        return str(error)
    cluster.api.delete(f"{folder}/gpu", grace=0)
    return ""


def test_while_nothing_serves_gpu_workloads_are_refused_where_they_are_enforced_alone(
    cluster: Cluster, installed: str, spaces: None
) -> None:
    """The API server says whose webhook did not answer; in every other namespace they pass as ever."""
    assert 'failed calling webhook "pods.bayplan.dev"' in refused(cluster, "in-enforce")
    for name in ("in-warn", "in-audit", "in-off", "in-none"):
        assert refused(cluster, name) == ""


def test_gpus_of_an_init_container_or_sidecar_alone_are_not_made_unseen(
    cluster: Cluster, installed: str, spaces: None
) -> None:
    """The API server asks about them by the match conditions as they ship; 0 of them are none."""
    asking = pod("gpu", **{"nvidia.com/gpu": "1"})["spec"]["containers"][0]
    for own in ({}, {"restartPolicy": "Always"}):
        body = pod("gpu", cpu="1")
        body["spec"]["initContainers"] = [{**asking, "name": "first", **own}]
        assert 'failed calling webhook "pods.bayplan.dev"' in refused(cluster, "in-enforce", body)
    assert refused(cluster, "in-enforce", pod("gpu", **{"nvidia.com/gpu": "0"})) == ""


def test_the_overlay_enforces_namespaces_without_the_label_too(
    cluster: Cluster, installed: str, spaces: None
) -> None:
    """`kubectl apply -k overlays/enforce` and back; those that are labelled stay as they were."""
    for folder, closed in ((ROOT / "overlays" / "enforce", True), (MANIFESTS, False)):
        output = cluster.kubectl("apply", "-k", str(folder))
        assert (output.status, output.err) == (0, "")
        wait_until(lambda closed=closed: bool(refused(cluster, "in-none")) is closed, "the selectors")
        assert refused(cluster, "in-enforce")
        assert [refused(cluster, f"in-{mode}") for mode in ("warn", "audit", "off")] == ["", "", ""]


def test_gpu_pods_of_the_system_namespaces_pass_while_nothing_serves(
    cluster: Cluster, installed: str
) -> None:
    """A device plugin's pod in kube-system never waits for us."""
    path = "/api/v1/namespaces/kube-system"
    wait_until(lambda: exists(cluster.api, f"{path}/serviceaccounts/default"), "its service account")
    cluster.api.create(f"{path}/pods", pod("gpu", **{"nvidia.com/gpu": "1"}))
    cluster.api.delete(f"{path}/pods/gpu", grace=0)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("create", "pods"),
        ("delete", "pods"),
        ("delete", "nodes"),
        ("patch", "nodes"),
        ("list", "secrets"),
        ("get", "secrets"),
        ("create", "secrets"),
        ("get", "configmaps/other"),
        ("patch", "mutatingwebhookconfigurations/kai-admission"),
        ("delete", "mutatingwebhookconfigurations/bayplan"),
        ("create", "clusterrolebindings"),
    ],
)
def test_the_service_account_may_not(cluster: Cluster, installed: str, verb: str, resource: str) -> None:
    """RBAC gives it what it works with, and no more."""
    assert not may(cluster, verb, resource)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("get", "secrets/bayplan-tls"), ("patch", "validatingwebhookconfigurations/bayplan"), ("list", "nodes")],
)
def test_the_service_account_may(cluster: Cluster, installed: str, verb: str, resource: str) -> None:
    """What is named, it may."""
    assert may(cluster, verb, resource)


def test_uninstalling_leaves_nothing_behind(cluster: Cluster, installed: str) -> None:
    """After `kubectl delete -k` not one of the objects is there, the namespace included."""
    output = cluster.kubectl("delete", "-k", str(MANIFESTS), "--timeout=90s")
    assert output.status == 0, output.err
    left = cluster.kubectl("get", "-k", str(MANIFESTS), "--ignore-not-found", "-o", "name")
    assert left.out == ""
    kinds = (
        "clusterroles,clusterrolebindings,crd,mutatingwebhookconfigurations,validatingwebhookconfigurations"
    )
    labelled = cluster.kubectl("get", kinds, "-o", "name")
    assert [name for name in labelled.out.split() if "bayplan" in name] == []


def documents() -> Iterator[Json]:
    """Every object of the kustomization."""
    for name in yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"]:
        yield from (body for body in yaml.safe_load_all((MANIFESTS / name).read_text()) if body)


def may(cluster: Cluster, verb: str, resource: str) -> bool:
    """What the API server permits our service account, in our own namespace or for cluster-scoped objects."""
    user = f"--as=system:serviceaccount:{SYSTEM}:bayplan"
    return cluster.kubectl("auth", "can-i", verb, resource, user, "-n", SYSTEM).out.strip() == "yes"


def test_a_replica_that_starts_before_all_else_waits_and_takes_up_what_comes_in_any_order(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its account has no right; there are no kinds, no Secret, no webhooks. They come last things first."""
    folder = tmp_path_factory.mktemp("order")
    rollout = Rollout(cluster, folder, policy_set("default-scheduler", folder))
    try:
        rollout.apply("10-namespace.yaml")
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bayplan"}}
        wait_until(lambda: exists(cluster.api, FOLDER), "the namespace")
        cluster.api.create(f"{FOLDER}/serviceaccounts", account)
        replica = rollout.start()
        wait_until(lambda: replica.process.popen.poll() is None and bool(replica.process.tail()), "a word")
        time.sleep(3)
        assert replica.process.popen.poll() is None, replica.process.tail()
        rollout.configure()
        for name in reversed(INSTALLED[1:]):
            rollout.apply(name)
            time.sleep(1)
        replica.process.wait_until(lambda: replica.readiness()[0] == 200, 90)
        wait_until(lambda: bool(rollout.bundle()), "the CA in the configurations")
    finally:
        rollout.uninstall()
