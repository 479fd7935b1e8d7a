"""Missing parameters: when they are an error of the configuration, and what it does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.policy.helpers import (
    OURS,
    binding,
    check,
    mutate,
    mutating,
    patch,
    pod,
    validate,
    validating,
)

Json = dict[str, Any]

LIMIT = {"apiVersion": "rules.example.com/v1", "kind": "Limit"}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
NODES = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes", "namespaces"]}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def limit(name: str, **metadata: str) -> Json:
    """A parameter object."""
    return {**LIMIT, "metadata": {"name": name, **metadata}}


@pytest.mark.parametrize("actions", [["Deny"], ["Warn"], ["Audit"]])
def test_missing_parameters_refuse_whatever_the_actions_of_the_binding(actions: list[str]) -> None:
    """They are an error of the configuration; only the results of validations follow the actions."""
    policy = validating(check("true"), paramKind=LIMIT)
    reference = {"name": "gone", "namespace": "limits", "parameterNotFoundAction": "Deny"}
    verdict = validate([policy, binding(policy, paramRef=reference, validationActions=actions)], pod())
    assert verdict.message == (
        "policy 'validate': no parameters: Limit limits/gone was not found, which binding 'binding' requires"
    )


def test_a_selector_that_selects_no_parameters_refuses_too() -> None:
    """The message says that they were selected by labels."""
    policy = validating(check("true"), paramKind=LIMIT)
    reference = {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"}
    verdict = validate([policy, binding(policy, paramRef=reference), limit("other")], pod())
    assert "Limit * with the labels of the selector was not found" in verdict.message


def test_missing_parameters_let_the_request_through_with_failure_policy_ignore() -> None:
    """The user is warned."""
    policy = validating(check("true"), paramKind=LIMIT, failurePolicy="Ignore")
    bound = binding(policy, paramRef={"name": "gone", "parameterNotFoundAction": "Deny"})
    verdict = validate([policy, bound], pod())
    assert verdict.allowed
    assert "Limit gone was not found" in verdict.warnings[0]


def on_nodes(kind: Json = LIMIT, namespace: str = "", **spec: Any) -> list[Json]:
    """A policy on nodes with parameters, and its binding, which allows that they are missing."""
    policy = validating(check("params == null"), rule=NODES, paramKind=kind, **spec)
    reference = {"name": "limit", "namespace": namespace, "parameterNotFoundAction": "Allow"}
    return [policy, binding(policy, paramRef=reference, validationActions=["Audit"])]


def test_namespaced_parameters_of_a_cluster_scoped_object_need_a_namespace() -> None:
    """A Node has no namespace in which to look, so that the policy would never run."""
    documents = [*on_nodes(), limit("limit", namespace="a")]
    assert validate(documents, NODE).message == (
        "policy 'validate': no parameters: the paramRef of binding 'binding' needs a namespace, because "
        "Limit is namespaced and Node is not"
    )


def test_a_namespace_has_the_parameters_that_lie_in_it() -> None:
    """Its request names the Namespace itself as the namespace."""
    documents = [*on_nodes(), limit("limit", namespace="a")]
    assert validate(documents, {**NODE, "kind": "Namespace"}).passed == ()
    in_it = [*on_nodes(), limit("limit", namespace="n")]
    assert validate(in_it, {**NODE, "kind": "Namespace"}).audited


def test_the_scope_of_kubernetes_own_kinds_is_known() -> None:
    """Even if there is no object of the kind."""
    verdict = validate(on_nodes(CONFIG_MAP), NODE)
    assert "ConfigMap is namespaced and Node is not" in verdict.message


@pytest.mark.parametrize(
    "documents",
    [
        on_nodes(CONFIG_MAP, namespace="a"),
        on_nodes(CONFIG_MAP, failurePolicy="Ignore"),
        on_nodes(CONFIG_MAP, api=OURS),
        on_nodes({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}),
        [*on_nodes(), limit("other")],
    ],
    ids=["a namespace", "Ignore", "bayplan.dev", "cluster-scoped", "not namespaced"],
)
def test_missing_parameters_of_a_cluster_scoped_object_may_be_allowed(documents: list[Json]) -> None:
    """If they are not namespaced, the binding names the namespace, or the policy runs without them."""
    assert validate(documents, NODE).allowed


@pytest.mark.parametrize("action", ["Allow", "Deny"])
def test_a_namespace_of_cluster_scoped_parameters_is_an_error(action: str) -> None:
    """As in Kubernetes, whether there are such parameters or not."""
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    policy = validating(check("true"), paramKind=kind)
    reference = {"name": "fast", "namespace": "a", "parameterNotFoundAction": action}
    documents = [policy, binding(policy, paramRef=reference), {**kind, "metadata": {"name": "fast"}}]
    message = (
        "policy 'validate': no parameters: the paramRef of binding 'binding' must not name a namespace, "
        "because StorageClass is cluster-scoped"
    )
    assert validate(documents, pod()).message == message
    assert validate(documents[:2], pod()).message == message


@pytest.mark.parametrize(("policy", "refused"), [("Fail", True), ("Ignore", False)])
def test_a_mutating_policy_has_the_same_errors_of_its_parameters(policy: str, refused: bool) -> None:
    """The failurePolicy alone decides."""
    reading = mutating(patch("[]"), rule=NODES, paramKind=CONFIG_MAP, failurePolicy=policy)
    bound = binding(reading, paramRef={"name": "a", "parameterNotFoundAction": "Allow"})
    mutated = mutate([reading, bound], NODE)
    assert bool(mutated.errors) is refused
    assert "needs a namespace" in str([*mutated.errors, *mutated.warnings])
