"""What a report tells of an object: also what becomes of its pods, each at the field that it is about."""

from __future__ import annotations

from typing import Any

import yaml

from tests.builders import cluster as drawn
from tests.policies.helpers import mutate, policies
from tests.webhook.admission.test_refusal_words import deployment, job, pod_of
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.report.collect import Subject, results
from webhook.report.model import Result
from webhook.wire.request import from_object

Json = dict[str, Any]
HALL = drawn("r1: a b")


def results_of(decision: Decision, obj: Json) -> list[Result]:
    """The results for one object of a file."""
    name = f"default/{obj['kind']}/{obj['metadata']['name']}"
    return list(results([Subject(name, obj["apiVersion"], "a.yaml", 0, yaml.safe_dump(obj), decision)]))


def test_fewer_replicas_are_told_in_a_report_too() -> None:
    """With both numbers, at an amount that was raised."""
    spec = pod_of(1)
    spec["containers"][0]["resources"] |= {"requests": {"cpu": "4"}}
    spec["containers"][0]["resources"]["limits"] |= {"cpu": "32", "memory": "8Gi"}
    obj = deployment(spec)
    (result,) = [row for row in results_of(mutate(obj, on=HALL), obj) if row.rule == "FewerReplicas"]
    assert (result.result, result.policy) == ("warn", "pods")
    assert result.message.startswith("4 pods of main fit on the nodes that could take them")
    assert result.field == "spec.template.spec.containers[0].resources.limits[cpu]"
    assert result.line


def test_pods_that_an_update_replaces_are_told_in_a_report_too() -> None:
    """With the template that is new."""
    old, new = deployment(pod_of(1)), deployment(pod_of(2))
    request = from_object(new, uid="uid", operation="UPDATE", old_object=old)
    decision = decide(request, policies(), HALL, "mutate")
    (result,) = [row for row in results_of(decision, new) if row.rule == "Replaced"]
    assert "spec.template is new" in result.message
    assert result.field == "spec.template"


def test_a_refusal_points_at_the_selector_that_no_node_meets() -> None:
    """The field whose value the message names."""
    obj = job(pod_of(1, nodeSelector={"pool": "train"}))
    (result,) = [row for row in results_of(mutate(obj, on=HALL), obj) if row.policy == "plan"]
    assert result.result == "fail"
    assert result.field == "spec.template.spec.nodeSelector[pool]"


def test_a_refusal_points_at_the_amount_that_is_too_large() -> None:
    """Not at an amount that policies wrote."""
    obj = job(pod_of(16))
    (result,) = [row for row in results_of(mutate(obj, on=HALL), obj) if row.policy == "plan"]
    assert result.field == "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"


def test_a_refusal_points_at_the_requirement_that_no_node_meets() -> None:
    """In whatever term it stands."""
    wanted = {"key": "pool", "operator": "In", "values": ["train"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    obj = job(pod_of(1, affinity=affinity))
    (result,) = [row for row in results_of(mutate(obj, on=HALL), obj) if row.policy == "plan"]
    assert result.field.endswith("nodeSelectorTerms[0].matchExpressions[0]")
