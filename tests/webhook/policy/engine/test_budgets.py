"""What the expressions of a policy may cost: as upstream, other policies do not count."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from planner.model.effort.deadline import DeadlinePassed, watched
from tests.webhook.policy.helpers import (
    OURS,
    Inputs,
    Json,
    binding,
    check,
    loaded,
    mutating,
    patch,
    pod,
    validate,
    validating,
)
from webhook.policy import BareInputs, Findings, from_object, run_mutating, run_validating

HEAVY = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, true)))"
COST = validate([validating(check(HEAVY))], pod()).cost
ENDLESS = "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"


def spent(findings: Findings) -> list[str]:
    """The labels of the expressions that went beyond a limit."""
    assert all("cost limit" in row.message for row in findings.errors)
    return [row.label for row in findings.errors]


def limit(share: float) -> Inputs:
    """A limit, as a share of what one heavy expression costs."""
    return Inputs(budget=int(COST * share))


def test_policies_share_no_budget() -> None:
    """Forty policies of which each has half of the limit are no reason to refuse."""
    policies = [validating(check(HEAVY), name=f"p{n}") for n in range(40)]
    findings = validate(policies, pod(), limit(1.5))
    assert findings.allowed
    assert findings.cost == 40 * COST


def test_the_validations_of_a_policy_share_a_budget() -> None:
    """The first that goes beyond it is named."""
    policy = validating(check(HEAVY), check(HEAVY), check("true"))
    assert spent(validate([policy], pod(), limit(1.5)))[0] == "spec.validations[1].expression"
    assert spent(validate([policy], pod(), limit(2.5))) == []


@pytest.mark.parametrize("name", ["one", "other"])
def test_each_binding_and_each_parameter_object_has_the_whole_budget(name: str) -> None:
    """Two bindings with two parameter objects each are four runs."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    policy = validating(check(f"{HEAVY} && params.metadata.name != ''"), paramKind=kind)
    every = {"selector": {}, "parameterNotFoundAction": "Deny"}
    bindings = [binding(policy, each, paramRef=every) for each in "ab"]
    maps = [{**kind, "metadata": {"name": each}} for each in (name, "third")]
    findings = validate([policy, *bindings, *maps], pod(), limit(1.5))
    assert findings.allowed
    assert findings.cost > 4 * COST


def test_audit_annotations_have_a_budget_of_their_own() -> None:
    """What the validations used does not count, and the annotations share theirs."""
    heavy = f"{HEAVY} ? 'yes' : 'no'"
    annotations = [{"key": f"k{n}", "valueExpression": heavy} for n in range(2)]
    policy = validating(check(HEAVY), auditAnnotations=annotations[:1])
    assert spent(validate([policy], pod(), limit(1.5))) == []
    policy = validating(check(HEAVY), auditAnnotations=annotations)
    assert spent(validate([policy], pod(), limit(1.5))) == ["spec.auditAnnotations[1].valueExpression"]


def with_conditions(name: str, *expressions: str) -> Json:
    """A policy with match conditions."""
    conditions = [{"name": f"c{n}", "expression": each} for n, each in enumerate(expressions)]
    return validating(check("true"), name=name, matchConditions=conditions)


def test_match_conditions_of_other_policies_do_not_count() -> None:
    """A quarter of the limit is for the conditions of each policy."""
    policies = [with_conditions(f"p{n}", f"{HEAVY} && {n} >= 0") for n in range(9)]
    assert spent(validate(policies, pod(), limit(6))) == []


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_condition_that_other_policies_have_costs_the_same(before: int) -> None:
    """Though it is evaluated once, each policy pays for it: the second condition goes beyond the limit."""
    policies = [with_conditions(f"a{n}", HEAVY) for n in range(before)]
    dear = with_conditions("b", HEAVY, f"{HEAVY} && true")
    findings = validate([*policies, dear], pod(), limit(6))
    assert [(row.policy, row.label) for row in findings.errors] == [
        ("b", "spec.matchConditions[1].expression")
    ]


@pytest.fixture
def polls() -> Iterator[count[int]]:
    """A deadline that has passed when it is checked for the hundredth time."""
    checks = count()
    with watched(lambda: next(checks) >= 100):
        yield checks


@pytest.mark.parametrize("field", ["validations", "auditAnnotations", "matchConditions"])
def test_the_deadline_ends_validating_policies_however_many_there_are(field: str, polls: count[int]) -> None:
    """Each of a hundred stays within its own limit."""
    spec: Json = {
        "validations": {},
        "auditAnnotations": {"auditAnnotations": [{"key": "k", "valueExpression": f"{ENDLESS} ? 'a' : 'b'"}]},
        "matchConditions": {"matchConditions": [{"name": "c", "expression": ENDLESS}]},
    }[field]
    body = check(ENDLESS if field == "validations" else "true")
    policies = loaded(*(validating(body, name=f"p{n}", api=OURS, **spec) for n in range(100)))
    with pytest.raises(DeadlinePassed):
        run_validating(policies, from_object(pod()), pod(), BareInputs())
    assert next(polls) == 101


def test_the_deadline_ends_mutating_policies_however_many_there_are(polls: count[int]) -> None:
    """Each of a hundred stays within its own limit."""
    policies = loaded(*(mutating(patch(f"{ENDLESS} ? [] : []"), name=f"p{n}") for n in range(100)))
    with pytest.raises(DeadlinePassed):
        run_mutating(policies, from_object(pod()), pod(), BareInputs())
    assert next(polls) == 101
