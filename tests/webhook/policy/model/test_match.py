"""Which requests a policy is for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.webhook.policy.helpers import binding, check, deployment, loaded, pod, validate, validating
from webhook.policy import AdmissionRequest, from_object, run_validating
from webhook.wire.request import GroupVersionKind, GroupVersionResource, plural

RULE = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}


def matches(request: AdmissionRequest, rule: dict[str, Any] | None = None, **constraints: Any) -> bool:
    """Whether a policy that refuses everything it matches refuses this request."""
    rules = {"resourceRules": [rule or RULE], **constraints}
    policies = loaded(validating(check("false"), matchConstraints=rules))
    return not run_validating(policies, request, request.object).allowed


def request(**changes: Any) -> AdmissionRequest:
    """The request to create a Deployment, with changes."""
    return replace(from_object(deployment(), namespace_object=None), **changes)


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("operations", ["CREATE", "UPDATE"], True),
        ("operations", ["*"], True),
        ("operations", ["UPDATE"], False),
        ("apiGroups", ["*"], True),
        ("apiGroups", ["", "batch"], False),
        ("resources", ["*"], True),
        ("resources", ["*/*"], True),
        ("resources", ["deployments/*"], True),
        ("resources", ["pods/*"], False),
        ("resources", ["*/scale"], False),
        ("resources", ["deployments/scale"], False),
        ("resources", ["pods", "deployments"], True),
        ("resourceNames", ["web"], True),
        ("resourceNames", ["other"], False),
        ("scope", "Namespaced", True),
        ("scope", "Cluster", False),
        ("scope", "*", True),
    ],
)
def test_every_field_of_a_rule_must_hold(field: str, values: Any, expected: bool) -> None:
    """Starting from a rule that matches, with one field changed."""
    assert matches(request()) is True
    assert matches(request(), {**RULE, field: values}) is expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("deployments", False),
        ("deployments/scale", True),
        ("deployments/*", True),
        ("deployments/status", False),
        ("pods/*", False),
        ("*/scale", True),
        ("*/status", False),
        ("*/*", True),
        ("*", False),
    ],
)
def test_subresources_match_only_when_a_rule_names_them(resource: str, expected: bool) -> None:
    """`*` is every resource and no subresource."""
    assert matches(request(sub_resource="scale"), {**RULE, "resources": [resource]}) is expected


@pytest.mark.parametrize("sub_resource", ["", "scale"])
def test_all_subresources_of_an_excluded_resource_are_excluded_with_it(sub_resource: str) -> None:
    """`deployments/*` is the Deployment too, in an exclude rule as in any other."""
    rules = {**RULE, "resources": ["*/*"]}
    excluded = [{**RULE, "resources": ["deployments/*"]}]
    assert matches(request(sub_resource=sub_resource), rules) is True
    assert not matches(request(sub_resource=sub_resource), rules, excludeResourceRules=excluded)


@pytest.mark.parametrize(("policy", "expected"), [("Equivalent", True), ("Exact", False)])
def test_equivalent_takes_another_version_of_the_same_resource(policy: str, expected: bool) -> None:
    """A rule for apps/v1 meets a request for apps/v1beta1."""
    older = request(resource=GroupVersionResource("apps", "v1beta1", "deployments"))
    assert matches(older, matchPolicy=policy) is expected


def test_what_the_caller_named_before_a_conversion_counts_too() -> None:
    """The request was for extensions/v1beta1 and was converted to apps/v1."""
    requested = GroupVersionResource("extensions", "v1beta1", "deployments")
    converted = request(request_resource=requested)
    rule = {**RULE, "apiGroups": ["extensions"], "apiVersions": ["v1beta1"]}
    assert matches(converted, rule, matchPolicy="Exact")


@pytest.mark.parametrize(("policy", "expected"), [("Equivalent", True), ("Exact", False)])
def test_what_the_api_server_converted_to_counts_with_equivalent_only(policy: str, expected: bool) -> None:
    """The caller named extensions/v1beta1; the rule is for apps/v1, to which the API server converted it."""
    requested = GroupVersionResource("extensions", "v1beta1", "deployments")
    assert matches(request(request_resource=requested), matchPolicy=policy) is expected


def test_an_exclude_rule_wins() -> None:
    """Though a rule matches."""
    assert not matches(request(), excludeResourceRules=[{**RULE, "resourceNames": ["web"]}])
    assert matches(request(), excludeResourceRules=[{**RULE, "resourceNames": ["other"]}])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"matchLabels": {"kubernetes.io/metadata.name": "default"}}, True),
        ({"matchLabels": {"tier": "gold"}}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
        (
            {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
                ]
            },
            True,
        ),
        ({}, True),
    ],
)
def test_a_namespace_is_chosen_by_its_labels(selector: dict[str, Any], expected: bool) -> None:
    """Its own name is always among them, even when nothing is known of the namespace."""
    assert matches(request(), namespaceSelector=selector) is expected
    assert matches(request(namespace_object=None), namespaceSelector=selector) is expected


def test_cluster_scoped_objects_pass_a_namespace_selector() -> None:
    """They lie in none; a Namespace itself is judged by its own labels."""
    rule = {
        "operations": ["*"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["nodes", "namespaces"],
    }
    selector = {"matchLabels": {"tier": "gold"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert matches(from_object(node), rule, namespaceSelector=selector)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"tier": "gold"}}}
    assert matches(from_object(space), rule, namespaceSelector=selector)
    space["metadata"] = {"name": "n"}
    assert not matches(from_object(space), rule, namespaceSelector=selector)


def test_a_namespace_in_a_file_has_the_label_with_its_name() -> None:
    """The API server adds it before admission."""
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"]}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}
    for name, expected in (("prod", True), ("test", False)):
        selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
        assert matches(from_object(space), rule, namespaceSelector=selector) is expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({"a": "1"}, None, True),
        ({}, {"a": "1"}, True),
        ({"a": "1"}, {}, True),
        ({}, {}, False),
        ({}, None, False),
    ],
)
def test_an_object_selector_looks_at_the_new_and_the_old_object(
    new: dict[str, str], old: dict[str, str] | None, expected: bool
) -> None:
    """Taking a label away does not escape the policy."""
    obj, before = deployment(), None if old is None else deployment()
    obj["metadata"]["labels"] = new
    if before is not None:
        before["metadata"]["labels"] = old
    asked = request(object=obj, old_object=before)
    assert matches(asked, objectSelector={"matchLabels": {"a": "1"}}) is expected


def test_a_binding_narrows_its_policy() -> None:
    """Both must match; a binding without rules takes all that the policy takes."""
    policy = validating(check("false"))
    everywhere = binding(policy)
    gold_tier = binding(policy, matchResources={"namespaceSelector": {"matchLabels": {"tier": "gold"}}})
    assert not validate([policy, everywhere], pod()).allowed
    assert validate([policy, gold_tier], pod()).allowed


def test_a_policy_without_a_binding_runs_and_one_with_bindings_only_through_them() -> None:
    """Decision 10."""
    policy = validating(check("false"))
    assert not validate([policy], pod()).allowed
    narrow = binding(policy, matchResources={"objectSelector": {"matchLabels": {"a": "1"}}})
    assert validate([policy, narrow], pod()).allowed


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Pod", "pods"),
        ("Ingress", "ingresses"),
        ("NetworkPolicy", "networkpolicies"),
        ("Gateway", "gateways"),
        ("Endpoints", "endpoints"),
        ("LeaderWorkerSet", "leaderworkersets"),
        ("Topology", "topologies"),
        ("PyTorchJob", "pytorchjobs"),
    ],
)
def test_the_resource_of_a_kind_is_its_plural(kind: str, resource: str) -> None:
    """A file names the kind, a rule the resource."""
    assert plural(kind) == resource


def test_a_request_from_a_file_lies_in_the_objects_namespace_or_the_given_one() -> None:
    """Cluster-scoped kinds lie in none."""
    obj = pod()
    assert from_object(obj, namespace="team-a").namespace == "team-a"
    obj["metadata"]["namespace"] = "team-b"
    asked = from_object(obj, namespace="team-a")
    assert (asked.namespace, asked.kind) == ("team-b", GroupVersionKind("", "v1", "Pod"))
    assert from_object({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}).namespace == ""
