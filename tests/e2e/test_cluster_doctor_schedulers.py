"""`bayplan doctor` with KAI and Kueue: their kinds have their own schemas, on a separate control plane.

The cluster has two racks of two nodes. The schedulers' programs do not run, but their pods exist, with the
images of the real ones. `bayplan generate` prints the objects that the two need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.binaries import find
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import Fleet, namespace
from tests.e2e.hook import bayplan
from tests.e2e.kube_ledgers import install, rack
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import Kubelet
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import NAMES, define
from tests.e2e.replicas import nodes
from tests.e2e.stage import Cluster
from webhook.kube.ledger import documents

KAI = ("topologies.kai.scheduler", "queues.scheduling.run.ai", "podgroups.scheduling.run.ai")
KUEUE = sorted(name for name in NAMES if name.endswith("kueue.x-k8s.io"))
PODS = "/api/v1/namespaces/research/pods"
IMAGES = {
    "kai": "ghcr.io/kai-scheduler/kai-scheduler/scheduler:v0.12.4",
    "kueue": "registry.k8s.io/kueue/kueue:v0.19.0",
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server with the kinds of Bayplan, KAI and Kueue, and two racks of two nodes."""
    programs, folder = find(), tmp_path_factory.mktemp("beside")
    with ControlPlane(programs, folder) as plane:
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        install(kubectl)
        define(kubectl, *KAI, *KUEUE)
        namespace(plane.api, "research")
        Fleet(plane.api).make(nodes(2, 2)[1:])
        yield Cluster(plane.api, kubectl, Kubelet(plane.api))


def warnings_of(cluster: Cluster) -> str:
    """The doctor's findings about schedulers that require an action."""
    options = ("--kubeconfig", str(cluster.kubectl.kubeconfig), "-o", "json")
    lines: list[Json] = []

    def has_read() -> bool:
        """Returns whether the doctor read all objects. On a busy machine it gives up and reports that."""
        lines[:] = json.loads(bayplan("doctor", *options, statuses=(0, 1)))
        return not any("not read within" in line["message"] for line in lines)

    wait_until(has_read, "the doctor to have read the cluster", 240)
    return "\n".join(
        line["message"] for line in lines if line["subject"] == "scheduling" and line["grade"] != "ok"
    )


def generated(cluster: Cluster, folder: Path, system: str) -> list[Json]:
    """The output of `bayplan generate` for the nodes of the cluster."""
    file = folder / "nodes.yaml"
    file.write_text(cluster.kubectl("get", "nodes", "-o", "yaml").out)
    options = ("-n", "research") if system == "kueue" else ()
    return [
        body for body in yaml.safe_load_all(bayplan("generate", system, "-c", str(file), *options)) if body
    ]


def apply(cluster: Cluster, *bodies: Json) -> None:
    """Applies the objects with kubectl; the API server accepts all of them without a warning."""
    output = cluster.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(bodies))
    assert (output.status, output.err) == (0, "")


def runs(cluster: Cluster, name: str) -> None:
    """Creates a running pod of the scheduler."""
    container = {"name": "main", "image": IMAGES[name]}
    body = {"metadata": {"name": name}, "spec": {"nodeName": "r1-n1", "containers": [container]}}
    cluster.api.create(PODS, body)
    cluster.api.merge(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})


def test_what_is_missing_is_told_until_it_is_there(bare: Cluster, tmp_path: Path) -> None:
    """Nothing but kinds; then the objects that are generated, which both systems' schemas take; then pods."""
    before = warnings_of(bare)
    for words in (
        "kai-scheduler is there by CustomResourceDefinition",
        "kueue is there by CustomResourceDefinition",
        "no pod that runs it is running",
        "KAI has no Topology",
        "KAI has no Queue",
        "Kueue has no LocalQueue",
    ):
        assert words in before
    objects = [body for system in ("kai", "kueue") for body in generated(bare, tmp_path, system)]
    apply(bare, *objects)
    runs(bare, "kai")
    runs(bare, "kueue")
    assert (
        warnings_of(bare) == "KAI v0.12.4 does not read kai.scheduler/batch-min-member: its Jobs are no gangs"
    )


def test_what_is_named_and_not_there_is_warnings_of(bare: Cluster, tmp_path: Path) -> None:
    """A flavor's Topology, a cluster queue's flavor, a queue's parent, a Job in two queues, a held rack."""
    version = "kueue.x-k8s.io/v1beta2"
    flavor = {"nodeLabels": {"pool": "x"}, "topologyName": "gone"}
    amounts = {"name": "lost", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    group = {"coveredResources": ["cpu"], "flavors": [amounts]}
    local = {"name": "astray", "namespace": "research"}
    container = {"name": "main", "image": "busybox"}
    pod = {"schedulerName": "kai-scheduler", "restartPolicy": "Never", "containers": [container]}
    labels = {"kueue.x-k8s.io/queue-name": "main"}
    train = {"name": "train", "namespace": "research", "labels": labels}
    apply(
        bare,
        {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "odd"}, "spec": flavor},
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": "odd"},
            "spec": {"resourceGroups": [group]},
        },
        {"apiVersion": version, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": "none"}},
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": "team"},
            "spec": {"parentQueue": "no"},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": train,
            "spec": {"suspend": True, "template": {"spec": pod}},
        },
    )
    bare.api.create(documents.RESERVATIONS, documents.proposed(rack("r1", "research/Job/holds")))
    after = warnings_of(bare)
    for words in (
        "ResourceFlavor odd names the Topology gone, which is not there",
        "ClusterQueue odd has the flavor lost, which is not there",
        "LocalQueue research/astray is of the ClusterQueue none, which is not there",
        "Queue team is below the Queue no, which is not there",
        "1 Jobs are queued by Kueue and kai-scheduler, as research/train",
        "may use nodes that 1 gang holds unused, as research/Job/holds does",
    ):
        assert words in after
