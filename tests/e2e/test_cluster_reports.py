"""Reports in the cluster: three replicas behind one address write their decisions, by namespace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.api import ApiError, Json
from tests.e2e.binaries import ROOT
from tests.e2e.conftest import policy_set
from tests.e2e.controlplane import exists
from tests.e2e.fleet import Fleet
from tests.e2e.hook import bayplan
from tests.e2e.kube_ledgers import install
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, Replicas, job, nodes
from tests.e2e.stage import Cluster

CRD = "tests/e2e/crds/reports.openreports.io.yaml"
DEPLOYMENTS = "/apis/apps/v1/namespaces/research/deployments"
JOBS = "/apis/batch/v1/namespaces/research/jobs"
REPORT = "/apis/openreports.io/v1alpha1/namespaces/research/reports/bayplan"
WRITTEN = 30.0
"""Seconds: a batch, on a machine that has much to do."""
SWEPT = 90.0
"""Two looks after what was told has settled, and a batch."""


def deployment(name: str, replicas: int = 1) -> Json:
    """A Deployment of pods with one GPU that state nothing else."""
    limits = {"limits": {GPU: "1"}}
    container = {"name": "main", "image": "busybox", "resources": limits}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "research"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def results(cluster: Cluster, name: str) -> list[Json]:
    """The results for KIND/NAME in the Report of the namespace."""
    if not exists(cluster.api, REPORT):
        return []
    reported = cluster.api.get(REPORT)["results"]
    return [result for result in reported if "{kind}/{name}".format(**result["resources"][0]) == name]


def wait_for_results(cluster: Cluster, name: str, policy: str = "plan") -> list[Json]:
    """Waits for results of the policy: the replica that decided about a pod may write first."""

    def is_reported() -> bool:
        return policy in {result["policy"] for result in results(cluster, name)}

    wait_until(is_reported, f"the report to tell what {policy} says of {name}", WRITTEN)
    return results(cluster, name)


def gone(cluster: Cluster, name: str) -> None:
    """Waits until the Report has no result for the object."""
    wait_until(lambda: not results(cluster, name), f"the report to tell no more of {name}", SWEPT)


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Three replicas on two racks; a Deployment that is older than they are. OpenReports is installed
    later.
    """
    install(cluster.kubectl)
    folder = tmp_path_factory.mktemp("reports")
    fleet = Fleet(cluster.api)
    policies = policy_set("default-scheduler", folder)
    replicas = Replicas(cluster.api, cluster.kubectl.kubeconfig, folder, 3, policies)
    cluster.kubectl("delete", "-f", str(ROOT / CRD), "--wait")
    try:
        fleet.make(nodes(2, 3))
        cluster.api.create(DEPLOYMENTS, deployment("old"))
        replicas.start()
        replicas.configure()
        yield replicas
        replicas.unconfigure()
    finally:
        for path in (DEPLOYMENTS, JOBS):
            for item in cluster.api.items(path):
                cluster.api.delete(f"{path}/{item['metadata']['name']}")
        replicas.stop()
        cluster.kubectl("apply", "-f", str(ROOT / CRD))
        fleet.remove()


def test_without_openreports_nothing_is_written_and_that_is_said_once(
    cluster: Cluster, serving: Replicas
) -> None:
    """What is applied is answered as ever. Once the kind is there, it is taken up."""
    cluster.api.create(DEPLOYMENTS, deployment("early"))
    line = "no Reports are written: the CRD reports.openreports.io is not installed"
    assert serving.output().count(line) == 3, "each replica says it"
    checked = bayplan("doctor", "--kubeconfig", str(cluster.kubectl.kubeconfig), statuses=(0, 1))
    assert "install the CRD reports.openreports.io" in checked
    output = cluster.kubectl("apply", "-f", str(ROOT / CRD))
    assert output.status == 0, output.err

    def taken_up() -> bool:
        cluster.api.merge(
            f"{DEPLOYMENTS}/early",
            {"spec": {"template": {"metadata": {"annotations": {"again": str(taken_up.turn)}}}}},  # type: ignore[attr-defined]
        )
        taken_up.turn += 1  # type: ignore[attr-defined]
        return bool(results(cluster, "Deployment/early"))

    taken_up.turn = 0  # type: ignore[attr-defined]
    wait_until(taken_up, "the first report", 60, pause=2)
    assert serving.output().count(line) == 3
    cluster.api.delete(f"{DEPLOYMENTS}/early")


def test_a_report_tells_what_was_decided(cluster: Cluster, serving: Replicas) -> None:
    """Policies with the fields that they write, and the plan; `kubectl get reports -A` shows it."""
    cluster.api.create(DEPLOYMENTS, deployment("serve"))
    by_policy = {result["policy"]: result for result in wait_for_results(cluster, "Deployment/serve")}
    assert "spec/template/spec/containers/0/resources" in by_policy["guaranteed-qos"]["message"]
    assert by_policy["plan"]["rule"] == "Placed"
    line = cluster.kubectl("get", "reports", "-A").out.splitlines()[1]
    assert line.split()[:2] == ["research", "bayplan"]
    cluster.api.delete(f"{DEPLOYMENTS}/serve")
    gone(cluster, "Deployment/serve")


