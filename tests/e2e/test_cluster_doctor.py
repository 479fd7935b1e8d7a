"""`bayplan doctor` on a real cluster, without an installation and with a running one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.hook import bayplan
from tests.e2e.kube_ledgers import install
from tests.e2e.processes import wait_until
from tests.e2e.replicas import RACK, Replicas, nodes
from tests.e2e.stage import Cluster


def examined(cluster: Cluster, *options: str) -> dict[str, dict[str, Any]]:
    """The worst finding about each subject."""
    arguments = ("--kubeconfig", str(cluster.kubectl.kubeconfig), "-o", "json", *options)
    findings: dict[str, dict[str, Any]] = {}
    for finding in json.loads(bayplan("doctor", *arguments, statuses=(0, 1))):
        if finding["subject"] not in findings or finding["grade"] == "fail":
            findings[finding["subject"]] = finding
    return findings


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One replica on two racks of two nodes."""
    install(cluster.kubectl)
    folder = tmp_path_factory.mktemp("doctor")
    fleet = Fleet(cluster.api)
    replicas = Replicas(
        cluster.api, cluster.kubectl.kubeconfig, folder, 1, policy_set("default-scheduler", folder)
    )
    try:
        fleet.make(nodes(2, 2))
        replicas.start()
        yield replicas
    finally:
        replicas.stop()
        fleet.remove()


def test_without_configurations_it_fails_and_says_what_to_apply(cluster: Cluster, serving: Replicas) -> None:
    """The kinds are served and nodes are labelled; nobody calls the webhook, and no right is given."""
    findings = examined(cluster)
    assert findings["CRDs"]["grade"] == "ok"
    assert findings["Reports"]["grade"] == "ok"
    assert findings["topology racks"]["grade"] == "ok"
    assert "kai-scheduler is there by" in findings["scheduling"]["message"]
    assert "no pod that runs it is running" in findings["scheduling"]["message"]
    assert findings["mutating webhooks"]["mend"] == "kubectl apply -k manifests/"
    assert findings["RBAC"]["grade"] == "fail"
    assert findings["dry run"]["message"].endswith("but no webhook planned it")
    bayplan("doctor", "--kubeconfig", str(cluster.kubectl.kubeconfig), statuses=(1,))


def test_what_serves_is_found_to_serve(cluster: Cluster, serving: Replicas) -> None:
    """Configurations with a CA, a leader, and a dry run that comes back planned."""
    serving.configure()
    try:
        wait_until(
            lambda: examined(cluster, "--namespace", "default")["controller"]["grade"] == "ok", "a leader"
        )
        findings = examined(cluster, "--namespace", "default")
        grades = {
            subject: findings[subject]["grade"]
            for subject in ("mutating webhooks", "validating webhooks", "dry run")
        }
        assert set(grades.values()) == {"ok"}, findings
        assert findings["modes"]["grade"] == "ok", findings["modes"]
        print(f"\n{findings['dry run']['message']}")
    finally:
        serving.unconfigure()


def test_a_label_that_is_no_mode_is_told_by_kubectl_and_by_the_doctor(
    cluster: Cluster, serving: Replicas
) -> None:
    """When it is written, and for as long as it stands there."""
    serving.configure()
    try:
        output = cluster.kubectl("label", "namespace", "research", "bayplan.dev/mode=enforced", "--overwrite")
        assert output.status == 0
        warning = " ".join(output.warnings)
        assert warning.startswith("namespace research: label bayplan.dev/mode is")
        assert "valid are enforce, warn, audit, off" in warning
        wrong = examined(cluster, "--namespace", "default")["modes"]
        assert wrong["grade"] == "warn"
        assert "namespace research: label bayplan.dev/mode is" in wrong["message"]
        output = cluster.kubectl("label", "namespace", "research", "bayplan.dev/mode=warn", "--overwrite")
        assert (output.status, output.warnings) == (0, [])
    finally:
        cluster.kubectl("label", "namespace", "research", "bayplan.dev/mode-")
        serving.unconfigure()


def test_a_node_without_its_label_is_named(cluster: Cluster, serving: Replicas) -> None:
    """It is in no topology, so no gang that asks for a rack can use it."""
    cluster.api.merge("/api/v1/nodes/r1-n1", {"metadata": {"labels": {RACK: None}}})
    try:
        finding = examined(cluster)["topologies"]
        assert finding["grade"] == "warn"
        assert "r1-n1" in finding["message"]
    finally:
        cluster.api.merge("/api/v1/nodes/r1-n1", {"metadata": {"labels": {RACK: "r1"}}})
