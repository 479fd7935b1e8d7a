"""A suspended Job reserves nothing. When it is resumed, as by Kueue, it runs where its new selector and its
plan say.

The real API server lets a controller change some fields in the template of a Job that never started: node
selector, node affinity, tolerations, labels, annotations and scheduling gates. Kueue writes all of them in
one update, together with `suspend: false`, when it starts a Job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import RACK, Replicas, job, racks_of, reservations
from tests.e2e.serving import PODS, pods, replicas_of, running
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
GATE = "kueue.x-k8s.io/topology"
IN_R2 = {"key": RACK, "operator": "In", "values": ["r2"]}
DIRECTIVES: dict[str, Json] = {
    "a node selector": {"spec": {"nodeSelector": {RACK: "r2"}}},
    "a node affinity": {
        "spec": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [IN_R2]}]
                    }
                }
            }
        }
    },
    "all that Kueue writes for a flavor without a topology": {
        "metadata": {
            "labels": {"kueue.x-k8s.io/podset": "main"},
            "annotations": {"kueue.x-k8s.io/workload": "job-resumed"},
        },
        "spec": {
            "nodeSelector": {RACK: "r2"},
            "tolerations": [{"key": "flavor", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
}
"""What is written into the template in the update that resumes a Job; each sends its pods to rack r2."""


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Two racks of two nodes, and a replica."""
    with replicas_of(cluster, tmp_path_factory.mktemp("suspended"), 2, 2, 1) as replicas:
        yield replicas


@pytest.fixture
def gone(serving: Replicas) -> Iterator[None]:
    """After each test, deletes all Jobs and waits until the reservations are gone."""
    yield
    for item in serving.api.items(JOBS):
        serving.api.delete(f"{JOBS}/{item['metadata']['name']}")
    wait_until(lambda: not serving.api.items(PODS) and not reservations(serving.api), "all to go", 60)


def suspended(name: str) -> Json:
    """A Job of two whole nodes in one rack, suspended as a queue creates it."""
    body = job(name, 2)
    body["spec"]["suspend"] = True
    return body


def placement(stored: Json) -> Any:
    """The annotation on the Job about its placement."""
    return json.loads(stored["metadata"]["annotations"]["bayplan.dev/placement"])


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("directives", DIRECTIVES.values(), ids=DIRECTIVES)
def test_a_job_that_is_resumed_with_a_selector_gets_its_place_there(
    serving: Replicas, directives: Json
) -> None:
    """Rack r1 is the first choice of the plan, and free; its queue has sent the Job to r2."""
    stored = serving.api.create(JOBS, suspended("resumed"))
    assert "bayplan.dev/placement" not in stored["metadata"]["annotations"]
    assert reservations(serving.api) == {}
    resumed = serving.api.merge(f"{JOBS}/resumed", {"spec": {"suspend": False, "template": directives}})
    assert (placement(resumed)["decision"], placement(resumed)["domain"]) == ("admitted", ["r2"])
    template = resumed["spec"]["template"]
    assert template["spec"] | directives["spec"] == template["spec"], "nothing of it was changed"
    for name, keys in directives.get("metadata", {}).items():
        assert keys.items() <= template["metadata"][name].items()
    assert racks_of(running(serving, "resumed", 2)) == {"r2"}
    (held,) = reservations(serving.api).values()
    assert held["spec"]["gang"] == "research/Job/resumed"
    assert {pod["spec"]["nodeName"] for pod in pods(serving, "resumed")} == {"r2-n1", "r2-n2"}


@pytest.mark.usefixtures("gone")
def test_a_job_whose_nodes_kueue_assigns_is_left_to_kueue(serving: Replicas) -> None:
    """Its Topology-Aware Scheduling gates each pod, and writes its node when it opens the gate: nothing is
    planned or held beside that, and the next gang goes where room is left."""
    serving.api.create(JOBS, suspended("resumed"))
    template = {"spec": {"nodeSelector": {RACK: "r2"}, "schedulingGates": [{"name": GATE}]}}
    resumed = serving.api.merge(f"{JOBS}/resumed", {"spec": {"suspend": False, "template": template}})
    assert "bayplan.dev/placement" not in resumed["metadata"]["annotations"]
    wait_until(lambda: len(pods(serving, "resumed")) == 2, "its pods")
    for pod, node in zip(pods(serving, "resumed"), ("r2-n1", "r2-n2"), strict=True):
        assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
        assigned = {"nodeSelector": {RACK: "r2", "kubernetes.io/hostname": node}, "schedulingGates": None}
        serving.api.merge(f"{PODS}/{pod['metadata']['name']}", {"spec": assigned})
    running(serving, "resumed", 2)
    assert reservations(serving.api) == {}
    after = serving.api.create(JOBS, job("after", 2))
    assert (placement(after)["decision"], placement(after)["domain"]) == ("admitted", ["r1"])


@pytest.mark.usefixtures("gone")
def test_a_rack_full_of_suspended_jobs_is_free(serving: Replicas) -> None:
    """Six of them hold nothing, so that a Job which nobody suspends has its place; suspended while it runs,
    it gives that place back, and has one again when it is resumed."""
    for number in range(6):
        serving.api.create(JOBS, suspended(f"later-{number}"))
    serving.api.create(JOBS, job("now", 2))
    running(serving, "now", 2)
    assert list(reservations(serving.api)) == ["research/Job/now"]
    serving.api.merge(f"{JOBS}/now", {"spec": {"suspend": True}})
    wait_until(lambda: not reservations(serving.api), "its place to be given back", 60)
    wait_until(lambda: not pods(serving, "now"), "its pods to go", 60)
    serving.api.merge(f"{JOBS}/now", {"spec": {"suspend": False}})
    running(serving, "now", 2)
    assert list(reservations(serving.api)) == ["research/Job/now"]
