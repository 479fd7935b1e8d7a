"""Modes on a real control plane: a namespace joins and leaves by its label; mode off; and uninstallation."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import ApiError, Json
from tests.e2e.binaries import ROOT
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.kube_ledgers import install
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, Replicas, job, nodes, reservations
from tests.e2e.stage import Cluster

TEAM = "research"
JOBS, PODS = f"/apis/batch/v1/namespaces/{TEAM}/jobs", f"/api/v1/namespaces/{TEAM}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{TEAM}/deployments"
GATE = {"name": "bayplan.dev/queued"}
TAINT = "bayplan.dev/reserved"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One rack of two nodes, and two replicas that fence it by taint and that the API server calls."""
    folder = tmp_path_factory.mktemp("modes")
    install(cluster.kubectl)
    fleet = Fleet(cluster.api)
    policies = policy_set("default-scheduler", folder)
    options = ("--fence", "taint")
    replicas = Replicas(cluster.api, cluster.kubectl.kubeconfig, folder, 2, policies, options)
    try:
        fleet.make(nodes(1, 2))
        replicas.start()
        replicas.configure()
        yield replicas
    finally:
        label(cluster, None)
        for path in replicas.configured:
            cluster.api.delete(path)
        replicas.stop()
        clear(cluster)
        fleet.remove()


@pytest.fixture
def clean(serving: Replicas, cluster: Cluster) -> Iterator[None]:
    """After each test the namespace has its former label and is empty."""
    yield
    label(cluster, None)
    clear(cluster)
    wait_until(lambda: not reservations(cluster.api), "the places to be free", 60)


def clear(cluster: Cluster) -> None:
    """Deletes the Jobs, Deployments and pods of the tests."""
    for folder in (JOBS, DEPLOYMENTS):
        for item in cluster.api.items(folder):
            cluster.api.delete(f"{folder}/{item['metadata']['name']}")
    wait_until(lambda: not cluster.api.items(PODS), "the pods to go", 60)


def label(cluster: Cluster, mode: str | None) -> None:
    """Sets the mode in the namespace's label, or removes the label (None)."""
    cluster.api.merge(f"/api/v1/namespaces/{TEAM}", {"metadata": {"labels": {"bayplan.dev/mode": mode}}})


def switch(serving: Replicas, cluster: Cluster, mode: str) -> None:
    """Sets the label and waits until the API server and every replica use the mode, each tested by a dry run,
    and see the rack free again.
    """
    label(cluster, mode)
    asked = len(serving.ports) * 4

    def seen() -> bool:
        name = f"rehearsal-{len(serving.lines())}"
        for _ in range(asked):
            cluster.api.create(JOBS, job(name, 2), dryRun="All")
        lines = [line for line in serving.lines() if line.get("name") == name]
        modes = {(line["mode"], line["plan"]) for line in lines if line["phase"] == "mutate"}
        return modes == (set() if mode == "off" else {(mode, "admitted")})

    wait_until(seen, f"mode {mode}", 30)


def gpu_pods(name: str) -> Json:
    """A Deployment of one pod that states nothing except one GPU."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {GPU: "1"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": TEAM}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def applied(cluster: Cluster, body: Json) -> tuple[Json, list[str]]:
    """Runs `kubectl apply` and returns the stored object and the warnings."""
    output = cluster.kubectl("apply", "-f", "-", "-o", "yaml", text=yaml.safe_dump(body))
    assert output.status == 0, output.err
    return output.object, output.warnings


@pytest.mark.usefixtures("clean")
def test_a_namespace_joins_by_its_label_and_leaves_again(serving: Replicas, cluster: Cluster) -> None:
    """Audit, warn, off, with a Job and a Deployment each: told, shown, not even asked; nothing is changed."""
    for number, mode in enumerate(("audit", "warn", "enforce", "off")):
        switch(serving, cluster, mode)
        stored, warnings = applied(cluster, job(f"train-{number}", 2))
        served, served_warnings = applied(cluster, gpu_pods(f"serve-{number}"))
        ours = [key for key in stored["metadata"]["annotations"] if key.startswith("bayplan.dev/")]
        assert bool(ours) is (mode == "enforce")
        limits = served["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert (set(limits) > {GPU}) is (mode == "enforce"), limits
        changed = [line for line in (*warnings, *served_warnings) if "would be changed by" in line]
        assert len(changed) == (2 if mode == "warn" else 0), (*warnings, *served_warnings)
        assert bool(reservations(cluster.api)) is (mode == "enforce")
        logged = [line for line in serving.lines() if line.get("name") == f"train-{number}"]
        assert {line["mode"] for line in logged} == (set() if mode == "off" else {mode})
        wait_until(
            lambda name=f"train-{number}": running(cluster, f"job-name={name}", 2), f"pods of {mode}", 60
        )
        clear(cluster)
        wait_until(lambda: not reservations(cluster.api), "the place to be free", 60)


def running(cluster: Cluster, selector: str, count: int) -> bool:
    """Returns whether this many pods run."""
    pods = cluster.api.items(PODS, labelSelector=selector)
    return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods)


def gated(cluster: Cluster, selector: str = "") -> list[str]:
    """The pods that wait at Bayplan's scheduling gate."""
    query = {"labelSelector": selector} if selector else {}
    pods = cluster.api.items(PODS, **query)
    return [pod["metadata"]["name"] for pod in pods if GATE in pod["spec"].get("schedulingGates", [])]


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("mode", ["audit", "off"])
def test_what_waits_when_its_namespace_leaves_enforce_is_let_go(
    serving: Replicas, cluster: Cluster, mode: str
) -> None:
    """The gang that runs keeps its place; the one that waited starts as soon as its scheduler finds room."""
    switch(serving, cluster, "enforce")
    applied(cluster, job("runs", 2))
    wait_until(lambda: running(cluster, "job-name=runs", 2), "it to run", 60)
    stored, _ = applied(cluster, job("waits", 2))
    assert "schedulingGates" not in stored["spec"]["template"]["spec"], "gates are on pods alone"
    wait_until(lambda: len(gated(cluster, "job-name=waits")) == 2, "its pods to wait", 60)
    label(cluster, mode)
    wait_until(lambda: gated(cluster) == [], "the gates to open", 60)
    assert list(reservations(cluster.api)) == [f"{TEAM}/Job/runs"]
    first = cluster.api.items(PODS, labelSelector="job-name=waits")[0]["metadata"]
    cluster.api.delete(f"{PODS}/{first['name']}", grace=0)
    wait_until(
        lambda: (
            first["name"]
            not in {
                pod["metadata"]["name"] for pod in cluster.api.items(PODS, labelSelector="job-name=waits")
            }
        ),
        "another pod",
    )
    cluster.api.delete(f"{JOBS}/runs")
    wait_until(lambda: running(cluster, "job-name=waits", 2), "it to run", 60)
    assert reservations(cluster.api) == {}


