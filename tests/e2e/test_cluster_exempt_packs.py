"""Exemptions and policy packs on a real control plane, as shown by kubectl and `bayplan doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.hook import bayplan
from tests.e2e.processes import wait_until
from tests.e2e.replicas import job, nodes
from tests.e2e.rollout import SYSTEM, Rollout
from tests.e2e.serving import bayplan as standing
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
PARAMETERS = f"/api/v1/namespaces/{SYSTEM}/configmaps/bayplan-parameters"
UNTIL = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}"
EXEMPTION = {
    "apiVersion": "bayplan.dev/v1alpha1",
    "kind": "PolicyException",
    "metadata": {"name": "old-trainer"},
    "spec": {
        "policies": ["guaranteed-qos"],
        "until": UNTIL,
        "reason": "sets its own limits (TICKET-7)",
        "match": {"namespaces": ["research"], "kinds": ["Job"], "names": ["exempt*"]},
    },
}


@pytest.fixture(scope="module")
def rollout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    """A replica on a rack of two nodes, with an exemption among its policies."""
    folder = tmp_path_factory.mktemp("exempt")
    fleet = Fleet(cluster.api)
    policies = policy_set("default-scheduler", folder)
    (folder / "policies" / "exemption.yaml").write_text(yaml.safe_dump(EXEMPTION))
    installed = Rollout(cluster, folder, policies)
    try:
        fleet.make(nodes(1, 2))
        installed.install()
        installed.add()
        yield installed
    finally:
        for item in cluster.api.items(JOBS):
            cluster.api.delete(f"{JOBS}/{item['metadata']['name']}")
        wait_until(lambda: not cluster.api.items(PODS), "the pods to go", 60)
        installed.uninstall()
        fleet.remove()


def limits(rollout: Rollout, name: str) -> Json:
    """The stored resource requests and limits of a Job's pods."""
    container = rollout.api.get(f"{JOBS}/{name}")["spec"]["template"]["spec"]["containers"][0]
    stated: Json = container["resources"]
    return stated


def test_a_job_that_is_exempt_is_left_as_it_is_and_its_user_warned(
    rollout: Rollout, cluster: Cluster
) -> None:
    """Another one is changed; whoever applies is told until when, and by which exemption."""
    manifest = {"apiVersion": "batch/v1", "kind": "Job", **job("exempt-1", 1)}
    applied = cluster.kubectl("apply", "-f", "-", text=json.dumps(manifest))
    assert applied.status == 0, applied.err
    assert f"exempt until {UNTIL} by PolicyException old-trainer" in " ".join(applied.err.split())
    rollout.api.create(JOBS, job("other", 1))
    assert set(limits(rollout, "exempt-1").get("requests", {})) < set(limits(rollout, "other")["requests"])


def test_why_tells_the_exemptions_of_a_workload(rollout: Rollout, cluster: Cluster) -> None:
    """As the Report of its namespace has them; of a workload that has none it tells none."""
    words = f"exempt until {UNTIL} by PolicyException old-trainer (sets its own limits (TICKET-7))"
    rollout.api.create(JOBS, job("exempt-2", 1))
    rollout.api.create(JOBS, job("plain", 1))

    def why(name: str) -> str:
        return " ".join(standing(cluster, "why", f"research/Job/{name}")[1].split())

    wait_until(lambda: words in why("exempt-2"), "the Report", 60, pause=2)
    (gang,) = json.loads(standing(cluster, "why", "research/Job/exempt-2", "-o", "json")[1])["items"]
    (row,) = gang["exemptions"]
    assert (row["policy"], row["exception"], row["until"]) == ("guaranteed-qos", "old-trainer", UNTIL)
    assert "PolicyException" not in why("plain")


@pytest.mark.parametrize(
    ("pack", "grade", "words"),
    [
        ("plain", "warn", "plain: policies write for no scheduling system, and there is"),
        ("runai", "warn", "nothing in the cluster shows"),
        ("auto", "ok", "policies write for what the cluster shows"),
    ],
)
def test_doctor_says_whether_the_pack_fits(
    rollout: Rollout, cluster: Cluster, pack: str, grade: str, words: str
) -> None:
    """The pack comes from the ConfigMap; the nodes and kinds of the cluster say what fits."""
    rollout.api.merge(PARAMETERS, {"data": {"pack": pack}})
    try:
        arguments = ("--kubeconfig", str(cluster.kubectl.kubeconfig), "-o", "json")
        findings = json.loads(bayplan("doctor", *arguments, statuses=(0, 1)))
    finally:
        rollout.api.merge(PARAMETERS, {"data": {"pack": None}})
    (finding,) = (row for row in findings if row["subject"] == "policy pack")
    assert finding["grade"] == grade
    assert words in finding["message"]


def test_a_pack_is_in_force_at_once(rollout: Rollout) -> None:
    """With `plain` no scheduler's keys are written onto a Job; nothing is restarted for it."""
    rollout.api.merge(PARAMETERS, {"data": {"pack": "plain"}})
    try:
        replica = rollout.replicas[0]
        wait_until(lambda: "plain" in json.dumps(replica.readiness()[1]), "the pack to be in force", 20)
        rollout.api.create(JOBS, job("packed", 1))
        template = rollout.api.get(f"{JOBS}/packed")["spec"]["template"]
        assert template["spec"].get("schedulerName") == "default-scheduler"
        annotations = template["metadata"].get("annotations") or {}
        assert [key for key in annotations if key.startswith(("kai.scheduler/", "kueue.x-k8s.io/"))] == []
    finally:
        rollout.api.merge(PARAMETERS, {"data": {"pack": None}})
