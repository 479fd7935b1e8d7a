"""Policies about a whole workload look at every kind with pods, and at no other object."""

from __future__ import annotations

from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.builders import cluster
from tests.policies.helpers import mutate
from tests.policies.test_presence import live
from tests.webhook.workloads.objects import EVERY, GROVE, annotated, changed, obj
from webhook.workloads.kinds import KINDS

Json = dict[str, Any]
REQUIRED = "kai.scheduler/topology-required-placement"
PREFERRED = "kai.scheduler/topology-preferred-placement"
every_kind = pytest.mark.parametrize("workload", EVERY, ids=lambda workload: str(workload["kind"]))


def warnings(workload: Json, policy: str, on: Snapshot | None = None) -> list[str]:
    """The warnings of one policy."""
    return [text for text in mutate(workload, on=on).response.warnings if f"policy '{policy}'" in text]


def scheduled(value: Any, name: str) -> Any:
    """A copy in which every pod names this scheduler."""
    if isinstance(value, list):
        return [scheduled(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    own = {"schedulerName": name} if "containers" in value else {}
    return {key: scheduled(item, name) for key, item in value.items()} | own


def test_every_kind_with_pods_has_an_example() -> None:
    """So the tests below cover a new row of the table."""
    assert {row.name for row in KINDS.values() if row.has_templates} == {item["kind"] for item in EVERY}


@every_kind
def test_a_level_that_does_not_exist_is_refused(workload: Json) -> None:
    """A PodCliqueSet's was not looked at."""
    response = mutate(annotated(workload, {REQUIRED: "example.com/row"}), on=cluster("r1: a b")).response
    assert not response.allowed
    assert "there is no level example.com/row (metadata.annotations[" in response.message


@every_kind
def test_a_preferred_level_above_the_required_one_is_told(workload: Json) -> None:
    """Without a cluster, equal levels are known to have no effect."""
    levels = {REQUIRED: "example.com/rack", PREFERRED: "example.com/rack"}
    (warning,) = warnings(annotated(workload, levels), "preferred-below-required")
    assert (
        "preferred example.com/rack has no effect: it is not finer than required example.com/rack" in warning
    )


@every_kind
def test_a_scheduler_that_nobody_runs_is_told(workload: Json) -> None:
    """Pods that name it wait for ever."""
    (warning,) = warnings(scheduled(workload, "nowhere"), "scheduler-missing", live())
    assert "nothing in the cluster shows a scheduler nowhere" in warning


@every_kind
def test_a_scheduler_that_is_taken_for_granted_is_noted(workload: Json) -> None:
    """In the audit log, as no cluster is known."""
    notes = mutate(scheduled(workload, "volcano")).response.audit_annotations
    assert "the scheduler volcano" in notes["scheduler-presence.assumed"]


@every_kind
def test_a_misspelt_key_is_told(workload: Json) -> None:
    """With the right one."""
    (warning,) = warnings(annotated(workload, {f"{REQUIRED}s": "rack"}), "key-spelling")
    assert f"What would work: {REQUIRED}" in warning


def test_a_level_of_one_clique_is_looked_at() -> None:
    """Its keys stand beside its podSpec."""
    path = ("spec", "template", "cliques", 0, "annotations")
    wrong = mutate(changed(GROVE, path, {REQUIRED: "example.com/row"}), on=cluster("r1: a b")).response
    assert "there is no level example.com/row (spec.template.cliques[0].annotations[" in wrong.message


def test_levels_of_one_clique_are_compared() -> None:
    """The warning names them once, with a cluster too: Grove plans the pods, so no plan says it."""
    path = ("spec", "template", "cliques", 0, "annotations")
    levels = {REQUIRED: "kubernetes.io/hostname", PREFERRED: "rack"}
    (warning,) = warnings(changed(GROVE, path, levels), "preferred-below-required", cluster("r1: a b"))
    assert "preferred rack has no effect" in warning


@pytest.mark.parametrize("kind", ["ConfigMap", "Namespace"])
def test_an_object_of_no_such_kind_is_left_alone(kind: str) -> None:
    """Whatever its keys look like."""
    response = mutate(annotated(obj("v1", kind, {}), {f"{REQUIRED}s": "rack", REQUIRED: "a.com/b"})).response
    assert response.allowed
    assert not response.warnings


def test_a_misspelt_key_on_a_pod_group_is_told() -> None:
    """Its keys are those of its pods."""
    group = obj("scheduling.run.ai/v2alpha2", "PodGroup", {"minMember": 2}, **{f"{REQUIRED}s": "rack"})
    assert f"What would work: {REQUIRED}" in warnings(group, "key-spelling")[0]