def refused(cluster: Cluster) -> str:
    """The error for a GPU pod, or "" if it may be created."""
    container = {"name": "c", "image": "busybox", "resources": {"limits": {GPU: "1"}}}
    body = {"metadata": {"name": "probe"}, "spec": {"containers": [container]}}
    try:
        cluster.api.create(PODS, body)
    except ApiError as error:
        return str(error)
    cluster.api.delete(f"{PODS}/probe", grace=0)
    return ""


def blocks(heading: str) -> list[str]:
    """The shell blocks in a section of docs/modes.md."""
    section = (ROOT / "docs" / "modes.md").read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return BLOCK.findall(section)


def shell(cluster: Cluster, script: str, folder: Path) -> str:
    """Runs a block of the page unchanged at the root of the checkout and returns its output."""
    (folder / "kubectl").unlink(missing_ok=True)
    (folder / "kubectl").symlink_to(cluster.kubectl.program)
    environment = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "KUBECONFIG": str(cluster.kubectl.kubeconfig),
        "HOME": str(folder),
    }
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return done.stdout + done.stderr


def test_with_every_replica_gone_only_enforced_namespaces_wait_for_one_and_one_line_ends_that(
    serving: Replicas, cluster: Cluster, tmp_path: Path
) -> None:
    """Two gangs are there, one with a place and fenced nodes, one behind it; then nobody answers any more.

    The lines of docs/modes.md are run as they stand there. Nothing of ours blocks, gates or fences after it.
    """
    for name in yaml.safe_load((ROOT / "manifests" / "kustomization.yaml").read_text())["resources"]:
        if name != "70-webhooks.yaml":  # these are there already, for a port on loopback
            output = cluster.kubectl("apply", "-f", str(ROOT / "manifests" / name))
            assert output.status == 0, output.err
    switch(serving, cluster, "enforce")
    applied(cluster, job("runs", 2))
    wait_until(lambda: running(cluster, "job-name=runs", 2), "it to run", 60)
    applied(cluster, job("waits", 2))
    wait_until(lambda: len(gated(cluster)) == 2, "its pods to wait", 60)
    wait_until(lambda: len(tainted(cluster)) == 2, "the rack to be fenced", 60)
    before = {pod["metadata"]["uid"] for pod in cluster.api.items(PODS, labelSelector="job-name=runs")}
    for number in range(len(serving.processes)):
        serving.kill(number)
    assert "failed calling webhook" in refused(cluster)
    for mode in ("audit", "warn", "off"):
        label(cluster, mode)
        wait_until(lambda: refused(cluster) == "", f"mode {mode} to be seen", 30)
    label(cluster, "enforce")
    wait_until(lambda: refused(cluster) != "", "enforce to be seen", 30)
    off, ungate = blocks("Turn everything off")
    shell(cluster, off, tmp_path)
    wait_until(lambda: refused(cluster) == "", "the API server to ask nobody", 30)
    printed = shell(cluster, ungate, tmp_path)
    assert gated(cluster) == [], printed
    stop, rest = blocks("Uninstall")
    printed = shell(cluster, stop, tmp_path) + shell(cluster, rest, tmp_path)
    assert tainted(cluster) == [], printed
    kinds = (
        "mutatingwebhookconfigurations,validatingwebhookconfigurations,crd,clusterroles,clusterrolebindings"
    )
    left = cluster.kubectl("get", f"{kinds},namespaces", "-o", "name")
    assert [name for name in left.out.split() if "bayplan" in name] == [], printed
    after = {pod["metadata"]["uid"] for pod in cluster.api.items(PODS, labelSelector="job-name=runs")}
    assert after == before, "running pods go on"
    cluster.api.delete(f"{JOBS}/runs")
    wait_until(lambda: running(cluster, "job-name=waits", 2), "what waited to run", 60)
    serving.configured.clear()


def tainted(cluster: Cluster) -> list[str]:
    """The nodes with Bayplan's taint."""
    nodes = cluster.api.items("/api/v1/nodes")
    return [node["metadata"]["name"] for node in nodes if TAINT in json.dumps(node["spec"].get("taints", []))]
