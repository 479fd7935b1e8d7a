"""Assignments of Kueue's Topology-Aware Scheduling, on a real API server, scheduler and Job controller.

Kueue itself is simulated: its Workload with the status that it writes (the fields and validation of its own
schema), the gate in the Job's template, and the node selector that Kueue writes when it opens the gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.e2e.api import ApiError, Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, Replicas, events, job, reservations
from tests.e2e.serving import JOBS, PODS, bayplan, pods, replicas_of, running
from tests.e2e.stage import Cluster

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/research/workloads"
GATE = "kueue.x-k8s.io/topology"
HOSTNAME = "kubernetes.io/hostname"
PLACED = "research/KueueWorkload/job-trains"


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Two racks of two nodes, and a replica."""
    with replicas_of(cluster, tmp_path_factory.mktemp("kueue"), 2, 2, 1) as replicas:
        yield replicas


@pytest.fixture
def gone(serving: Replicas) -> Iterator[None]:
    """After each test, deletes all Jobs and Workloads and waits until the reservations are gone."""
    yield
    for folder in (JOBS, WORKLOADS):
        for item in serving.api.items(folder):
            serving.api.delete(f"{folder}/{item['metadata']['name']}")
    wait_until(lambda: not serving.api.items(PODS) and not reservations(serving.api), "all to go", 60)


def queued(serving: Replicas, name: str = "trains") -> Json:
    """A suspended Job of two whole nodes, and its Workload in Kueue, which has no quota yet."""
    body = job(name, 2)
    body["spec"]["suspend"] = True
    stored = serving.api.create(JOBS, body)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": stored["metadata"]["uid"],
        "controller": True,
    }
    pod_set = {"name": "main", "count": 2, "template": body["spec"]["template"]}
    return serving.api.create(
        WORKLOADS,
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": f"job-{name}", "namespace": "research", "ownerReferences": [owner]},
            "spec": {"queueName": "team", "podSets": [pod_set]},
        },
    )


def says(serving: Replicas, status: Json, name: str = "trains") -> None:
    """Writes the status of the Workload, as Kueue does."""
    serving.api.merge(f"{WORKLOADS}/job-{name}/status", {"status": status})


def admission(*nodes: str) -> Json:
    """An admission with one pod on each of these nodes, whose names have a common prefix."""
    individual = {"prefix": "r", "roots": [node.removeprefix("r") for node in nodes]}
    part = {
        "domainCount": len(nodes),
        "valuesPerLevel": [{"individual": individual}],
        "podCounts": {"universal": 1},
    }
    assignment = {"levels": [HOSTNAME], "slices": [part]}
    pod_set = {"name": "main", "count": len(nodes), "flavors": {GPU: "all"}, "topologyAssignment": assignment}
    return {"clusterQueue": "all", "podSetAssignments": [pod_set]}


def resumed(serving: Replicas, *nodes: str) -> list[Json]:
    """Starts the Job as Kueue does and sends its gated pods to these nodes; waits until they run there."""
    annotations = {"kueue.x-k8s.io/workload": "job-trains", "kueue.x-k8s.io/podset-required-topology": "rack"}
    template = {"metadata": {"annotations": annotations}, "spec": {"schedulingGates": [{"name": GATE}]}}
    serving.api.merge(f"{JOBS}/trains", {"spec": {"suspend": False, "template": template}})
    wait_until(lambda: len(pods(serving, "trains")) == 2, "its pods", 60)
    for pod, node in zip(pods(serving, "trains"), nodes, strict=True):
        spec = {"nodeSelector": {HOSTNAME: node}, "schedulingGates": None}
        serving.api.merge(f"{PODS}/{pod['metadata']['name']}", {"spec": spec})
    return running(serving, "trains", 2)


def waits_for_quota(serving: Replicas) -> str:
    """Sets the condition of a Workload that waits for quota, with this message."""
    message = "insufficient unused quota for nvidia.com/gpu in flavor all, 16 more needed"
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    waits = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
    says(serving, {"conditions": [{**waits, "lastTransitionTime": now}]})
    return message


def held(serving: Replicas) -> dict[str, list[str]]:
    """The nodes of the pods by gang, for gangs with a claimed reservation."""
    return {
        gang: sorted(seat["node"] for seat in entry["spec"]["assignments"])
        for gang, entry in reservations(serving.api).items()
        if entry["status"]["state"] == "claimed"
    }


def until(serving: Replicas, expected: dict[str, list[str]]) -> None:
    """Waits until exactly these reservations are claimed."""
    wait_until(lambda: held(serving) == expected, f"{expected} to be held", 30)


