"""Policies that remove the pod templates of an object, or a pod's spec: refused in words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.builders import racks
from tests.webhook.calls import review
from tests.webhook.policy.helpers import OURS, binding, loaded, mutating, patch
from tests.webhook.workloads import objects
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.wire.review import decode

EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
REMOVE = '[JSONPatch{op: "remove", path: "/spec"}]'
LABEL = '[JSONPatch{op: "add", path: "/metadata", value: {"labels": {"a": "b"}}}]'
SET = '[JSONPatch{op: "add", path: "/spec/schedulerName", value: "kai-scheduler"}]'
WORKER, CLIQUE = "spec.pytorchReplicaSpecs.Worker.template.spec", "spec.template.cliques[0].spec.podSpec"


def of_pods(*expressions: str, name: str = "first") -> list[Any]:
    """A policy on templates with these mutations, and its binding."""
    policy = mutating(*map(patch, expressions), api=OURS, name=name)
    return [policy, binding(policy, name)]


def of_everything(expression: str) -> list[Any]:
    """A policy on objects of every kind, and on their templates."""
    policy = mutating(patch(expression), api=OURS, name="first", rule=EVERYTHING)
    return [policy, binding(policy, "first")]


@pytest.mark.parametrize(
    ("obj", "missing"), [(objects.PYTORCH_JOB, WORKER), (objects.GROVE, CLIQUE)], ids=["template", "inlined"]
)
@pytest.mark.parametrize(
    ("policies", "whole"),
    [
        (of_pods(REMOVE), False),
        (of_pods(REMOVE, LABEL), False),
        ([*of_pods(REMOVE), *of_pods(f"has(object.spec) ? {SET} : []", name="second")], False),
        (of_everything(f'request.resource.resource == "pods" ? {LABEL} : {REMOVE}'), True),
        ([*of_everything(f"object.kind == 'Pod' ? {SET} : {REMOVE}"), *of_pods(SET, name="second")], True),
    ],
    ids=[
        "the spec",
        "and labels it",
        "another policy sets a field",
        "of the object",
        "of the object, another",
    ],
)
def test_what_a_policy_has_removed_is_named(
    obj: dict[str, Any], missing: str, policies: list[Any], whole: bool
) -> None:
    """The kinds have no schema, so that the policy's own checks do not see it."""
    request = decode(orjson.dumps(review(obj)))
    response = decide(request, loaded(*policies), racks(2, 4), "mutate", Environment()).response
    assert not response.allowed
    name = f"{obj['metadata']['namespace']}/{obj['kind']}/{obj['metadata']['name']}"
    where = "spec" if whole else missing
    assert response.message == f"{name}: {where}: is missing, after changes by the policy first"


def test_all_policies_that_changed_the_object_are_named() -> None:
    """The text names the field, and each of them may have been the cause."""
    policies = [*of_pods(SET), *of_pods(REMOVE, name="second")]
    request = decode(orjson.dumps(review(objects.GROVE)))
    response = decide(request, loaded(*policies), racks(2, 4), "mutate", Environment()).response
    assert response.message.endswith("is missing, after changes by the policies first, second")
