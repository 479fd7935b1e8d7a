"""One namespace cannot reserve the whole cluster: its quota limits it, and a gang that cannot run reserves
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, Replicas, events, job, reservations
from tests.e2e.serving import empty, replicas_of
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
QUOTAS = "/api/v1/namespaces/research/resourcequotas"
PARAMETERS = "/api/v1/namespaces/default/configmaps"
PATIENCE = 10
"""The parameter reserve.unbound-seconds of these tests."""


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Six racks of two nodes and two replicas. A gang without pods loses its reservation within seconds."""
    chosen = {"metadata": {"name": "bayplan-parameters"}, "data": {"reserve.unbound-seconds": str(PATIENCE)}}
    cluster.api.create(PARAMETERS, chosen)
    try:
        with replicas_of(cluster, tmp_path_factory.mktemp("hoard"), racks=6, hosts=2) as replicas:
            yield replicas
    finally:
        cluster.api.delete(f"{PARAMETERS}/bayplan-parameters")


@pytest.fixture(autouse=True)
def clean(serving: Replicas) -> Iterator[None]:
    """After each test, deletes all applied objects and waits until the reservations are gone."""
    yield
    empty(serving.api, JOBS, QUOTAS)


def decided(stored: Json) -> str:
    """The decision in the Job's annotation."""
    return str(stored["metadata"]["annotations"]["bayplan.dev/placement"])


def held_gpus(serving: Replicas) -> int:
    """The GPUs of all nodes that gangs of the namespace hold or use."""
    nodes = {
        node
        for held in reservations(serving.api).values()
        for node in [*held["spec"].get("nodes", []), *(a["node"] for a in held["spec"]["assignments"])]
    }
    return 8 * len(nodes)


def test_a_quota_of_eight_gpus_holds_eight(cluster: Cluster, serving: Replicas) -> None:
    """Six Jobs of a node each: one is held for, five wait and are told the numbers."""
    quota = {"metadata": {"name": "compute"}, "spec": {"hard": {f"requests.{GPU}": "8"}}}
    serving.api.create(QUOTAS, quota)
    wait_until(lambda: "status" in serving.api.get(f"{QUOTAS}/compute"), "the quota to be counted")
    notes = [decided(serving.api.create(JOBS, job(f"hoard-{n}", 1, required=""))) for n in range(6)]
    assert ['"admitted"' in note for note in notes] == [True, *[False] * 5]
    assert held_gpus(serving) == 8
    once_more = json.dumps(job("hoard-6", 1, required=""))
    applied = cluster.kubectl("apply", "--dry-run=server", "-f", "-", text=once_more)
    warning = " ".join(applied.warnings)
    assert "may hold 8 nvidia.com/gpu by ResourceQuota compute, holds 8, and would hold 8 more" in warning


def test_suspended_jobs_hold_nothing(serving: Replicas) -> None:
    """Six of them, each for a rack."""
    for number in range(6):
        body = job(f"hoard-{number}", 2)
        body["spec"]["suspend"] = True
        serving.api.create(JOBS, body)
    assert reservations(serving.api) == {}


def test_pods_behind_a_gate_of_their_own_hold_nothing_until_it_opens(serving: Replicas) -> None:
    """The gang waits; when somebody takes the foreign gate away it is planned, and its pods are let in."""
    stored = serving.api.create(JOBS, job("gated", 2, schedulingGates=[{"name": "example.com/hoard"}]))
    assert '"queued"' in decided(stored)
    wait_until(lambda: len(serving.api.items(PODS)) == 2, "its pods")
    assert reservations(serving.api) == {}
    for pod in serving.api.items(PODS):
        ours = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != "example.com/hoard"]
        assert ours == [{"name": "bayplan.dev/queued"}]
        path = f"{PODS}/{pod['metadata']['name']}"
        serving.api.merge(path, {"spec": {"schedulingGates": ours}})
    wait_until(lambda: "research/Job/gated" in reservations(serving.api), "its place", 30)
    wait_until(
        lambda: all("nodeName" in pod["spec"] for pod in serving.api.items(PODS)), "its pods to run", 60
    )


def test_a_place_that_no_pod_comes_to_is_released_with_an_event(serving: Replicas) -> None:
    """Nobody runs that scheduler, so the rack is free again after a while, and stays so."""
    serving.api.create(JOBS, job("nobody", 2, schedulerName="no-such-scheduler"))
    assert "research/Job/nobody" in reservations(serving.api)
    wait_until(lambda: "research/Job/nobody" not in reservations(serving.api), "the release", 6 * PATIENCE)
    wait_until(lambda: "Released" in dict(events(serving.api, "Job", "nobody")), "the event")
    assert (
        f"no pod was bound to it for {PATIENCE} s" in dict(events(serving.api, "Job", "nobody"))["Released"]
    )
    serving.api.create(JOBS, job("next", 2))
    wait_until(lambda: len(serving.api.items(PODS, labelSelector="job-name=next")) == 2, "its pods")
    assert set(reservations(serving.api)) == {"research/Job/next"}


def test_a_gang_that_runs_keeps_its_place(serving: Replicas) -> None:
    """Longer than one without a pod would."""
    serving.api.create(JOBS, job("runs", 2))
    wait_until(
        lambda: len([p for p in serving.api.items(PODS) if "nodeName" in p["spec"]]) == 2, "to run", 60
    )
    seen = reservations(serving.api)["research/Job/runs"]["metadata"]["uid"]
    with pytest.raises(TimeoutError):
        wait_until(lambda: "research/Job/runs" not in reservations(serving.api), "a release", 2 * PATIENCE)
    assert reservations(serving.api)["research/Job/runs"]["metadata"]["uid"] == seen
