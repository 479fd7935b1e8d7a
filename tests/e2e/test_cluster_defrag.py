"""`bayplan defrag --apply` on a real control plane: eviction API, Job controller, scheduler, the leader."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.hook import BAYPLAN
from tests.e2e.processes import wait_until
from tests.e2e.replicas import Replicas, job, racks_of, reservations
from tests.e2e.serving import PODS, pods, replicas_of, running
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
BUDGETS = "/apis/policy/v1/namespaces/research/poddisruptionbudgets"
NODES = "/api/v1/nodes"
MARK = "bayplan.dev/defragmentation"
AIM = {"aim": "r1 is free", "gang": "", "since": "2026-11-23T08:00:00Z"}


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Two racks of two nodes."""
    with replicas_of(cluster, tmp_path_factory.mktemp("defrag"), 2, 2, count=1) as replicas:
        yield replicas


@pytest.fixture(autouse=True)
def halves(serving: Replicas) -> Iterator[None]:
    """A Job that may be restarted uses one node of each rack, so no rack is completely free."""
    api = serving.api
    for name in ("x", "filler", "y"):
        body = job(name, 1)
        body["metadata"] |= {"labels": {"bayplan.dev/restartable": "true"}}
        body["metadata"]["annotations"]["bayplan.dev/reserve"] = "nodes"
        body["spec"]["template"]["metadata"] = {"labels": {"app": name}}
        api.create(JOBS, body)
        running(serving, name, 1)
    api.delete(f"{JOBS}/filler")
    wait_until(lambda: set(reservations(api)) == {"research/Job/x", "research/Job/y"}, "two halves")
    assert (racks_of(pods(serving, "x")), racks_of(pods(serving, "y"))) == ({"r1"}, {"r2"})
    yield
    for item in api.items(JOBS):
        api.delete(f"{JOBS}/{item['metadata']['name']}")
    for item in api.items(NODES):
        patch = {"metadata": {"annotations": {MARK: None}}, "spec": {"unschedulable": None}}
        api.merge(f"{NODES}/{item['metadata']['name']}", patch)
    wait_until(lambda: not api.items(PODS), "the pods to go", 60)
    wait_until(lambda: not reservations(api), "the reservations to go", 60)


def defrag(cluster: Cluster, *words: str) -> tuple[int, str]:
    """Runs `bayplan defrag` and returns exit status and output."""
    command = [BAYPLAN, "defrag", *words, "--kubeconfig", str(cluster.kubectl.kubeconfig)]
    command += ["--installation", "default"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def cordoned(serving: Replicas) -> dict[str, bool]:
    """The cordoned nodes, and whether they carry Bayplan's mark."""
    nodes: list[Json] = serving.api.items(NODES)
    return {
        node["metadata"]["name"]: MARK in (node["metadata"].get("annotations") or {})
        for node in nodes
        if node["spec"].get("unschedulable")
    }


def begin(serving: Replicas, rack: str = "r1") -> None:
    """Creates the state after a `--apply` that ended before the first eviction."""
    for host in (1, 2):
        patch = {"metadata": {"annotations": {MARK: json.dumps(AIM)}}, "spec": {"unschedulable": True}}
        serving.api.merge(f"{NODES}/{rack}-n{host}", patch)


def holds(serving: Replicas, name: str) -> set[str]:
    """The nodes of a Job's reservation."""
    held = reservations(serving.api).get(f"research/Job/{name}")
    return {seat["node"] for seat in held["spec"]["assignments"]} if held else set()


def test_a_rack_is_freed_for_the_gang_that_waits(serving: Replicas, cluster: Cluster) -> None:
    """The cheaper Job gets its place in the other rack before its pod is evicted; then the gang is let in."""
    serving.api.create(JOBS, job("big", 2))
    wait_until(lambda: len(pods(serving, "big")) == 2, "the gang's pods")
    status, output = defrag(cluster, "--for", "research/Job/big", "--apply")
    assert status == 0, output
    assert "(reserved)" in output
    (rack,) = racks_of(running(serving, "big", 2))
    small_pods = [*running(serving, "x", 1), *running(serving, "y", 1)]
    assert racks_of(small_pods) == {"r1", "r2"} - {rack}
    assert cordoned(serving) == {}


def test_another_administrator_goes_on_after_a_surprise(serving: Replicas, cluster: Cluster) -> None:
    """A PodDisruptionBudget refuses, so all stays as it is; without it `--resume` goes on."""
    budget = {
        "metadata": {"name": "x"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    serving.api.create(BUDGETS, budget)
    try:
        begin(serving)
        status, output = defrag(cluster, "--resume", "--timeout", "5")
        assert (status, "PodDisruptionBudget x" in output) == (1, True), output
        assert "still cordoned: r1-n1, r1-n2" in output
        assert racks_of(pods(serving, "x")) == {"r1"}
    finally:
        serving.api.delete(f"{BUDGETS}/x")
    status, output = defrag(cluster, "--free", "1", "--apply")
    assert (status, "first --resume or --undo it" in output) == (1, True), output
    status, output = defrag(cluster, "--resume")
    assert status == 0, output
    assert racks_of(running(serving, "x", 1)) == {"r2"}
    assert cordoned(serving) == {}


def test_undone_the_place_is_again_where_the_pod_stands(serving: Replicas, cluster: Cluster) -> None:
    """The leader has moved the reservation; nothing was evicted, so it goes back."""
    before = holds(serving, "x")
    begin(serving)
    wait_until(lambda: holds(serving, "x").isdisjoint(before), "the leader to move it", 30)
    status, output = defrag(cluster, "--undo")
    assert status == 0, output
    assert cordoned(serving) == {}
    wait_until(lambda: holds(serving, "x") == before, "it to follow its pod", 30)
