"""New workloads that are equal but for their names share the outcomes of policies on them and on their only
template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.webhook.policy.helpers import (
    OURS,
    Inputs,
    Json,
    apply,
    check,
    deployment,
    evaluations,
    loaded,
    mutating,
    patch,
    pod,
    validating,
)
from webhook.policy import Mutated, PolicySet, from_object, run_mutating, run_validating
from webhook.policy.engine.forms.equal_objects import EqualObjects

KAI = apply('Object{spec: Object.spec{schedulerName: "kai"}}')
DEPLOYMENTS = {
    "operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
    "resources": ["deployments"],
}  # fmt: skip
PODS = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
TEMPLATE = ("spec", "template")


def named_deployment(name: str, **template: Any) -> Json:
    """A Deployment of this name, as the API server sends it; `template` adds to the spec of its pods."""
    body = deployment()
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    spec = {**body["spec"]["template"]["spec"], **template}
    return {**body, "metadata": metadata, "spec": {**body["spec"], "template": {"spec": spec}}}


def caller(pod_set: str = "main", **fields: Any) -> Inputs:
    """A caller that knows the template of a Deployment."""
    return Inputs(
        paths=((TEMPLATE, pod_set),),
        variable_names=frozenset({"gang"}),
        equal_objects=EqualObjects(),
        **fields,
    )


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the expressions that are evaluated from now on."""
    return evaluations(monkeypatch)


def mutated(policies: PolicySet, obj: Json, inputs: Inputs, **request: Any) -> Mutated:
    """The result of the mutating policies."""
    return run_mutating(policies, from_object(obj, **request), obj, inputs)


def template_of(result: Mutated) -> Json:
    """The spec of the template after the policies."""
    spec: Json = result.object["spec"]["template"]["spec"]
    return spec


def test_a_mutation_of_equal_templates_is_evaluated_once(evaluated: list[str]) -> None:
    """Each workload keeps its name."""
    policies, inputs = loaded(mutating(KAI, api=OURS)), caller()
    for name in ("a", "b"):
        result = mutated(policies, named_deployment(name), inputs)
        assert result.object == named_deployment(name, schedulerName="kai")
    assert len(evaluated) == 1


def test_a_mutation_of_equal_workloads_is_evaluated_once(evaluated: list[str]) -> None:
    """The policy runs on the Deployment itself."""
    policies = loaded(mutating(apply("Object{spec: Object.spec{replicas: 3}}"), rule=DEPLOYMENTS))
    inputs = caller()
    for name in ("a", "b"):
        result = mutated(policies, named_deployment(name), inputs)
        assert (result.object["metadata"]["name"], result.object["spec"]["replicas"]) == (name, 3)
    assert len(evaluated) == 1


def test_a_validation_of_equal_workloads_is_evaluated_once(evaluated: list[str]) -> None:
    """It holds for each of them."""
    policies, inputs = loaded(validating(check("object.spec.replicas < 9"), rule=DEPLOYMENTS)), caller()
    for name in ("a", "b"):
        assert run_validating(
            policies, from_object(named_deployment(name)), named_deployment(name), inputs
        ).passed
    assert len(evaluated) == 1


def test_equal_templates_of_other_pod_sets_have_outcomes_of_their_own() -> None:
    """`gang` names the PodSet."""
    write = patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: gang.podSet}]')
    policies = loaded(mutating(write, api=OURS))
    values: Any = lambda obj, pod_set: {"gang": {"podSet": pod_set}}  # noqa: E731
    inputs = caller(values=values)
    for pod_set in ("worker", "launcher", "worker"):
        own = replace(inputs, paths=((TEMPLATE, pod_set),))
        assert template_of(mutated(policies, named_deployment("a"), own))["schedulerName"] == pod_set


