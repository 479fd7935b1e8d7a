"""Tests the lookups of policies beside the object: namespaces, parameters, and permissions."""

from __future__ import annotations

from typing import Any

from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.cel.libraries.authorizer import AccessDecision, Query
from webhook.policy import load
from webhook.wire.request import UserInfo, from_object

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ml"},
    "spec": {"containers": []},
}
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"tier": "gold"}}}
LIMIT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limit", "namespace": "ml"},
    "data": {"most": "0"},
}


def allowed(policy: str, around: Environment, **words: Any) -> bool:
    """Returns whether the pod passes a policy in this environment."""
    policies = load([("policy.yaml", policy)])
    return decide(from_object(POD, **words), policies, None, "validate", around).response.allowed


def _policy(expression: str, extra: str = "") -> str:
    return f"""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: p}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}}]
{extra}  validations: [{{expression: '{expression}'}}]
"""


def test_a_namespace_of_the_cluster_is_what_a_selector_reads() -> None:
    """The policy matches by the labels of the namespace."""
    chosen = _policy("false").replace(
        "    resourceRules", "    namespaceSelector: {matchLabels: {tier: gold}}\n    resourceRules"
    )
    assert not allowed(chosen, Environment.of_objects([TEAM]))
    assert allowed(chosen, Environment.of_objects([]))


def test_a_parameter_of_the_cluster_serves_as_one_beside_the_policies_does() -> None:
    """The binding names a ConfigMap in the request's namespace."""
    policy = (
        _policy('params.data.most == "1"', "  paramKind: {apiVersion: v1, kind: ConfigMap}\n")
        + """
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny], paramRef: {name: limit, parameterNotFoundAction: Deny}}
"""
    )
    enough = {**LIMIT, "data": {"most": "1"}}
    assert not allowed(policy, Environment()), "missing parameters deny"
    assert not allowed(policy, Environment.of_objects([LIMIT]))
    assert allowed(policy, Environment.of_objects([enough]))


class _OnlyAnn:
    """An authorizer that permits everything to ann and nothing to others."""

    def __init__(self, user: UserInfo) -> None:
        self._user = user

    def check(self, query: Query) -> AccessDecision:
        return AccessDecision(self._user.username == "ann")


def test_the_authorizer_answers_for_the_user_who_asks() -> None:
    """As a SubjectAccessReview for the request's user would."""
    policy = _policy('authorizer.group("").resource("pods").check("create").allowed()')
    around = Environment(access=_OnlyAnn)
    assert allowed(policy, around, user_info=UserInfo("ann"))
    assert not allowed(policy, around, user_info=UserInfo("bob"))
    assert not allowed(policy, Environment(), user_info=UserInfo("ann")), "offline it fails closed"
