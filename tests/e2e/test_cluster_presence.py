"""Without KAI in the cluster, pods use kube-scheduler and start; with KAI's kinds they also get its keys.

The control plane is separate; at first its API server has no kind of any other scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.binaries import find
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import Fleet, namespace
from tests.e2e.hook import bayplan
from tests.e2e.kube_ledgers import install
from tests.e2e.kubectl import Kubectl, Output
from tests.e2e.kubelet import Kubelet
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import define
from tests.e2e.replicas import GPU, RACK, Replicas, nodes, racks_of
from tests.e2e.stage import Cluster

PODS = "/api/v1/namespaces/research/pods"
TOPOLOGY, *NODES = nodes(2, 2)


def job(name: str) -> Json:
    """A Job of two whole nodes without a constraint."""
    container = {
        "name": "train",
        "image": "busybox",
        "resources": {"limits": {"cpu": "4", "memory": "8Gi", GPU: 8}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    metadata = {"name": name, "namespace": "research"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def queue(name: str) -> Json:
    """A Queue of KAI."""
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"priority": 100},
    }


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server with Bayplan's own kinds, two racks of two nodes, and the replicas that it calls."""
    programs, folder = find(), tmp_path_factory.mktemp("presence")
    with ControlPlane(programs, folder) as plane:
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        install(kubectl)
        namespace(plane.api, "research")
        Fleet(plane.api).make(NODES)
        replicas = Replicas(plane.api, plane.kubeconfig, folder)
        replicas.start()
        try:
            replicas.configure()
            with Kubelet(plane.api) as kubelet:
                yield Cluster(plane.api, kubectl, kubelet)
        finally:
            replicas.stop()


def apply(cluster: Cluster, *objects: Json, options: tuple[str, ...] = ()) -> Output:
    """Runs `kubectl apply`, which must succeed."""
    output = cluster.kubectl("apply", "-f", "-", *options, text=yaml.safe_dump_all(objects))
    assert output.status == 0, output.err
    return output


def previewed(cluster: Cluster) -> Json:
    """A Job as the API server would store it now."""
    return apply(cluster, job("preview"), options=("--dry-run=server", "-o", "yaml")).object


def scheduler(obj: Json) -> str:
    """The schedulerName in a Job's template."""
    return str(obj["spec"]["template"]["spec"]["schedulerName"])


def scheduler_finding(cluster: Cluster) -> Json:
    """The doctor's finding about schedulers."""
    findings = json.loads(
        bayplan("doctor", "--kubeconfig", str(cluster.kubectl.kubeconfig), "-o", "json", statuses=(0, 1))
    )
    return next(finding for finding in findings if finding["subject"] == "schedulers")


def test_without_kai_a_gpu_job_runs_on_the_default_scheduler(bare: Cluster) -> None:
    """Its pods are bound in the planned rack; nothing on them, or in the book, names what is not there."""
    output = apply(bare, job("first"))
    assert output.warnings == []
    stored = bare.api.get("/apis/batch/v1/namespaces/research/jobs/first")
    assert scheduler(stored) == "default-scheduler"
    assert not [key for key in stored["metadata"].get("annotations", {}) if "kai" in key]
    assert "kai.scheduler/queue" not in stored["metadata"].get("labels", {})
    wait_until(lambda: len(racks_of(bare.api.items(PODS))) == 1, "both pods in one rack")
    wait_until(lambda: all(pod["spec"].get("nodeName") for pod in bare.api.items(PODS)), "two bound pods")
    shown = bare.kubectl("get", "reservations", "-o", "wide").out + yaml.safe_dump(stored)
    assert "inferred" not in shown
    note = json.loads(stored["metadata"]["annotations"]["bayplan.dev/placement"])
    assert (note["topology"], note["level"]) == ("", RACK)
    assert (
        scheduler_finding(bare)["message"]
        == "only kube-scheduler is there, and nothing is written for another one"
    )


def test_once_kai_is_there_the_next_job_is_kais(bare: Cluster) -> None:
    """Its kinds are served, it has a Topology and a queue; Bayplan is not restarted."""
    assert scheduler(previewed(bare)) == "default-scheduler"
    define(bare.kubectl, "topologies.kai.scheduler", "queues.scheduling.run.ai")
    wait_until(lambda: scheduler(previewed(bare)) == "kai-scheduler", "KAI's kinds are noticed", 60)
    assert "kai.scheduler/queue" not in previewed(bare)["metadata"].get("labels", {})
    assert "kai.scheduler/topology" not in previewed(bare)["metadata"]["annotations"]

    apply(bare, queue("default-queue"), TOPOLOGY)

    def is_kais() -> bool:
        """Returns whether the Job has everything that KAI reads."""
        metadata = previewed(bare)["metadata"]
        annotations = metadata["annotations"]
        return (
            metadata.get("labels", {}).get("kai.scheduler/queue") == "default-queue"
            and annotations.get("kai.scheduler/topology") == "racks"
            and annotations["kai.scheduler/topology-preferred-placement"] == RACK
            and annotations["kai.scheduler/batch-min-member"] == "2"
        )

    wait_until(is_kais, "queue and Topology are noticed", 60)
    assert scheduler_finding(bare)["message"].endswith("; 1 queue, 1 Topology object)")


def test_a_queue_that_goes_is_told_to_the_next_user(bare: Cluster) -> None:
    """With those that are left, as a warning of kubectl."""
    apply(bare, queue("training"))
    assert bare.kubectl("delete", "queues.scheduling.run.ai", "default-queue").status == 0

    def warned() -> bool:
        """The warnings that kubectl prints with the Job."""
        output = apply(bare, job("later"), options=("--dry-run=server",))
        return any(
            "KAI has no queue default-queue" in warning and "There are training." in warning
            for warning in output.warnings
        )

    wait_until(warned, "the queue is missed", 60)