def test_a_refusal_is_told_though_its_object_never_was(cluster: Cluster, serving: Replicas) -> None:
    """Four nodes in racks of three; applied again so that it fits, it is refused no more."""
    with pytest.raises(ApiError):
        cluster.api.create(JOBS, job("never", 4))
    (failed,) = (result for result in wait_for_results(cluster, "Job/never") if result["result"] == "fail")
    assert failed["rule"] == "TooLargeForLevel"
    cluster.api.create(JOBS, job("never", 3))
    wait_until(
        lambda: not [result for result in results(cluster, "Job/never") if result["result"] == "fail"],
        "the refusal to go",
        WRITTEN,
    )
    cluster.api.delete(f"{JOBS}/never")


def test_a_dry_run_leaves_no_trace(cluster: Cluster, serving: Replicas) -> None:
    """Of two that are applied after each other, only the one that was meant is told."""
    cluster.api.create(DEPLOYMENTS, deployment("rehearsed"), dryRun="All")
    cluster.api.create(DEPLOYMENTS, deployment("meant"))
    wait_for_results(cluster, "Deployment/meant")
    assert not results(cluster, "Deployment/rehearsed")
    cluster.api.delete(f"{DEPLOYMENTS}/meant")


def test_pods_speak_for_what_was_there_before(cluster: Cluster, serving: Replicas) -> None:
    """Its Deployment is scaled: the new pod is mended, and the Report says so under the Deployment's name."""
    cluster.api.merge(f"{DEPLOYMENTS}/old", {"spec": {"replicas": 2}})
    reported = wait_for_results(cluster, "Deployment/old", "guaranteed-qos")
    assert {result["properties"]["told-by"] for result in reported} == {"its pods"}
    assert "guaranteed-qos" in {result["policy"] for result in reported}


def in_mode(cluster: Cluster, mode: str) -> None:
    """Sets the mode of the namespace and waits until the API server and the replicas use it."""
    output = cluster.kubectl("label", "--overwrite", "namespace", "research", f"bayplan.dev/mode={mode}")
    assert output.status == 0, output.err
    time.sleep(2)


@pytest.fixture
def unlabelled(cluster: Cluster) -> Iterator[None]:
    """Removes the namespace's label after the test."""
    yield
    cluster.kubectl("label", "namespace", "research", "bayplan.dev/mode-")


@pytest.mark.parametrize("mode", ["audit", "warn"])
def test_where_nothing_is_enforced_the_report_tells_what_would_be(
    cluster: Cluster, serving: Replicas, unlabelled: None, mode: str
) -> None:
    """What would be changed is stored as it came, what would be refused is let in; both are told."""
    in_mode(cluster, mode)
    cluster.api.create(DEPLOYMENTS, deployment(f"in-{mode}"))
    cluster.api.create(JOBS, job(f"never-in-{mode}", 4))
    by_policy = {result["policy"]: result for result in wait_for_results(cluster, f"Deployment/in-{mode}")}
    assert by_policy["guaranteed-qos"]["message"].endswith(f"(mode {mode}: not changed)")
    assert by_policy["guaranteed-qos"]["properties"]["mode"] == mode
    (plan,) = (
        result for result in wait_for_results(cluster, f"Job/never-in-{mode}") if result["policy"] == "plan"
    )
    assert (plan["result"], plan["rule"]) == ("warn", "TooLargeForLevel")
    stored = cluster.api.get(f"{DEPLOYMENTS}/in-{mode}")["spec"]["template"]["spec"]["containers"][0]
    assert stored["resources"] == {"limits": {GPU: "1"}}


def test_where_bayplan_is_off_nothing_is_told(cluster: Cluster, serving: Replicas, unlabelled: None) -> None:
    """Of two that are applied after each other, only the one that was looked at."""
    in_mode(cluster, "off")
    cluster.api.create(DEPLOYMENTS, deployment("unseen"))
    in_mode(cluster, "audit")
    cluster.api.create(DEPLOYMENTS, deployment("seen"))
    wait_for_results(cluster, "Deployment/seen")
    assert not [
        result for result in results(cluster, "Deployment/unseen") if "told-by" not in result["properties"]
    ]


def test_three_replicas_lose_nothing_to_each_other(cluster: Cluster, serving: Replicas) -> None:
    """Forty at once, decided on all three; deleted together, they drop out together."""
    names = [f"many-{number}" for number in range(40)]

    def apply(name: str) -> Any:
        return cluster.api.create(DEPLOYMENTS, deployment(name, 0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(apply, names))

    def missing() -> set[str]:
        reported = cluster.api.get(REPORT)["results"] if exists(cluster.api, REPORT) else []
        return set(names) - {result["resources"][0]["name"] for result in reported}

    wait_until(lambda: not missing(), "all to be told", WRITTEN)
    for port in serving.ports:
        assert "bayplan_unreported_decisions_total 0.0" in serving.metrics(port)
    for name in names:
        cluster.api.delete(f"{DEPLOYMENTS}/{name}")
    wait_until(lambda: missing() == set(names), "all to drop out", SWEPT)
