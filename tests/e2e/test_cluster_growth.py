"""A cluster with an autoscaler: a gang that is too large is admitted without a gate and runs on new nodes.

Karpenter and Cluster API are simulated: their objects have the shipped kinds, and the test creates the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.api import ApiError, Json
from tests.e2e.fleet import Fleet
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import define
from tests.e2e.replicas import Replicas, job, nodes, reservations
from tests.e2e.serving import replicas_of
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
POOLS = "/apis/karpenter.sh/v1/nodepools"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpu"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                "requirements": [],
            }
        },
        "limits": {"nvidia.com/gpu": "16"},
    },
}

DEPLOYMENTS = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
DEPLOYMENT: Json = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "MachineDeployment",
    "metadata": {
        "name": "gpus",
        "annotations": {
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "2",
            f"{CAPACITY}/cpu": "64",
            f"{CAPACITY}/memory": "512Gi",
            f"{CAPACITY}/gpu-count": "8",
            f"{CAPACITY}/gpu-type": "nvidia.com/gpu",
        },
    },
    "spec": {
        "clusterName": "lab",
        "replicas": 0,
        "selector": {"matchLabels": {"pool": "gpus"}},
        "template": {
            "metadata": {"labels": {"pool": "gpus"}},
            "spec": {
                "clusterName": "lab",
                "bootstrap": {"dataSecretName": "none"},
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "LabMachineTemplate",
                    "name": "gpus",
                },
            },
        },
    },
}
KINDS = ("nodepools.karpenter.sh", "machinedeployments.cluster.x-k8s.io")


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One rack of one node, and a replica that the API server calls."""
    define(cluster.kubectl, *KINDS)
    try:
        with replicas_of(cluster, tmp_path_factory.mktemp("replicas"), 1, 1, count=1) as replicas:
            yield replicas
    finally:
        for name in KINDS:
            cluster.api.delete(f"{DEFINITIONS}/{name}")


def gang(name: str, pods: int) -> Json:
    """A Job that is a gang of whole nodes without a constraint."""
    body = job(name, pods, required="")
    body["metadata"]["annotations"]["bayplan.dev/gang"] = name
    return body


def refusal(serving: Replicas, body: Json) -> str:
    """The API server's error for a Job, or "" if it accepts the Job."""
    try:
        serving.api.create(JOBS, body, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


def pods(serving: Replicas) -> list[Json]:
    """The pods of the namespace."""
    return serving.api.items(PODS)


def test_a_gang_that_waits_for_nodes_runs_when_they_have_come(serving: Replicas) -> None:
    """Refused while nothing can grow; with a pool its pods are pending and ungated, as an autoscaler needs
    them, and the scheduler binds them to the new nodes. A gang beyond the pool's limits is refused still."""
    assert "can never run" in refusal(serving, gang("early", 3))
    serving.api.create(POOLS, POOL)
    wait_until(lambda: not refusal(serving, gang("early", 3)), "the pool to be seen", 60)
    assert "can never run" in refusal(serving, gang("larger", 4))
    stored = serving.api.create(JOBS, gang("grows", 3))
    assert '"waitsFor":"nodes"' in stored["metadata"]["annotations"]["bayplan.dev/placement"]
    assert reservations(serving.api) == {}
    wait_until(lambda: len(pods(serving)) == 3, "the Job controller to make the pods", 60)
    assert not any(pod["spec"].get("schedulingGates") for pod in pods(serving))
    fleet = Fleet(serving.api)
    try:
        fleet.make(item for item in nodes(1, 3) if item["metadata"]["name"] in ("r1-n2", "r1-n3"))
        bound = lambda: {pod["spec"].get("nodeName") for pod in pods(serving)}  # noqa: E731
        wait_until(lambda: bound() == {"r1-n1", "r1-n2", "r1-n3"}, "the pods to be bound", 60)
    finally:
        serving.api.delete(f"{JOBS}/grows")
        serving.api.delete(f"{POOLS}/gpu")
        wait_until(lambda: not pods(serving), "the pods to go", 60)
        fleet.remove()


def test_a_machine_deployment_of_cluster_api_may_add_nodes(serving: Replicas) -> None:
    """As its own schema stores it, with the Cluster Autoscaler's annotations; a gang beyond its largest size
    is refused as before."""
    assert "can never run" in refusal(serving, gang("early", 3))
    serving.api.create(DEPLOYMENTS, DEPLOYMENT)
    try:
        wait_until(lambda: not refusal(serving, gang("early", 3)), "the pool to be seen", 60)
        assert "can never run" in refusal(serving, gang("larger", 4))
    finally:
        serving.api.delete(f"{DEPLOYMENTS}/gpus")
    wait_until(lambda: "can never run" in refusal(serving, gang("late", 3)), "the pool to be gone", 60)
