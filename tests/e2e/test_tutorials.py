"""Runs the commands of the start page, the tutorials and the how-tos unchanged on a control plane.

The cluster is like one that kind creates: four workers without GPUs or labels. The replicas run as processes,
since no image runs here; `test_helm` tests the commands that install them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.docs.sessions import ROOT, on_path, run, shell
from tests.e2e.api import Json
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.processes import wait_until
from tests.e2e.replicas import RESERVATIONS
from tests.e2e.rollout import SYSTEM, Rollout
from tests.e2e.stage import Cluster

WORKERS = ("kind-worker", "kind-worker2", "kind-worker3", "kind-worker4")
TEAM = "team-a"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
START = "start/kind.md"
"""Makes the racks and the namespace that the other pages go on from."""
PAGES = (
    "tutorials/first-gang.md",
    "start/without-a-cluster.md",
    "how-to/audit.md",
    "how-to/exempt.md",
    "how-to/certificates.md",
)

RUNNING = f"kubectl -n {TEAM} get pods --field-selector status.phase=Running"


@dataclass(frozen=True)
class Desk:
    """The reader's environment: the cluster, a folder with the unpacked release, and a shell that reaches
    both.
    """

    cluster: Cluster
    folder: Path
    environment: dict[str, str]

    def follow(self, page: str) -> int:
        """Runs the commands of a page; returns the number of blocks that apply here."""
        return run(ROOT / "docs" / page, self.folder, ("run", "cluster"), self.environment)

    def shell(self, lines: str) -> str:
        """Runs further shell commands."""
        return shell(lines, self.folder, self.environment)

    def clear(self) -> None:
        """Deletes the Jobs of the team and waits until no reservation is left."""
        self.shell(f"kubectl -n {TEAM} delete jobs --all")
        wait_until(lambda: not self.cluster.api.items(RESERVATIONS), "every place to be free", 90)


def worker(name: str) -> Json:
    """A node as kind creates it."""
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": allocatable, "conditions": [ready]},
    }


@pytest.fixture(scope="module")
def desk(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Bayplan in mode audit, as installed. The parameter `pack` is `plain`: the control plane has KAI's
    kinds, but a cluster of kind has none.
    """
    folder = tmp_path_factory.mktemp("tutorials")
    fleet = Fleet(cluster.api)
    rollout = Rollout(
        cluster, folder, policy_set("default-scheduler", folder), ("--mode", "audit"), observed=True
    )
    environment = on_path(folder / "bin", Path(cluster.kubectl.program).parent)
    environment["KUBECONFIG"] = str(cluster.kubectl.kubeconfig)
    desk = Desk(cluster, folder / "desk", environment)
    try:
        fleet.make(map(worker, WORKERS))
        rollout.install()
        plain = '{"data": {"pack": "plain"}}'
        done = cluster.kubectl("-n", SYSTEM, "patch", "configmap", "bayplan-parameters", "-p", plain)
        assert done.status == 0, done.err
        for _ in range(2):
            rollout.add()
        desk.folder.mkdir()
        desk.shell("bayplan unpack .")
        assert desk.follow(START) > 0
        yield desk
    finally:
        cluster.api.delete(f"/api/v1/namespaces/{TEAM}")
        rollout.uninstall()
        fleet.remove()


@pytest.mark.parametrize("page", PAGES)
def test_whoever_follows_a_page_gets_what_it_shows(desk: Desk, page: str) -> None:
    """Each from racks without a gang: what a page leaves behind, or one that fails, is not the next one's."""
    try:
        assert desk.follow(page) > 0
    finally:
        desk.clear()


def test_a_gang_in_a_rack_that_is_drained_goes_to_another_whole(desk: Desk) -> None:
    """Both pods run on the nodes of the other rack afterwards, while the first is empty."""
    desk.shell("kubectl cordon -l example.com/rack=rack-1; kubectl apply -f train.yaml")
    wait_until(lambda: nodes_of(desk) == set(WORKERS[2:]), "the gang to run in rack-2", 90)
    desk.shell("kubectl uncordon -l example.com/rack=rack-1")
    assert desk.follow("how-to/drain-a-rack.md") == 4
    wait_until(lambda: nodes_of(desk) == set(WORKERS[:2]), "the gang to run in rack-1", 90)
    desk.shell("kubectl delete -f train.yaml")


def test_what_waits_is_in_no_queue_once_its_namespace_is_not_enforced(desk: Desk) -> None:
    """Without the label the mode is that of the Deployment, `audit`: the gang is released without a place,
    `queue` and `why` say so, and nobody tells it its position any more."""
    manifest = yaml.safe_load_all((ROOT / "manifests" / "40-deployment.yaml").read_text())
    (deployment,) = (body for body in manifest if body["kind"] == "Deployment")
    folder = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments"
    desk.cluster.api.create(folder, {**deployment, "spec": {**deployment["spec"], "replicas": 0}})
    for name in ("first", "second", "third"):
        desk.shell(f"sed 's/name: train/name: {name}/' train.yaml | kubectl apply -f -")
    try:
        wait_until(lambda: f"{TEAM}/Job/third" in desk.shell("bayplan queue"), "the third to wait", 60)
        desk.shell(f"kubectl label namespace {TEAM} bayplan.dev/mode-")
        wait_until(lambda: desk.shell("bayplan queue") == "no gang waits\n", "nobody to wait", 60)
        gates = "{.items[*].spec.schedulingGates[*].name}"
        pods = f"kubectl -n {TEAM} get pods -o jsonpath='{gates}'"
        wait_until(lambda: desk.shell(pods) == "", "the gates to open", 60)
        assert "released without a place" in desk.shell(f"bayplan why {TEAM}/Job/third || true")
        before = queued_events(desk)
        desk.shell(f"kubectl -n {TEAM} delete job second --cascade=foreground")
        wait_until(lambda: "third" in desk.shell(RUNNING), "the third to run", 90)
        assert queued_events(desk) == before
    finally:
        desk.shell(f"kubectl label namespace {TEAM} bayplan.dev/mode=enforce")
        desk.cluster.api.delete(f"{folder}/bayplan")
        desk.clear()


def queued_events(desk: Desk) -> str:
    """How often each gang was told that it waits."""
    return desk.shell(f"kubectl -n {TEAM} get events --field-selector reason=Queued -o name")


def nodes_of(desk: Desk) -> set[str]:
    """The nodes of the gang's running pods."""
    pods = desk.cluster.api.items(PODS, labelSelector="job-name=train")
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return {pod["spec"].get("nodeName", "") for pod in alive if pod["status"].get("phase") == "Running"}
