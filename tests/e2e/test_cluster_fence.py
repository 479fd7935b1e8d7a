"""Reserved racks fenced by a taint, with the settings and rights of the component."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.hook import bayplan
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, RACK, RESERVATIONS, job, nodes, racks_of, reservations
from tests.e2e.rollout import Rollout
from tests.e2e.serving import empty
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
COMPONENT = ROOT / "manifests" / "components" / "taint-fence"
TAINT = "bayplan.dev/reserved"


@pytest.fixture(scope="module")
def rollout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    """Two replicas that fence by taint, on two racks of three nodes; one node has another taint."""
    folder = tmp_path_factory.mktemp("fence")
    fleet = Fleet(cluster.api)
    rollout = Rollout(cluster, folder, policy_set("default-scheduler", folder), options=("--fence", "taint"))
    rights = str(COMPONENT / "rbac.yaml")
    try:
        fleet.make(nodes(2, 3))
        rollout.install()
        assert cluster.kubectl("apply", "-f", rights).status == 0
        rollout.add()
        rollout.add()
        yield rollout
    finally:
        cluster.kubectl("delete", "-f", rights, "--ignore-not-found")
        rollout.uninstall()
        fleet.remove()


@pytest.fixture(autouse=True)
def clean(rollout: Rollout) -> Iterator[None]:
    """After each test no object is applied, nothing is reserved, and no node has Bayplan's taint."""
    yield
    empty(rollout.api, JOBS, PODS)
    wait_until(lambda: not tainted(rollout), "the taints to go", 30)


def tainted(rollout: Rollout) -> dict[str, str]:
    """The value of Bayplan's taint by node."""
    return {
        node["metadata"]["name"]: taint["value"]
        for node in rollout.api.items("/api/v1/nodes")
        for taint in node["spec"].get("taints", ())
        if taint["key"] == TAINT
    }


def bound(rollout: Rollout, name: str, count: int) -> list[Json]:
    """Waits until this many pods of a Job are bound."""

    def bound_pods() -> list[Json]:
        pods = rollout.api.items(PODS, labelSelector=f"job-name={name}")
        return [pod for pod in pods if "nodeName" in pod["spec"]]

    wait_until(lambda: len(bound_pods()) == count, f"{name} to run", 60)
    return bound_pods()


