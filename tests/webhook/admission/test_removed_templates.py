"""Policies that remove or add pod templates, or remove a pod's spec: a decision or a refusal in words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from planner.cluster.snapshot import Snapshot
from tests.builders import racks
from tests.webhook.calls import review
from tests.webhook.policy.helpers import OURS, binding, loaded, mutating, patch
from tests.webhook.workloads import objects
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.jsontools.path import find
from webhook.wire.review import decode
from webhook.workloads import read

EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
ROLES = "/spec/pytorchReplicaSpecs"
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


def of_workload(operation: str) -> list[Any]:
    """A policy on new and updated workloads, not on their templates, with this operation of a JSON patch."""
    expression = f'request.resource.resource == "pods" ? [] : [JSONPatch{{{operation}}}]'
    rule = {**EVERYTHING, "operations": ["CREATE", "UPDATE"]}
    policy = mutating(patch(expression), name="first", rule=rule)
    return [policy, binding(policy, "first")]


@pytest.mark.parametrize("snapshot", [racks(2, 4), None], ids=["cluster", "no cluster"])
@pytest.mark.parametrize(
    ("obj", "operation"),
    [
        (objects.PYTORCH_JOB, 'op: "remove", path: "/spec/pytorchReplicaSpecs/Master"'),
        (objects.MPI_JOB, 'op: "remove", path: "/spec/mpiReplicaSpecs/Launcher"'),
        (objects.LWS, 'op: "remove", path: "/spec/leaderWorkerTemplate/leaderTemplate"'),
        (objects.RAY_CLUSTER, 'op: "remove", path: "/spec/workerGroupSpecs/0"'),
        (objects.JOB_SET, 'op: "remove", path: "/spec/replicatedJobs/0"'),
        (objects.PYTORCH_JOB, f'op: "move", from: "{ROLES}/Worker", path: "{ROLES}/Evaluator"'),
        (objects.PYTORCH_JOB, f'op: "copy", from: "{ROLES}/Master", path: "{ROLES}/Evaluator"'),
    ],
    ids=[
        "a master",
        "a launcher",
        "a leader",
        "a group",
        "the first job",
        "to another place",
        "one is added",
    ],
)
def test_the_plan_is_that_of_the_pod_sets_that_policies_have_left(
    obj: dict[str, Any], operation: str, snapshot: Snapshot | None
) -> None:
    """A policy may take a role away, and others get its place in the list."""
    request = decode(orjson.dumps(review(obj)))
    decision = decide(request, loaded(*of_workload(operation)), snapshot, "mutate", Environment())
    assert decision.response.allowed
    templates = read(decision.object, namespace="team").templates
    assert templates != read(obj, namespace="team").templates
    for template in templates if snapshot is not None else ():
        assert find(decision.object, (*template.path, "metadata", "annotations"))


@pytest.mark.parametrize(
    "operation",
    ['op: "remove", path: "/spec"', 'op: "replace", path: "/spec", value: {}'],
    ids=["no", "empty"],
)
@pytest.mark.parametrize(
    "obj",
    [objects.JOB, objects.DEPLOYMENT, objects.GROVE, objects.PYTORCH_JOB, objects.RAY_CLUSTER],
    ids=lambda obj: obj["kind"],
)
def test_templates_that_an_update_leaves_alone_stay_whatever_a_policy_removes(
    obj: dict[str, Any], operation: str
) -> None:
    """The policy's removal is undone, for it would end what runs."""
    old = {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}}
    request = decode(orjson.dumps(review(obj, operation="UPDATE", old=old)))
    decision = decide(request, loaded(*of_workload(operation)), racks(2, 4), "mutate", Environment())
    assert decision.response.allowed
    assert [find(decision.object, template.path) for template in read(obj, namespace="team").templates] == [
        find(obj, template.path) for template in read(obj, namespace="team").templates
    ]
