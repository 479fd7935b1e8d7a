"""A place that becomes free is the waiting gang's, however fast somebody else applies another one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.kube_ledgers import install
from tests.e2e.processes import wait_until
from tests.e2e.replicas import LEASES, Replicas, job, nodes, reservations
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
LEASE = LEASES.format("default") + "/bayplan-controller"


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One rack of two nodes, and two replicas."""
    install(cluster.kubectl)
    folder = tmp_path_factory.mktemp("queue")
    fleet = Fleet(cluster.api)
    policies = policy_set("default-scheduler", folder)
    replicas = Replicas(cluster.api, cluster.kubectl.kubeconfig, folder, 2, policies)
    try:
        fleet.make(nodes(1, 2))
        replicas.start()
        replicas.configure()
        yield replicas
        replicas.unconfigure()
    finally:
        replicas.stop()
        fleet.remove()


def decision(stored: Json) -> str:
    """What the Job's note says."""
    return str(json.loads(stored["metadata"]["annotations"]["bayplan.dev/placement"])["decision"])


def is_in_the_queue(serving: Replicas, name: str) -> bool:
    """Whether its pods wait at the gate."""
    pods = serving.api.items(PODS, labelSelector=f"job-name={name}")
    return len(pods) == 2 and all(pod["spec"].get("schedulingGates") for pod in pods)


def leader(serving: Replicas) -> int:
    """The replica whose controller works, -1 while there is none."""
    holder = serving.api.get(LEASE)["spec"].get("holderIdentity") or ""
    pids = [f"_{process.popen.pid}_" for process in serving.processes]
    return next((number for number, pid in enumerate(pids) if pid in holder), -1)


def test_what_is_applied_while_a_place_is_free_comes_behind_the_gang_that_waits_for_it(
    serving: Replicas,
) -> None:
    """The leader is killed, so for some seconds nobody lets the waiting gang in; the place stays its own."""
    api = serving.api
    assert decision(api.create(JOBS, job("runs", 2))) == "admitted"
    assert decision(api.create(JOBS, job("waits", 2))) == "queued"
    wait_until(lambda: is_in_the_queue(serving, "waits"), "it to wait")
    wait_until(lambda: leader(serving) >= 0, "a leader")
    killed = leader(serving)
    serving.kill(killed)
    api.delete(f"{JOBS}/runs")
    wait_until(lambda: not api.items(PODS, labelSelector="job-name=runs"), "its pods to go", pause=0.02)
    assert reservations(api) == {}, "no leader has come yet"
    stored = api.create(JOBS, job("late", 1))
    assert reservations(api) == {}, "no leader has come yet"
    assert decision(stored) == "queued"
    reasons = [one["planReason"] for one in serving.lines() if one.get("name") == "late"]
    assert reasons[0] == "BehindOthers"
    wait_until(lambda: "research/Job/waits" in reservations(api), "the waiting gang to have the place", 60)
    assert list(reservations(api)) == ["research/Job/waits"]
    serving.restart(killed)
    for name in ("waits", "late"):
        api.delete(f"{JOBS}/{name}")
    wait_until(lambda: not api.items(PODS), "the pods to go", 60)
    wait_until(lambda: not reservations(api), "the reservations to go", 60)
    wait_until(lambda: serving.is_ready(serving.ports[killed]), "the killed one to be back", 90)
