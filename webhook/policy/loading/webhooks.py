"""Tells for which objects an API server calls an admission webhook, according to its configuration. Pure.

A webhook's rules, selectors and matchConditions mean the same as a policy's. Each webhook of a configuration
is therefore read as a ValidatingAdmissionPolicy that denies every request that it matches: the API server
calls the webhook for the requests that this policy denies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from webhook.policy.engine.inputs import BareInputs
from webhook.policy.engine.validate import run_validating
from webhook.policy.loading.load import load
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import AdmissionRequest

_CONSTRAINTS = ("matchPolicy", "namespaceSelector", "objectSelector")


def webhooks_from(configuration: Mapping[str, Any], where: str) -> PolicySet:
    """Returns the webhooks of a Mutating- or ValidatingWebhookConfiguration, for `asks_about`.

    `where` names the configuration in messages. Raises `PolicyError`.
    """
    policies = [_as_policy(webhook) for webhook in configuration.get("webhooks") or []]
    return load([(where, json.dumps({"kind": "List", "items": policies}))]) if policies else PolicySet()


def asks_about(webhooks: PolicySet, request: AdmissionRequest) -> bool:
    """Returns whether the API server calls any of the webhooks for this request.

    If a matchCondition ends in an error, the webhook's failurePolicy counts, as upstream: with Fail the API
    server refuses the request without a call, and True is returned.
    """
    return not run_validating(webhooks, request, request.object, BareInputs()).allowed


def _as_policy(webhook: Mapping[str, Any]) -> dict[str, Any]:
    constraints = {key: webhook[key] for key in _CONSTRAINTS if webhook.get(key)}
    spec = {
        "matchConstraints": {**constraints, "resourceRules": webhook.get("rules") or []},
        "matchConditions": webhook.get("matchConditions") or [],
        "failurePolicy": webhook.get("failurePolicy") or "Fail",
        "validations": [{"expression": "false"}],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": webhook["name"]},
        "spec": {key: value for key, value in spec.items() if value},
    }