@pytest.mark.usefixtures("gone")
def test_what_kueue_assigns_is_held_before_pods_come_and_until_kueue_takes_it_back(serving: Replicas) -> None:
    """The next Job of ours goes to the other rack at once; bound pods take what is held; the hold follows a
    replaced node, and ends with the admission."""
    queued(serving)
    assert reservations(serving.api) == {}
    says(serving, {"admission": admission("r1-n1", "r1-n2")})
    until(serving, {PLACED: ["r1-n1", "r1-n2"]})
    serving.api.create(JOBS, job("ours", 2))
    assert {pod["spec"]["nodeName"] for pod in running(serving, "ours", 2)} == {"r2-n1", "r2-n2"}
    bound = resumed(serving, "r1-n1", "r1-n2")
    assert {pod["spec"]["nodeName"] for pod in bound} == {"r1-n1", "r1-n2"}
    assert not any("affinity" in pod["spec"] for pod in bound), "Kueue chose their nodes, nobody else"
    until(serving, {PLACED: ["r1-n1", "r1-n2"], "research/Job/ours": ["r2-n1", "r2-n2"]})
    assert ("Adopted", "Kueue has assigned r1-n1, r1-n2: held for 2 pods (Workload job-trains)") in events(
        serving.api, "Job", "trains"
    )
    says(serving, {"admission": None})
    until(serving, {"research/Job/ours": ["r2-n1", "r2-n2"]})


@pytest.mark.usefixtures("gone")
def test_a_job_that_held_a_rack_of_ours_holds_what_kueue_assigns_it_instead(
    cluster: Cluster, serving: Replicas
) -> None:
    """Its own reservation moves: first it ran without Kueue in rack r1, then Kueue puts it into r2. Between
    these `bayplan why` tells what it holds, and what Kueue says."""
    serving.api.create(JOBS, job("trains", 2))
    running(serving, "trains", 2)
    until(serving, {"research/Job/trains": ["r1-n1", "r1-n2"]})
    before = reservations(serving.api)["research/Job/trains"]
    uid = serving.api.get(f"{JOBS}/trains")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "trains", "uid": uid, "controller": True}
    pod_set = {"name": "main", "count": 2, "template": job("trains", 2)["spec"]["template"]}
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "job-trains", "namespace": "research", "ownerReferences": [owner]},
        "spec": {"podSets": [pod_set]},
    }
    serving.api.create(WORKLOADS, workload)
    message = waits_for_quota(serving)
    status, out = bayplan(cluster, "why", "research/Job/trains")
    assert status == 0
    assert f"Kueue says of its Workload job-trains: {message}" in " ".join(out.split())
    says(serving, {"admission": admission("r2-n1", "r2-n2")})
    until(serving, {"research/Job/trains": ["r2-n1", "r2-n2"]})
    after = reservations(serving.api)["research/Job/trains"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"], "one object, moved in one write"
    assert after["spec"]["mode"] == "nodes"


@pytest.mark.usefixtures("gone")
def test_what_another_gang_holds_stays_its_and_is_told_on_the_job(serving: Replicas) -> None:
    """Kueue knows nothing of a rack that Bayplan keeps whole: the rest of its assignment is held."""
    serving.api.create(JOBS, job("ours", 2))
    running(serving, "ours", 2)
    queued(serving)
    says(serving, {"admission": admission("r1-n2", "r2-n1")})
    until(serving, {"research/Job/ours": ["r1-n1", "r1-n2"], PLACED: ["r2-n1"]})
    why = "1 pod on r1-n2, which research/Job/ours holds. That is not held for it"

    def is_told() -> bool:
        """Returns whether the event was written, which happens after the reservation."""
        job_events = events(serving.api, "Job", "trains")
        return any(reason == "NotAdopted" and text.endswith(why) for reason, text in job_events)

    wait_until(is_told, "the event", 60)


@pytest.mark.usefixtures("gone")
def test_bayplan_why_tells_what_kueue_waits_for_and_where_it_has_put_a_job(
    cluster: Cluster, serving: Replicas
) -> None:
    """Without quota the words of its Workload; with an assignment the nodes that are held."""
    queued(serving)
    message = waits_for_quota(serving)
    status, out = bayplan(cluster, "why", "research/Job/trains")
    assert status == 1
    expected = f"it holds nothing, and waits for Kueue, which says: {message} (Workload job-trains)"
    assert " ".join(out.split()) == f"research/Job/trains: {expected}"
    says(serving, {"admission": admission("r1-n1", "r1-n2")})
    until(serving, {PLACED: ["r1-n1", "r1-n2"]})
    status, out = bayplan(cluster, "why", "research/Job/trains")
    assert status == 0
    assert "for its pods: r1-n1, r1-n2" in out
    assert "Kueue has assigned its nodes, for research/Job/trains" in out


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize(
    "broken",
    [{"domainCount": 3}, {"podCounts": {"individual": [1]}}, {"valuesPerLevel": []}],
    ids=["values", "counts", "levels"],
)
def test_the_stand_in_is_as_strict_as_kueues_schema(serving: Replicas, broken: dict[str, Any]) -> None:
    """What does not match is refused by the API server, so that no test relies on what Kueue never writes."""
    queued(serving)
    wrong = admission("r1-n1", "r1-n2")
    wrong["podSetAssignments"][0]["topologyAssignment"]["slices"][0].update(broken)
    with pytest.raises(ApiError) as refused:
        says(serving, {"admission": wrong})
    assert refused.value.status == 422
