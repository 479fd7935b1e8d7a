"""A PodGroup that a Job's template names, by annotation or label: what it says holds for the Job's pods."""

from __future__ import annotations

from typing import Any

import pytest

from planner.planning.plan import plan
from tests.builders import cluster
from tests.webhook.workloads import objects as o
from webhook.workloads import read

POD_GROUP_KEY = "scheduling.run.ai/pod-group"
AFFINITY = [{"key": "nvswitch", "operator": "In", "values": ["true"]}]
POLICY = {"scope": "rack", "affinity": {"required": AFFINITY}}
GROUP = {
    ("team", "ddp"): {
        "kind": "PodGroup",
        "metadata": {"name": "ddp", "namespace": "team"},
        "spec": {"minMember": 4, "queue": "training", "topologyPolicy": POLICY},
    }
}


def job(place: str = "annotations", pods: int = 4, **notes: str) -> Any:
    """The recipe's Job: so many pods of a whole node, of the PodGroup that its template names."""
    template: Any = o.pod_template(8, annotations=notes or None)
    template.setdefault("metadata", {}).setdefault(place, {})[POD_GROUP_KEY] = "ddp"
    return o.obj("batch/v1", "Job", {"parallelism": pods, "completions": pods, "template": template})


@pytest.mark.parametrize("place", ["annotations", "labels"])
def test_scope_affinity_and_queue_are_the_jobs(place: str) -> None:
    """Wherever the template names the group."""
    workload = read(job(place), podgroups=GROUP)
    (gang,) = workload.gangs
    assert (gang.size, gang.constraint.required, workload.queue) == (4, "rack", "training")
    assert [requirement.key for term in gang.pod_sets[0].shape.affinity for requirement in term] == [
        "nvswitch"
    ]


def test_six_nodes_required_in_racks_of_four_are_refused() -> None:
    """The group's scope is kept: they were admitted over two racks."""
    racks = cluster("r1: a b c d\nr2: e f g h")
    spread = {("team", "ddp"): {**GROUP["team", "ddp"], "spec": {"topologyPolicy": {"scope": "rack"}}}}
    (gang,) = read(job(pods=6), podgroups=spread).gangs
    assert plan(racks, gang).decision == "rejected"


def test_a_group_that_waits_for_more_pods_than_the_job_makes_is_told() -> None:
    """KAI waits for the others, which may come from elsewhere."""
    (gang,) = read(job(pods=2), podgroups=GROUP).gangs
    assert "PodGroup/ddp starts with 4 pods, this Job makes 2" in gang.warnings


@pytest.mark.parametrize(("word", "level", "policy"), [("rack", "rack", ""), ("nvlink", "", "nvlink")])
def test_a_topology_policy_on_a_template_is_read(word: str, level: str, policy: str) -> None:
    """As on a pod: a scope, or the name of a policy in KAI's ConfigMap."""
    template: Any = o.pod_template(8, annotations={"scheduling.run.ai/topology-policy": word})
    job = o.obj("batch/v1", "Job", {"parallelism": 2, "completions": 2, "template": template})
    gang = read(job).gangs[0]
    assert (gang.constraint.required, gang.policy) == (level, policy)
