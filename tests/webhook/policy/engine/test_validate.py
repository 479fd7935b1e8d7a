"""Validating policies: the samples of Kubernetes' documentation, written anew from what they do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.policy.helpers import (
    DEPLOYMENTS,
    OURS,
    Inputs,
    binding,
    check,
    deployment,
    loaded,
    mutating,
    patch,
    pod,
    validate,
    validating,
)
from webhook.policy import UserInfo, from_object, run_validating
from webhook.policy.model.policy import ParamKind

REPLICA_LIMIT = {"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit"}


def replica_limit(name: str, max_replicas: int, **metadata: Any) -> dict[str, Any]:
    """A parameter object as the documentation's replica limit has it."""
    return {**REPLICA_LIMIT, "metadata": {"name": name, **metadata}, "maxReplicas": max_replicas}


def limited(**spec: Any) -> dict[str, Any]:
    """The policy that demands no more replicas than its parameters allow."""
    return validating(
        check(
            "object.spec.replicas <= params.maxReplicas",
            reason="Forbidden",
            messageExpression="'at most ' + string(params.maxReplicas) + ' replicas are allowed'",
        ),
        rule=DEPLOYMENTS,
        paramKind=REPLICA_LIMIT,
        **spec,
    )


def test_a_replica_limit_comes_from_the_bindings_parameters() -> None:
    """In the test environment at most 3, elsewhere at most 100: two bindings, chosen by the namespace."""
    policy = limited()
    documents = [
        policy,
        binding(
            policy,
            "test",
            paramRef={"name": "small", "parameterNotFoundAction": "Deny"},
            matchResources={"namespaceSelector": {"matchLabels": {"environment": "test"}}},
        ),
        binding(
            policy,
            "production",
            paramRef={"name": "large", "parameterNotFoundAction": "Deny"},
            matchResources={
                "namespaceSelector": {
                    "matchExpressions": [{"key": "environment", "operator": "NotIn", "values": ["test"]}]
                }
            },
        ),
        replica_limit("small", 3),
        replica_limit("large", 100),
    ]
    test = {"metadata": {"name": "default", "labels": {"environment": "test"}}}
    in_test = validate(documents, deployment(5), namespace_object=test)
    assert not in_test.allowed
    assert (in_test.reason, in_test.code) == ("Forbidden", 403)
    assert in_test.message == "policy 'validate': at most 3 replicas are allowed"
    assert validate(documents, deployment(3), namespace_object=test).allowed
    assert validate(documents, deployment(5)).allowed
    assert not validate(documents, deployment(101)).allowed


def test_parameters_of_a_namespace_are_those_of_the_request() -> None:
    """A paramRef without a namespace looks where the object lies."""
    policy = limited()
    bound = binding(policy, paramRef={"name": "limit", "parameterNotFoundAction": "Deny"})
    documents = [
        policy,
        bound,
        replica_limit("limit", 1, namespace="a"),
        {**replica_limit("other", 9, namespace="b")},
    ]
    assert not validate(documents, deployment(2), namespace="a").allowed
    other_namespace = validate(documents, deployment(2), namespace="b")
    assert "no parameters: ReplicaLimit limit was not found" in other_namespace.message


IMAGES = validating(
    check(
        "variables.foreign.size() == 0",
        messageExpression='"images not from example.com: " + variables.foreign.join(", ")',
    ),
    rule=DEPLOYMENTS,
    variables=[
        {"name": "containers", "expression": "object.spec.template.spec.containers"},
        {
            "name": "foreign",
            "expression": 'variables.containers.map(c, c.image).filter(i, !i.startsWith("example.com/"))',
        },
    ],
)


def test_images_must_come_from_one_registry() -> None:
    """The message names the culprits; variables build on each other."""
    assert validate([IMAGES], deployment()).message == (
        "policy 'validate': images not from example.com: busybox:1.36"
    )


def test_the_pull_policy_is_judged_with_the_default_that_the_server_sets() -> None:
    """`:latest` is pulled always, a fixed tag is not, though neither manifest says so."""
    policy = validating(
        check("object.spec.containers.all(c, c.imagePullPolicy == 'Always')", message="always pull"),
    )
    latest = pod(containers=[{"name": "main", "image": "busybox:latest"}])
    assert validate([policy], latest).allowed
    assert validate([policy], pod()).message == "policy 'validate': always pull"


