"""Policies, objects and runs for the tests: one valid thing each, changed in one place by a test."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import yaml

from webhook.cel import CostBudget
from webhook.cel.libraries.authorizer import Authorizer
from webhook.jsontools.path import Path, find
from webhook.policy import (
    Findings,
    Mutated,
    Params,
    PolicyInputs,
    PolicySet,
    from_object,
    load,
    run_mutating,
    run_validating,
)
from webhook.policy.engine.forms.equal_objects import EqualObjects
from webhook.policy.model.policy import Expression
from webhook.workloads import Template

UPSTREAM, OURS = "admissionregistration.k8s.io/v1", "bayplan.dev/v1alpha1"
PODS = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
DEPLOYMENTS = {
    "operations": ["CREATE", "UPDATE"],
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "resources": ["deployments"],
}
Json = dict[str, Any]


def mutating(
    *mutations: Json, name: str = "mutate", api: str = UPSTREAM, rule: Json = PODS, **spec: Any
) -> Json:
    """A MutatingAdmissionPolicy; `spec` adds to or replaces fields of its spec."""
    body = {"matchConstraints": {"resourceRules": [rule]}, "mutations": list(mutations), **spec}
    return {"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": body}


def validating(
    *validations: Json, name: str = "validate", api: str = UPSTREAM, rule: Json = PODS, **spec: Any
) -> Json:
    """A ValidatingAdmissionPolicy; `spec` adds to or replaces fields of its spec."""
    body = {"matchConstraints": {"resourceRules": [rule]}, "validations": list(validations), **spec}
    return {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": body}


def binding(policy: Json, name: str = "binding", **spec: Any) -> Json:
    """A binding of a policy."""
    body = {"policyName": policy["metadata"]["name"], **spec}
    if policy["kind"].startswith("Validating"):
        body.setdefault("validationActions", ["Deny"])
    return {
        "apiVersion": policy["apiVersion"],
        "kind": policy["kind"] + "Binding",
        "metadata": {"name": name},
        "spec": body,
    }


def patch(expression: str) -> Json:
    """A JSONPatch mutation."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def apply(expression: str) -> Json:
    """An ApplyConfiguration mutation."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def check(expression: str, **fields: str) -> Json:
    """A validation."""
    return {"expression": expression, **fields}


def loaded(*documents: Json) -> PolicySet:
    """The set that documents make."""
    return load([("policy.yaml", yaml.safe_dump_all(documents, sort_keys=False))])


@dataclass(frozen=True)
class Inputs:
    """A caller that knows what a test gives it: `values` of an object and a PodSet, paths of templates."""

    variable_names: frozenset[str] = frozenset()
    values: Callable[[Mapping[str, Any], str], Mapping[str, Any]] = lambda obj, pod_set: {}
    paths: Sequence[tuple[Path, str]] = ()
    params: Params | None = None
    budget: int | None = None
    authorizer: Any = field(default_factory=Authorizer)
    now: float = math.inf
    equal_objects: EqualObjects | None = None
    limits_of_equal_objects: object = None

    def variables(self, obj: Mapping[str, Any], pod_set: str) -> Mapping[str, Any]:
        """The test's own."""
        return self.values(obj, pod_set)

    def variables_of_equal_objects(self, obj: Mapping[str, Any], pod_set: str) -> Mapping[str, Any]:
        """The test's own."""
        return self.values(obj, pod_set)

    def templates(self, obj: Mapping[str, Any]) -> Sequence[tuple[Path, str]]:
        """The test's own."""
        return self.paths

    def inlined(self, obj: Mapping[str, Any]) -> Sequence[Template]:
        """None."""
        return ()

    def new_budget(self) -> CostBudget:
        """The test's limit, else upstream's."""
        return CostBudget() if self.budget is None else CostBudget(self.budget)


def exemption(policy: str, until: str = "2026-11-30", **match: Any) -> Json:
    """A PolicyException from a policy, for `match`, or for the namespace team-a."""
    spec = {
        "policies": [policy],
        "until": until,
        "reason": "TICKET-7",
        "match": match or {"namespaces": ["team-a"]},
    }
    head = {"apiVersion": OURS, "kind": "PolicyException", "metadata": {"name": "while-it-moves"}}
    return {**head, "spec": spec}


def pod(**spec: Any) -> Json:
    """A small valid pod."""
    body = {"containers": [{"name": "main", "image": "busybox:1.36"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": body}


def deployment(replicas: int = 1, **spec: Any) -> Json:
    """A small valid Deployment."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": body}


def mutate(
    documents: Sequence[Json] | PolicySet, obj: Json, inputs: PolicyInputs | None = None, **request: Any
) -> Mutated:
    """Run mutating policies on an object; the object itself must come out of it as it went in.

    The same is so for each of several equal objects, whose outcomes are shared.
    """
    policies = documents if isinstance(documents, PolicySet) else loaded(*documents)
    before = copy.deepcopy(obj)
    mutated = run_mutating(policies, from_object(obj, **request), obj, inputs)
    assert obj == before, "a run must not change the object that it is given"
    for each in sharing(inputs, obj):
        shared = run_mutating(policies, from_object(obj, **request), obj, each)
        assert replace(shared, cost=0) == replace(mutated, cost=0)
        assert obj == before
    return mutated


def sharing(inputs: PolicyInputs | None, obj: Any) -> Sequence[PolicyInputs]:
    """The inputs of three runs on a pod, or on an object with one template, of which the later ones use the
    outcomes of the former ones."""
    if inputs is not None and not isinstance(inputs, Inputs):
        return ()
    if find(obj, ("kind",)) != "Pod" and not (inputs and len(inputs.paths) == 1):
        return ()
    return [replace(inputs or Inputs(), equal_objects=EqualObjects())] * 3


def validate(
    documents: Sequence[Json] | PolicySet,
    obj: Mapping[str, Any],
    inputs: PolicyInputs | None = None,
    **request: Any,
) -> Findings:
    """Run validating policies on an object."""
    policies = documents if isinstance(documents, PolicySet) else loaded(*documents)
    findings = run_validating(policies, from_object(obj, **request), obj, inputs)
    for each in sharing(inputs, obj):
        shared = run_validating(policies, from_object(obj, **request), obj, each)
        assert replace(shared, cost=0) == replace(findings, cost=0)
    return findings


def evaluations(
    monkeypatch: pytest.MonkeyPatch, note: Callable[[Expression], str | None] = lambda each: each.label
) -> list[str]:
    """What `note` says of each expression that is evaluated from now on, if it says something."""
    notes: list[str] = []
    evaluate = Expression.evaluate

    def noted(self: Expression, *args: Any) -> Any:
        text = note(self)
        if text is not None:
            notes.append(text)
        return evaluate(self, *args)

    monkeypatch.setattr(Expression, "evaluate", noted)
    return notes


def operations(mutated: Mutated) -> list[Mapping[str, Any]]:
    """Every operation of every effect, in order."""
    return [operation for effect in mutated.effects for operation in effect.patch]
