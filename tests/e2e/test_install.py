"""`kubectl apply -k manifests/` on a bare cluster: accepted, harmless while nothing runs, and removable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import ApiError, Json
from tests.e2e.binaries import ROOT
from tests.e2e.controlplane import exists
from tests.e2e.pki import write_kubeconfig
from tests.e2e.processes import wait_until
from tests.e2e.stage import Cluster

MANIFESTS = ROOT / "manifests"
SYSTEM = "bayplan-system"
FOLDER = f"/api/v1/namespaces/{SYSTEM}"


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Iterator[str]:
    """What kubectl printed when everything was applied; all of it is deleted afterwards."""
    said = cluster.kubectl("apply", "-k", str(MANIFESTS))
    assert said.status == 0, said.err
    yield said.out + said.err
    cluster.kubectl("delete", "-k", str(MANIFESTS), "--ignore-not-found", "--timeout=90s")


def pod(name: str, **limits: str) -> Json:
    """A pod that asks for this."""
    container = {"name": "c", "image": "busybox", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def test_a_server_side_dry_run_is_accepted_once_the_namespace_is_there(cluster: Cluster) -> None:
    """Every manifest is valid, known to the API server, and within PodSecurity `restricted`: no warning."""
    made = cluster.kubectl("apply", "-f", str(MANIFESTS / "10-namespace.yaml"))
    assert made.status == 0, made.err
    said = cluster.kubectl("apply", "-k", str(MANIFESTS), "--dry-run=server")
    assert (said.status, said.err) == (0, "")
    assert len(said.out.splitlines()) == len(list(documents()))


def test_everything_applies_at_once_without_a_warning(installed: str) -> None:
    """Each object is created or configured."""
    assert "Warning" not in installed
    assert len(installed.splitlines()) == len(list(documents()))


def test_our_own_pod_is_let_in_while_nothing_serves(cluster: Cluster, installed: str) -> None:
    """The Deployment's pod passes PodSecurity `restricted`, and our own webhooks do not stand in its way."""
    wait_until(lambda: bool(cluster.api.items(f"{FOLDER}/pods")), "the Deployment's pod", 60)
    (found,) = cluster.api.items(f"{FOLDER}/pods")
    assert found["spec"]["serviceAccountName"] == "bayplan"


def test_other_workloads_pass_while_nothing_serves(cluster: Cluster, installed: str) -> None:
    """With every replica down, a pod without a GPU is made as ever."""
    cluster.api.create("/api/v1/namespaces/default/pods", pod("plain", cpu="1"))
    cluster.api.delete("/api/v1/namespaces/default/pods/plain", grace=0)


def test_gpu_workloads_are_refused_while_nothing_serves(cluster: Cluster, installed: str) -> None:
    """Validation fails closed, and the API server says whose webhook did not answer."""
    with pytest.raises(ApiError, match=r"failed calling webhook .pods\.bayplan\.dev"):
        cluster.api.create("/api/v1/namespaces/default/pods", pod("gpu", **{"nvidia.com/gpu": "1"}))


def test_gpu_pods_of_the_system_namespaces_pass_while_nothing_serves(
    cluster: Cluster, installed: str
) -> None:
    """A device plugin's pod in kube-system never waits for us."""
    path = "/api/v1/namespaces/kube-system"
    wait_until(lambda: exists(cluster.api, f"{path}/serviceaccounts/default"), "its service account")
    cluster.api.create(f"{path}/pods", pod("gpu", **{"nvidia.com/gpu": "1"}))
    cluster.api.delete(f"{path}/pods/gpu", grace=0)


def test_the_sidecars_own_script_reads_the_cluster_with_its_service_account(
    cluster: Cluster, installed: str, tmp_path: Path
) -> None:
    """What 40-deployment.yaml runs, run here with a token of the service account, fills the folder."""
    environment = as_sidecar(cluster, tmp_path)
    found = tmp_path / "cluster"
    found.mkdir()
    running = subprocess.Popen(
        ["sh", "-c", script().replace("/cluster/", f"{found}/")], env=environment, stderr=subprocess.PIPE
    )
    try:
        wait_until(lambda: (found / "topologies.bayplan.dev.yaml").exists(), "the folder to be filled")
    finally:
        running.kill()
    files = {path.name for path in found.iterdir() if path.suffix == ".yaml"}
    assert files == {
        "nodes.yaml",
        "pods.yaml",
        "topologies.kai.scheduler.yaml",
        "topologies.bayplan.dev.yaml",
    }


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("create", "pods"), ("delete", "nodes"), ("patch", "pods"), ("get", "secrets"), ("list", "configmaps")],
)
def test_the_service_account_may_not_write_nor_read_secrets(
    cluster: Cluster, installed: str, verb: str, resource: str
) -> None:
    """RBAC gives it what the sidecar reads, and no more."""
    user = f"--as=system:serviceaccount:{SYSTEM}:bayplan"
    said = cluster.kubectl("auth", "can-i", verb, resource, user, "--all-namespaces")
    assert (said.status, said.out.strip()) == (1, "no")


def test_uninstalling_leaves_nothing_behind(cluster: Cluster, installed: str) -> None:
    """After `kubectl delete -k` not one of the objects is there, the namespace included."""
    said = cluster.kubectl("delete", "-k", str(MANIFESTS), "--timeout=90s")
    assert said.status == 0, said.err
    left = cluster.kubectl("get", "-k", str(MANIFESTS), "--ignore-not-found", "-o", "name")
    assert left.out == ""


def documents() -> Iterator[Json]:
    """Every object of the kustomization."""
    for name in yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"]:
        yield from (body for body in yaml.safe_load_all((MANIFESTS / name).read_text()) if body)


def script() -> str:
    """The shell script of the Deployment's sidecar."""
    (deployment,) = (body for body in documents() if body["kind"] == "Deployment")
    (sidecar,) = deployment["spec"]["template"]["spec"]["initContainers"]
    assert sidecar["command"] == ["sh", "-c"]
    return str(sidecar["args"][0])


def as_sidecar(cluster: Cluster, folder: Path) -> dict[str, str]:
    """The environment in which kubectl acts as the service account; ours comes first on the path."""
    token = cluster.kubectl("create", "token", "bayplan", "-n", SYSTEM)
    assert token.status == 0, token.err
    config = yaml.safe_load(cluster.kubectl.kubeconfig.read_text())
    target = config["clusters"][0]["cluster"]
    path = write_kubeconfig(
        folder / "sidecar.kubeconfig",
        target["server"],
        Path(target["certificate-authority"]),
        {"token": token.out.strip()},
    )
    programs = Path(cluster.kubectl.program).parent
    return {"PATH": f"{programs}:{os.environ['PATH']}", "KUBECONFIG": str(path), "HOME": str(folder)}