def test_a_mutation_and_a_validation_see_a_template_with_their_own_defaults() -> None:
    """A mutation sees limits without requests as they are; a validation sees the requests of the pods."""
    limits = {"containers": [{"name": "main", "image": "a", "resources": {"limits": {"cpu": "4"}}}]}
    requests = "has(object.spec.containers[0].resources.requests)"
    seen = patch(f'{requests} ? [JSONPatch{{op: "add", path: "/spec/hostname", value: "requests"}}] : []')
    policies = loaded(mutating(seen, api=OURS), validating(check(requests), api=OURS))
    inputs = caller()
    for name in ("a", "b"):
        obj = named_deployment(name, **limits)
        assert run_validating(policies, from_object(obj), obj, inputs).allowed
        assert "hostname" not in template_of(mutated(policies, obj, inputs))


def test_a_template_sees_the_gang_as_it_was_before_the_policy() -> None:
    """Also if the policy has changed the workload itself before."""

    def values(obj: Mapping[str, Any], pod_set: str) -> Mapping[str, Any]:
        return {"gang": {"labels": obj["metadata"].get("labels", {})}}

    label = apply('Object{metadata: Object.metadata{labels: {"a": "b"}}}')
    policy = mutating(
        label, api=OURS, matchConditions=[{"name": "none", "expression": "gang.labels.size() == 0"}]
    )
    policy["spec"]["matchConstraints"]["resourceRules"] = [PODS, DEPLOYMENTS]
    inputs = caller(values=values)
    for name in ("a", "b"):
        result = mutated(loaded(policy), named_deployment(name), inputs).object
        assert result["metadata"]["labels"] == {"a": "b"}
        assert result["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_several_templates_of_an_object_share_among_themselves(evaluated: list[str]) -> None:
    """They may differ in what the policy does not read."""
    obj = named_deployment("a")
    obj["spec"]["other"] = {"spec": {"containers": [{"name": "main", "image": "other:1"}]}}
    inputs = replace(caller(), paths=((TEMPLATE, "main"), (("spec", "other"), "other")))
    result = mutated(loaded(mutating(KAI, api=OURS)), obj, inputs)
    assert result.object["spec"]["other"]["spec"]["schedulerName"] == "kai"
    assert len(evaluated) == 1


def test_an_update_of_a_workload_shares_nothing(evaluated: list[str]) -> None:
    """Its policies may read `oldObject`."""
    policies, inputs = loaded(mutating(KAI, api=OURS)), caller()
    for name in ("a", "b"):
        mutated(
            policies, named_deployment(name), inputs, operation="UPDATE", old_object=named_deployment(name)
        )
    assert len(evaluated) == 2


def test_an_object_without_templates_shares_nothing() -> None:
    """So the memory is for workloads."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}}
    inputs = replace(caller(), paths=())
    mutated(loaded(mutating(apply('Object{data: Object.data{a: "b"}}'), rule=rule)), obj, inputs)
    assert inputs.equal_objects is not None
    assert not inputs.equal_objects.forms


def test_a_pod_and_a_template_that_is_equal_to_it_get_the_same_change() -> None:
    """Whichever came first; each keeps what it has alone."""
    policies, inputs = loaded(mutating(KAI, api=OURS)), caller()
    single = {**pod(), "metadata": {"name": "one", "namespace": "default"}}
    for _ in range(2):
        assert mutated(policies, single, inputs).object["metadata"] == single["metadata"]
        assert template_of(mutated(policies, named_deployment("a"), inputs))["schedulerName"] == "kai"


def test_a_policy_that_makes_no_pod_of_a_template_is_followed_by_others() -> None:
    """Kinds without a schema may get anything; what reads the template reports it."""
    workload = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "a"},
        "spec": {"template": {"spec": pod()["spec"]}},
    }  # fmt: skip
    rule = {
        "operations": ["CREATE"], "apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["v1alpha2"],
        "resources": ["jobsets"],
    }  # fmt: skip
    broken = patch('[JSONPatch{op: "replace", path: "/spec/template", value: "x"}]')
    label = patch('[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]')
    policies = loaded(mutating(broken, name="a", rule=rule), mutating(label, name="b", rule=rule))
    result = mutated(policies, workload, caller())
    assert result.object["spec"]["template"] == "x"
    assert result.object["metadata"]["labels"] == {"a": "b"}