def test_a_policy_may_ask_who_the_user_is() -> None:
    """The request's user is a variable; here only members of a group may use a name."""
    policy = validating(
        check(
            "!object.metadata.name.startsWith('admin-') || 'admins' in request.userInfo.groups",
            reason="Forbidden",
        ),
    )
    obj = {**pod(), "metadata": {"name": "admin-shell"}}
    assert not validate([policy], obj, user_info=UserInfo("jane", groups=("research",))).allowed
    assert validate([policy], obj, user_info=UserInfo("root", groups=("admins",))).allowed


def test_an_update_may_be_held_against_the_old_object() -> None:
    """Replicas may not shrink by more than half at a time."""
    policy = validating(
        check("oldObject == null || object.spec.replicas * 2 >= oldObject.spec.replicas"), rule=DEPLOYMENTS
    )
    assert validate([policy], deployment(1)).allowed
    assert not validate([policy], deployment(1), operation="UPDATE", old_object=deployment(10)).allowed
    assert validate([policy], deployment(6), operation="UPDATE", old_object=deployment(10)).allowed


@pytest.mark.parametrize("expression", ["false", "object.spec.priority > 1"])
@pytest.mark.parametrize(
    ("actions", "allowed", "warned", "noted"),
    [
        (["Deny"], False, False, False),
        (["Warn"], True, True, False),
        (["Audit"], True, False, True),
        (["Warn", "Audit"], True, True, True),
    ],
)
def test_a_binding_says_what_a_finding_does(
    actions: list[str], allowed: bool, warned: bool, noted: bool, expression: str
) -> None:
    """Deny refuses, Warn tells the user, Audit only notes; so too for an error under failurePolicy Fail."""
    policy = validating(check(expression))
    verdict = validate([policy, binding(policy, validationActions=actions)], pod())
    assert (verdict.allowed, bool(verdict.warnings)) == (allowed, warned)
    assert ("validate.failure" in (verdict.audit_annotations or {})) is noted


def test_what_is_denied_may_be_noted_as_well() -> None:
    """Deny and Audit go together."""
    policy = validating(check("false", message="no"))
    verdict = validate([policy, binding(policy, validationActions=["Deny", "Audit"])], pod())
    assert (verdict.allowed, verdict.audit_annotations) == (False, {"validate.failure": "no"})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"message": "plain"}, "plain"),
        ({"message": "plain", "messageExpression": "'made'"}, "made"),
        ({"message": "plain", "messageExpression": "object.spec.nodeName"}, "plain"),
        ({"message": "plain", "messageExpression": "' '"}, "plain"),
        ({"message": "plain", "messageExpression": "'two\\nlines'"}, "plain"),
        ({"message": "plain", "messageExpression": "'\\n one line\\n'"}, "one line"),
        ({"message": "plain", "messageExpression": f"'{'é' * 2560}' + '{' ' * 99}'"}, "é" * 2560),
        ({"message": "plain", "messageExpression": f"'{'é' * 2560}' + 'e'"}, "plain"),
        ({}, "failed expression: object.spec.hostNetwork == true"),
    ],
)
def test_the_message_falls_back_where_its_expression_gives_none(fields: dict[str, str], message: str) -> None:
    """An error, blanks or several lines in a messageExpression never hide the finding."""
    policy = validating(check("object.spec.hostNetwork == true", **fields))
    assert validate([policy], pod(hostNetwork=False)).message == f"policy 'validate': {message}"


@pytest.mark.parametrize(
    ("api", "messages"),
    [({"apiVersion": OURS}, ["first", "second"]), ({}, ["plain"])],
    ids=["bayplan.dev", "Kubernetes"],
)
def test_each_line_of_a_message_expression_is_a_message_in_bayplans_policies(
    api: dict[str, str], messages: list[str]
) -> None:
    """Four misspelt keys are four warnings; Kubernetes takes only messages of one line."""
    expression = "'first\\n\\n second'"
    policy = {**validating(check("false", message="plain", messageExpression=expression)), **api}
    verdict = validate([policy, binding(policy, validationActions=["Warn"])], pod())
    assert [warning.rpartition(": ")[2] for warning in verdict.warnings] == messages


