"""Kubernetes policies with fields that the kind does not have: at run time their failurePolicy decides."""

from __future__ import annotations

import pytest

from tests.webhook.policy.helpers import (
    Json,
    apply,
    check,
    loaded,
    mutate,
    mutating,
    pod,
    validate,
    validating,
)

MUTATIONS = [
    apply("Object{spec: Object.spec{nope: 'x'}}"),
    apply("Object{spec: Object.spec{hostname: 3}}"),
    apply("Object{metadata: Object.metadata{labels: {'x': string(object.spec.nope)}}}"),
]
CHECKS = ["object.spec.nope == 1", "object.spec.restartPolicy > 3"]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_fails_and_refuses_under_fail(mutation: Json) -> None:
    """With the field in its words."""
    mutated = mutate([mutating(mutation, failurePolicy="Fail")], pod())
    assert mutated.object == pod()
    (error,) = mutated.errors
    assert "nope" in error.message or "hostname" in error.message


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_is_left_out_under_ignore(mutation: Json) -> None:
    """And told as a warning; the other policies run."""
    other = mutating(apply("Object{spec: Object.spec{hostname: 'h'}}"), name="other")
    mutated = mutate([mutating(mutation, failurePolicy="Ignore"), other], pod())
    assert mutated.object["spec"]["hostname"] == "h"
    assert not mutated.errors
    assert len(mutated.warnings) == 1


@pytest.mark.parametrize("expression", CHECKS)
def test_a_validation_that_cannot_be_evaluated_is_decided_by_failure_policy(expression: str) -> None:
    """Fail refuses, Ignore does not."""
    for failure_policy, allowed in (("Fail", False), ("Ignore", True)):
        policies = loaded(validating(check(expression), failurePolicy=failure_policy))
        assert validate(policies, pod()).allowed is allowed


def test_a_field_that_does_not_exist_is_not_there() -> None:
    """`has` is false, whatever the failurePolicy: nothing failed."""
    policies = loaded(validating(check("!has(object.spec.nope)"), failurePolicy="Fail"))
    assert validate(policies, pod()).allowed
