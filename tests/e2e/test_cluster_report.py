"""`bayplan report --kubeconfig` before Bayplan is installed: what it would do to all running workloads.

The cluster has two racks of three nodes, with workloads that real controllers run.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.fleet import Fleet
from tests.e2e.hook import BAYPLAN
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, job, nodes
from tests.e2e.stage import Cluster

PODS = "/api/v1/namespaces/research/pods"
APPS = "/apis/apps/v1/namespaces/{}/{}"
JOBS = "/apis/batch/v1/namespaces/research/jobs"


def pod(gpus: int = 0) -> Json:
    """A pod template of the app x."""
    limits = {"resources": {"limits": {GPU: str(gpus)}}} if gpus else {}
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "main", "image": "busybox", **limits}]},
    }


def apps(kind: str, name: str, gpus: int, namespace: str = "research", **spec: Any) -> Json:
    """A Deployment or DaemonSet. Pods with GPUs reserve what they use."""
    annotations = {"bayplan.dev/reserve": "nodes"} if gpus else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": pod(gpus), **spec},
    }


def objects() -> list[tuple[str, Json]]:
    """Path and object of everything that is applied: `full` holds a whole rack, and `serve` is in the
    other.
    """
    bare = {"apiVersion": "v1", "kind": "Pod", **pod(1)}
    bare["metadata"] = {"name": "notebook", "namespace": "research"}
    inference_pod = copy.deepcopy(bare)
    inference_pod["metadata"] = {"name": "notebook", "namespace": "inference"}
    template = job("x", 1, required="", gpus=1)["spec"]["template"]
    cron: Json = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "research"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}},
    }
    return [
        (JOBS, job("full", 3)),
        (APPS.format("research", "deployments"), apps("Deployment", "serve", 1, replicas=3)),
        (APPS.format("research", "deployments"), apps("Deployment", "web", 0, replicas=1)),
        (APPS.format("research", "daemonsets"), apps("DaemonSet", "exporter", 0)),
        (
            APPS.format("kube-system", "deployments"),
            apps("Deployment", "system", 1, "kube-system", replicas=0),
        ),
        (PODS, bare),
        ("/api/v1/namespaces/inference/pods", inference_pod),
        ("/apis/batch/v1/namespaces/research/cronjobs", cron),
        (JOBS, job("waits", 3)),
        (JOBS, job("never", 4)),
        (JOBS, job("over", 1, gpus=1, nodeName="r2-n3")),
    ]  # fmt: skip


@dataclass
class ReportOutput:
    """The output of one run and its exit status."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Json:
        """The output, parsed as JSON."""
        assert self.status in (0, 1), self.err
        return dict(json.loads(self.out))

    def of(self, name: str) -> list[Json]:
        """The results of one object."""
        return [row for row in self.document["results"] if row["object"] == name]