def plain(name: str, rack: str, *, gpus: int = 0, **annotations: str) -> Json:
    """A pod that requires one rack."""
    limits = {"cpu": "1", "memory": "1Gi", **({GPU: str(gpus)} if gpus else {})}
    container = {"name": "c", "image": "busybox", "resources": {"limits": limits}}
    metadata = {"name": name, "namespace": "research", "annotations": annotations}
    spec = {"containers": [container], "nodeSelector": {RACK: rack}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def fence_by_doctor(rollout: Rollout) -> tuple[str, str]:
    """The doctor's finding about the fence."""
    kubeconfig = str(rollout.cluster.kubectl.kubeconfig)
    findings = json.loads(bayplan("doctor", "--kubeconfig", kubeconfig, "-o", "json", statuses=(0, 1)))
    return next(
        (finding["grade"], finding["message"]) for finding in findings if finding["subject"] == "fence"
    )


def refused_by_taint(rollout: Rollout, name: str) -> bool:
    """Returns whether the scheduler reports that a taint keeps the pod away."""
    conditions = rollout.api.get(f"{PODS}/{name}")["status"].get("conditions", ())
    return any(
        "untolerated taint" in condition.get("message", "")
        for condition in conditions
        if condition["type"] == "PodScheduled"
    )


def test_a_reserved_rack_takes_its_gangs_pods_and_no_others(rollout: Rollout) -> None:
    """Two of three nodes are used: the third is closed to pods without a GPU, and to those that skip us."""
    rollout.api.create(JOBS, job("train", 2))
    (rack,) = racks_of(bound(rollout, "train", 2))
    wait_until(lambda: set(tainted(rollout)) == {f"{rack}-n{host}" for host in (1, 2, 3)}, "the taints")
    rollout.api.create(PODS, plain("no-gpu", rack))
    rollout.api.create(PODS, plain("skips", rack, gpus=1, **{"bayplan.dev/skip": "true"}))
    for name in ("no-gpu", "skips"):
        wait_until(lambda name=name: refused_by_taint(rollout, name), f"{name} to be refused")  # type: ignore[misc]
    rollout.api.delete(f"{JOBS}/train")
    for name in ("no-gpu", "skips"):
        wait_until(
            lambda name=name: "nodeName" in rollout.api.get(f"{PODS}/{name}")["spec"], f"{name} to run"
        )  # type: ignore[misc]
    wait_until(lambda: not tainted(rollout), "the last taints to go", 30)


def test_a_gang_from_the_queue_passes_the_fence_of_its_new_rack(rollout: Rollout) -> None:
    """Both racks are held; when one is free its taint changes hands, and the gated pods tolerate it."""
    for name in ("left", "right"):
        rollout.api.create(JOBS, job(name, 3))
        bound(rollout, name, 3)
    wait_until(lambda: len(tainted(rollout)) == 6, "both fences")
    before = tainted(rollout)
    rollout.api.create(JOBS, job("next", 3))
    rollout.api.delete(f"{JOBS}/left")
    (rack,) = racks_of(bound(rollout, "next", 3))
    host = f"{rack}-n1"
    wait_until(lambda: tainted(rollout).get(host) not in (None, before[host]), "the new holder's taint")
    assert len(set(tainted(rollout).values())) == 2


def test_other_taints_stay_and_a_wiped_one_comes_back(rollout: Rollout, cluster: Cluster) -> None:
    """Somebody takes a taint off a reserved node: within seconds it is there again, beside the node's own."""
    output = cluster.kubectl("taint", "node", "r1-n3", "example.com/own=yes:PreferNoSchedule")
    assert output.status == 0, output.err
    try:
        rollout.api.create(JOBS, job("train", 2))
        bound(rollout, "train", 2)
        wait_until(lambda: "r1-n3" in tainted(rollout), "the taint")
        assert cluster.kubectl("taint", "node", "r1-n3", f"{TAINT}-").status == 0
        wait_until(lambda: "r1-n3" in tainted(rollout), "the taint again")
        keys = {taint["key"] for taint in rollout.api.get("/api/v1/nodes/r1-n3")["spec"]["taints"]}
        assert keys == {TAINT, "example.com/own"}
    finally:
        cluster.kubectl("taint", "node", "r1-n3", "example.com/own-")


def test_another_leader_keeps_the_fence_and_what_is_left_behind_is_taken_off_by_kubectl(
    rollout: Rollout, cluster: Cluster
) -> None:
    """A leader that stops leaves the taints; without any replica docs/fencing.md's line takes them off."""
    rollout.api.create(JOBS, job("train", 2))
    bound(rollout, "train", 2)
    wait_until(lambda: len(tainted(rollout)) == 3, "the taints")
    assert fence_by_doctor(rollout) == ("ok", "3 nodes are fenced by taint, each for a gang that holds it")
    for replica in list(rollout.replicas):
        rollout.retire(replica)
    assert len(tainted(rollout)) == 3
    (held,) = reservations(rollout.api).values()
    rollout.api.delete(f"{RESERVATIONS}/{held['metadata']['name']}")
    grade, text = fence_by_doctor(rollout)
    assert (grade, text) == ("warn", "3 of 3 fenced nodes, such as r1-n1, belong to no reservation")
    output = cluster.kubectl("taint", "nodes", "--all", f"{TAINT}-")
    assert tainted(rollout) == {}, output.err
    rollout.add()
    rollout.add()
    wait_until(lambda: len(tainted(rollout)) == 3, "the taints, by the next leader", 60)