def test_audit_annotations_carry_the_policys_name() -> None:
    """A null value leaves one out; they are there also for what is allowed."""
    policy = validating(
        check("true"),
        auditAnnotations=[
            {"key": "image", "valueExpression": "'first image ' + object.spec.containers[0].image"},
            {"key": "none", "valueExpression": "null"},
        ],
    )
    verdict = validate([policy], pod())
    assert verdict.allowed
    assert verdict.audit_annotations == {"validate.image": "first image busybox:1.36"}


@pytest.mark.parametrize("actions", [["Deny"], ["Warn"], ["Audit"]])
@pytest.mark.parametrize(("policy", "allowed"), [("Fail", False), ("Ignore", True)])
def test_an_error_of_an_audit_annotation_refuses_whatever_the_actions_of_the_binding(
    policy: str, allowed: bool, actions: list[str]
) -> None:
    """Only the failurePolicy decides."""
    annotations = [{"key": "second", "valueExpression": "object.spec.containers[1].name"}]
    failing = validating(check("true"), auditAnnotations=annotations, failurePolicy=policy)
    verdict = validate([failing, binding(failing, validationActions=actions)], pod())
    assert verdict.allowed is allowed
    assert "index 1 out of range" in (verdict.warnings[0] if allowed else verdict.message)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("object.spec.containers", "list"),
        ("dyn(1)", "int"),
        ("object.metadata", "map"),
        ("dyn(true)", "bool"),
    ],
)
def test_an_audit_annotation_is_a_string_or_null(expression: str, kind: str, policy: str) -> None:
    """Any other value is an error of the policy itself, which failurePolicy Ignore does not forgive."""
    annotations = [{"key": "value", "valueExpression": expression}]
    wrong = validating(check("true"), auditAnnotations=annotations, failurePolicy=policy)
    verdict = validate([wrong, binding(wrong, validationActions=["Audit"])], pod())
    assert verdict.message == (
        "policy 'validate', spec.auditAnnotations[0].valueExpression: "
        f"the value is of type {kind}; it must be a string or null"
    )


def test_an_audit_annotation_is_cut_at_a_character() -> None:
    """The limit of 10 KiB counts bytes; the character across it is left out."""
    policy = validating(
        check("true"), auditAnnotations=[{"key": "long", "valueExpression": f"'e' + '{'é' * 5120}'"}]
    )
    assert validate([policy], pod()).audit_annotations == {"validate.long": "e" + "é" * 5119}


@pytest.mark.parametrize(("policy", "allowed"), [("Fail", False), ("Ignore", True)])
def test_a_failing_expression_follows_the_failure_policy(policy: str, allowed: bool) -> None:
    """Under Ignore the request goes on and the failure is a warning."""
    verdict = validate([validating(check("object.spec.priority > 1"), failurePolicy=policy)], pod())
    assert verdict.allowed is allowed
    assert "no such key: priority" in (verdict.warnings[0] if allowed else verdict.message)