@dataclass
class Ground:
    """The cluster with the shipped policies."""

    cluster: Cluster

    def report(self, *options: str, kubeconfig: Path | None = None) -> ReportOutput:
        """Runs `bayplan report --kubeconfig`, with JSON output by default."""
        path = kubeconfig or self.cluster.kubectl.kubeconfig
        command = [BAYPLAN, "report", "--kubeconfig", str(path), "-o", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return ReportOutput(done.returncode, done.stdout, done.stderr)

    def versions(self) -> dict[str, str]:
        """The resourceVersion of every object that a run could have changed."""
        paths = {path for path, _ in objects()} | {APPS.format("research", "replicasets")}
        listed = [item for path in paths for item in self.cluster.api.items(path)]
        return {item["metadata"]["uid"]: json.dumps(item["spec"], sort_keys=True) for item in listed}

    def pods(self, phase: str) -> list[str]:
        """The namespace's pods that are in a phase."""
        pods = self.cluster.api.items(PODS, fieldSelector=f"status.phase={phase}")
        return [pod["metadata"]["name"] for pod in pods]


@pytest.fixture(scope="module")
def ground(cluster: Cluster) -> Iterator[Ground]:
    """The cluster with all workloads, running as far as they fit."""
    fleet = Fleet(cluster.api)
    try:
        ground = Ground(cluster)
        both_racks = nodes(2, 3)
        first_rack = [item for item in both_racks if not item["metadata"]["name"].startswith("r2-")]
        fleet.make(first_rack)
        full, *others = objects()
        cluster.api.create(*full)
        wait_until(lambda: len(ground.pods("Running")) == 3, "the first job to take the only rack", 60)
        fleet.make(item for item in both_racks if item not in first_rack)
        for path, body in others:
            cluster.api.create(path, body)
        wait_until(lambda: len(ground.pods("Running")) >= 3 + 3 + 1 + 6 + 1 + 1, "the pods to run", 60)
        (over,) = (
            pod
            for pod in cluster.api.items(PODS, labelSelector="job-name=over")
            if pod["spec"].get("nodeName")
        )
        cluster.kubelet.finish(over, "Succeeded")
        wait_until(lambda: "succeeded" in cluster.api.get(f"{JOBS}/over")["status"], "the job to end", 60)
        yield ground
    finally:
        for path, body in objects():
            cluster.api.delete(f"{path}/{body['metadata']['name']}")
        wait_until(lambda: not cluster.api.items(PODS), "the pods to go", 60)
        fleet.remove()


def test_each_object_is_judged_by_itself_and_its_owner_alone_is_told(ground: Ground) -> None:
    """Not ReplicaSets, not their pods, not DaemonSets, not what has ended, not the cluster's own programs."""
    report = ground.report()
    document = report.document
    names = {row["object"] for row in document["results"]}
    assert names == {
        "research/Deployment/serve",
        "research/Pod/notebook",
        "inference/Pod/notebook",
        "research/CronJob/nightly",
        "research/Job/full",
        "research/Job/waits",
        "research/Job/never",
    }
    assert document["objects"] == {"refused": 1, "queued": 1, "changed": 5, "unchanged": 1}
    assert document["namespaces"]["inference"] == {"refused": 0, "queued": 0, "changed": 1, "unchanged": 0}
    assert sum(document["namespaces"]["research"].values()) == 7
    assert document["changes"]["guaranteed-qos"] == 7, "all that ask for GPUs"
    assert report.status == 1, "one would be refused"


def test_what_runs_is_no_reason_for_itself_to_wait(ground: Ground) -> None:
    """The job that fills a rack would have its place on a cluster without its own pods."""
    (plan,) = (row for row in ground.report().of("research/Job/full") if row["policy"] == "plan")
    assert (plan["result"], plan["properties"].get("domain")) == ("pass", "r1"), plan["message"]


def test_what_others_hold_is_a_reason_to_wait_and_what_can_never_be_to_refuse(ground: Ground) -> None:
    """Three whole nodes of a rack while both racks are in use; four in racks of three."""
    report = ground.report()
    (waits,) = (row for row in report.of("research/Job/waits") if row["policy"] == "plan")
    assert (waits["result"], waits["properties"]["decision"]) == ("warn", "queued")
    (never,) = (row for row in report.of("research/Job/never") if row["policy"] == "plan")
    assert (never["result"], never["rule"]) == ("fail", "TooLargeForLevel")


def test_nothing_is_changed(ground: Ground) -> None:
    """Every spec is what it was."""
    before = ground.versions()
    ground.report()
    assert ground.versions() == before


def test_one_namespace_alone(ground: Ground) -> None:
    """Judged on the cluster as it is, with all pods in it."""
    report = ground.report("-n", "inference")
    assert report.document["namespaces"] == {
        "inference": {"refused": 0, "queued": 0, "changed": 1, "unchanged": 0}
    }
    assert report.status == 0


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_the_summary_stands_at_the_top(ground: Ground, form: str) -> None:
    """Objects by fate, in all and by namespace, before the first finding."""
    text = ground.report("-o", form).out
    summary = text.lower().index("of 8 objects 1 refused, 1 queued, 5 changed, 1 unchanged")
    assert summary < text.index("inference") < text.index("TooLargeForLevel")


OF_EVERYBODY = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: team}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"team": "ml"}}}'}
"""
"""A policy for every Deployment, of which only those with GPUs ever reach Bayplan."""


def test_what_no_webhook_is_asked_about_is_unchanged(ground: Ground, tmp_path: Path) -> None:
    """By the match conditions of the webhooks that ship, or of those in the cluster."""
    (tmp_path / "team.yaml").write_text(OF_EVERYBODY)
    options = ("-p", str(tmp_path))
    report = ground.report(*options)
    changed = {row["object"] for row in report.document["results"] if row["policy"] == "team"}
    assert changed == {"research/Deployment/serve"}
    assert "1 of 8 objects count as unchanged, because no webhook is asked about them" in report.err
    (mutating, _) = yaml.safe_load_all((ROOT / "manifests" / "70-webhooks.yaml").read_text())
    every = next(hook for hook in mutating["webhooks"] if hook["name"] == "templates.observed.bayplan.dev")
    mutating["webhooks"] = [{key: value for key, value in every.items() if key != "matchConditions"}]
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    ground.cluster.api.create(path, mutating)
    try:
        document = ground.report(*options).document
        changed = {row["object"] for row in document["results"] if row["policy"] == "team"}
        assert changed == {"research/Deployment/serve", "research/Deployment/web"}
    finally:
        ground.cluster.api.delete(f"{path}/bayplan")


def test_what_may_not_be_read_is_told_and_done_without(ground: Ground, tmp_path: Path) -> None:
    """A user who may list nodes, pods and Deployments gets a report on these."""
    kubectl = ground.cluster.kubectl
    for arguments in (
        ("create", "serviceaccount", "reader"),
        (
            "create",
            "clusterrole",
            "reader",
            "--verb=get,list,watch",
            "--resource=nodes,pods,deployments.apps",
        ),
        ("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader"),
    ):
        assert kubectl("-n", "default", *arguments).status == 0
    try:
        token = kubectl("-n", "default", "create", "token", "reader").out.strip()
        config = yaml.safe_load(kubectl.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = tmp_path / "reader.yaml"
        path.write_text(yaml.safe_dump(config))
        report = ground.report(kubeconfig=path)
        assert {row["object"] for row in report.document["results"]} == {
            "research/Deployment/serve",
            "research/Pod/notebook",
            "inference/Pod/notebook",
        }
        missing = [line for line in report.err.splitlines() if line.startswith("not read")]
        assert any("/jobs" in line for line in missing), report.err
        assert not any("deployments" in line for line in missing), report.err
    finally:
        for kind in ("clusterrolebinding", "clusterrole", "serviceaccount"):
            kubectl("-n", "default", "delete", kind, "reader")


def test_a_cluster_that_does_not_answer_is_one_line(ground: Ground, tmp_path: Path) -> None:
    """No traceback; status 2."""
    config = yaml.safe_load(ground.cluster.kubectl.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    path = tmp_path / "nowhere.yaml"
    path.write_text(yaml.safe_dump(config))
    report = ground.report(kubeconfig=path)
    assert report.status == 2
    assert "nowhere.yaml: cannot be read: the API server does not answer" in report.err
    assert "Traceback" not in report.err