def test_on_delete_there_is_only_the_old_object() -> None:
    """`object` is null then."""
    rule = {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    policy = validating(
        check("object == null && oldObject.metadata.name != 'one'", message="kept"), rule=rule
    )
    verdict = run_validating(loaded(policy), from_object(pod(), "DELETE"), None)
    assert verdict.message == "policy 'validate': kept"


def test_every_denial_is_told_and_the_first_gives_the_code() -> None:
    """A user mends all of it at once."""
    first = validating(check("false", message="one", reason="Forbidden"), name="a")
    second = validating(check("false", message="two"), name="b")
    verdict = validate([second, first], pod())
    assert verdict.message == "policy 'a': one; policy 'b': two"
    assert verdict.code == 403


def test_of_very_many_denials_the_first_are_told() -> None:
    """Each with its policy and its reason; of the others their number."""
    policies = [validating(check("false", message="no"), name=f"p{n:03}") for n in range(100)]
    message = validate(policies, pod()).message
    assert message.startswith("policy 'p000': no; policy 'p001': no; ")
    assert message.endswith("policy 'p009': no; and 90 more")
    assert validate(policies[:10], pod()).message.endswith("policy 'p009': no")


def test_policies_that_ran_and_found_nothing_are_named() -> None:
    """A report shows them as passed; those that did not match are not among them."""
    passing, other = (
        validating(check("true"), name="a"),
        validating(check("true"), name="b", rule=DEPLOYMENTS),
    )
    assert validate([passing, other], pod()).passed == ("a",)


def test_a_validating_policy_of_ours_looks_into_templates() -> None:
    """The message is the same as for the pod that the template would make, and comes once."""
    policy = validating(check("object.spec.?hostNetwork.orValue(false) == false", message="no"), api=OURS)
    obj = deployment()
    obj["spec"]["template"]["spec"]["hostNetwork"] = True
    inputs = Inputs(paths=[(("spec", "template"), "main")])
    assert validate([policy], obj, inputs).message == "policy 'validate': no"
    upstream = {**policy, "apiVersion": "admissionregistration.k8s.io/v1"}
    assert validate([upstream], obj, inputs).allowed
    upstream["metadata"] = {"name": "validate", "annotations": {"bayplan.dev/templates": "true"}}
    assert not validate([upstream], obj, inputs).allowed


def test_a_mutating_policy_in_the_same_set_does_not_count_as_validating() -> None:
    """Each kind has its own turn."""
    assert validate([mutating(patch("[]")), validating(check("true"))], pod()).passed == ("validate",)


def test_authorization_is_not_available_offline_and_never_a_silent_no() -> None:
    """The failurePolicy decides, as upstream where the check cannot be made."""
    may = "authorizer.group('').resource('pods').namespace('default').check('create').allowed()"
    verdict = validate([validating(check(may))], pod())
    assert "authorization is not available offline" in verdict.message
    assert validate([validating(check(may), failurePolicy="Ignore")], pod()).allowed


def test_parameters_from_a_cluster_take_the_place_of_those_beside_the_policies() -> None:
    """Whoever implements `Params` gives the objects of a kind."""

    class Cluster:
        def objects(self, kind: ParamKind) -> list[dict[str, Any]]:
            return [{**replica_limit("limit", 2), "kind": kind.kind}]

    policy = limited()
    bound = binding(policy, paramRef={"name": "limit", "parameterNotFoundAction": "Deny"})
    documents = [policy, bound, replica_limit("limit", 1)]
    assert not validate(documents, deployment(2)).allowed
    assert validate(documents, deployment(2), Inputs(params=Cluster())).allowed


@pytest.mark.parametrize(
    ("labels", "image", "allowed"),
    [
        ({"environment": "staging"}, "staging.example.com/app:1", True),
        ({"environment": "staging"}, "prod.example.com/app:1", False),
        ({}, "prod.example.com/app:1", True),
        ({}, "staging.example.com/app:1", False),
        ({}, "elsewhere.org/app:1", True),
    ],
)
def test_images_must_be_of_the_namespaces_environment(
    labels: dict[str, str], image: str, allowed: bool
) -> None:
    """The namespace's labels decide, and `prod` is what an unlabelled one is."""
    policy = validating(
        check(
            "variables.exempt || variables.checked.all(c, c.image.startsWith(variables.environment + '.'))",
            messageExpression="'only ' + variables.environment + ' images are allowed in '"
            " + namespaceObject.metadata.name",
        ),
        rule=DEPLOYMENTS,
        variables=[
            {
                "name": "environment",
                "expression": "namespaceObject.metadata.?labels[?'environment'].orValue('prod')",
            },
            {"name": "exempt", "expression": "object.metadata.?labels[?'exempt'].orValue('') == 'true'"},
            {
                "name": "checked",
                "expression": "object.spec.template.spec.containers.filter(c,"
                " c.image.contains('example.com/'))",
            },
        ],
    )
    obj = deployment()
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = image
    space = {"metadata": {"name": "default", "labels": labels}}
    verdict = validate([policy], obj, namespace_object=space)
    assert verdict.allowed is allowed
    obj["metadata"]["labels"] = {"exempt": "true"}
    assert validate([policy], obj, namespace_object=space).allowed
