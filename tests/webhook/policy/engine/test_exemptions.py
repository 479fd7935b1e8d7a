"""PolicyExceptions: results and mutations of exempt policies are dropped and reported, until they expire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.webhook.policy.helpers import (
    Inputs,
    Json,
    apply,
    check,
    exemption,
    loaded,
    mutate,
    mutating,
    pod,
    validate,
    validating,
)
from webhook.policy import UserInfo

LAST_DAY = datetime(2026, 11, 30, 23, 59, tzinfo=UTC).timestamp()
DAY_AFTER = datetime(2026, 12, 1, tzinfo=UTC).timestamp()

WRITES = mutating(apply('Object{metadata: Object.metadata{labels: {"a": "b"}}}'))
REFUSES = validating(check("false", message="no such image"))
FAILS = validating(check("object.spec.nodeName == ''"))


def inputs_at(now: float = LAST_DAY) -> Inputs:
    """A caller with a clock."""
    return Inputs(now=now)


def asked(obj: Json | None = None, *, by: Json | None = None, now: float = LAST_DAY, **request: Any) -> Any:
    """What a refusing policy says, with an exemption from it."""
    documents = [REFUSES, by or exemption("validate")]
    return validate(documents, obj or pod(), inputs_at(now), **{"namespace": "team-a", **request})


def test_what_an_exempt_policy_writes_is_taken_back_and_told() -> None:
    """With who allowed it, until when, and which fields it would have changed."""
    mutated = mutate([WRITES, exemption("mutate")], pod(), inputs_at(), namespace="team-a")
    assert mutated.object == pod()
    assert mutated.effects == ()
    (exempted,) = mutated.exempted
    assert str(exempted) == (
        "policy 'mutate': exempt until 2026-11-30 by PolicyException while-it-moves (TICKET-7); "
        "it would have changed /metadata/labels"
    )


def test_what_an_exempt_policy_refuses_is_let_in_and_told() -> None:
    """A warning to whoever applies it; the policy does not count as passed."""
    findings = asked()
    assert findings.allowed
    assert findings.passed == ()
    assert "it would have refused: no such image" in findings.warnings[0]


def test_an_exempt_policy_annotates_nothing() -> None:
    """The audit log has what it would have done under `exempt`, and nothing else of it; others annotate."""
    row = {"key": "image", "valueExpression": "'none'"}
    documents = [
        validating(check("false"), auditAnnotations=[row]),
        validating(check("true"), name="other", auditAnnotations=[row]),
        exemption("validate"),
    ]
    findings = validate(documents, pod(), inputs_at(), namespace="team-a")
    assert findings.audit_annotations == {"other.image": "none"}


def test_an_exempt_policy_that_fails_refuses_nobody() -> None:
    """Its failurePolicy has no say."""
    findings = validate([FAILS, exemption("validate")], pod(), inputs_at(), namespace="team-a")
    assert findings.allowed
    assert "it would have refused: no such key: nodeName" in findings.warnings[0]


def test_others_are_not_exempt() -> None:
    """Nor is anybody from another policy."""
    assert not asked(namespace="team-b").allowed
    other = validating(check("false"), name="other")
    documents = [REFUSES, other, exemption("validate")]
    findings = validate(documents, pod(), inputs_at(), namespace="team-a")
    assert [row.policy for row in findings.denials] == ["other"]


def test_one_that_has_ended_exempts_nobody_and_is_told() -> None:
    """A date lasts to the end of its day in UTC; then the policy applies again, and says since when."""
    findings = asked(now=DAY_AFTER)
    assert not findings.allowed
    assert findings.warnings == (
        "policy 'validate' applies again: PolicyException while-it-moves ended 2026-11-30 (TICKET-7)",
    )
    mutated = mutate([WRITES, exemption("mutate")], pod(), inputs_at(DAY_AFTER), namespace="team-a")
    assert mutated.object["metadata"]["labels"] == {"a": "b"}
    assert [row.over for row in mutated.exempted] == [True]


@pytest.mark.parametrize(
    ("until", "exempt"), [("2026-11-30T12:00:00+02:00", False), ("2026-11-30T23:59:30Z", True)]
)
def test_a_time_ends_it_to_the_second(until: str, exempt: bool) -> None:
    """With its zone."""
    assert asked(by=exemption("validate", until)).allowed is exempt


def test_nothing_is_told_of_a_policy_that_has_nothing_to_say() -> None:
    """An exemption that is not needed is not used, in force or ended."""
    for now in (LAST_DAY, DAY_AFTER):
        documents = [validating(check("true")), exemption("validate")]
        assert validate(documents, pod(), inputs_at(now), namespace="team-a").exempted == ()


def test_without_a_clock_none_is_in_force() -> None:
    """Nor is any told to have ended."""
    findings = asked(now=float("inf"))
    assert not findings.allowed
    assert findings.exempted == ()


def test_of_several_the_one_that_ends_last_counts() -> None:
    """One that has ended takes nothing from one that has not."""
    longer = {**exemption("validate", "2027-01-31"), "metadata": {"name": "longer"}}
    findings = validate(
        [REFUSES, exemption("validate"), longer], pod(), inputs_at(DAY_AFTER), namespace="team-a"
    )
    assert [row.exemption.name for row in findings.exempted] == ["longer"]


OWNED = pod()
OWNED["metadata"] = {
    "name": "train-0-x",
    "labels": {"app": "train"},
    "ownerReferences": [
        {"kind": "Job", "name": "train", "controller": True},
        {"kind": "Cron", "name": "nightly"},
    ],
}


@pytest.mark.parametrize(
    ("match", "exempt"),
    [
        ({"namespaces": ["team-*"]}, True),
        ({"namespaces": ["team-?"]}, True),
        ({"namespaces": ["team"]}, False),
        ({"kinds": ["Pod"]}, True),
        ({"kinds": ["Job"]}, True),
        ({"kinds": ["Cron"]}, False),
        ({"names": ["train"]}, True),
        ({"names": ["train-*"]}, True),
        ({"kinds": ["Job"], "names": ["train-*"]}, False),
        ({"names": ["nightly"]}, False),
        ({"selector": {"matchLabels": {"app": "train"}}}, True),
        ({"selector": {"matchLabels": {"app": "serve"}}}, False),
        ({"users": ["jane"]}, True),
        ({"users": ["joe"]}, False),
        ({"groups": ["research", "sales"]}, True),
        ({"groups": ["sales"]}, False),
        ({"namespaces": ["team-a"], "users": ["joe"]}, False),
        ({"namespaceSelector": {"matchLabels": {"tier": "gold"}}}, False),
    ],
)
def test_all_that_is_named_must_fit(match: Json, exempt: bool) -> None:
    """Kind and name are the object's, or both are its controller's."""
    user = UserInfo("jane", groups=("research",))
    assert asked(OWNED, by=exemption("validate", **match), user_info=user).allowed is exempt


@pytest.mark.parametrize(
    ("expression", "exempt"),
    [
        ("object.spec.containers.size() == 1", True),
        ("request.operation == 'DELETE'", False),
        ("object.spec.nodeName == 'a'", False),
    ],
)
def test_conditions_must_hold_and_one_without_a_value_exempts_nobody(expression: str, exempt: bool) -> None:
    """The pod has no nodeName: that is an error, and no exemption."""
    by = exemption("validate")
    by["spec"]["conditions"] = [{"name": "c", "expression": expression}]
    assert asked(by=by).allowed is exempt


def test_they_are_kept_by_name() -> None:
    """As `bayplan policies list` shows them."""
    second = {**exemption("validate"), "metadata": {"name": "a-first"}}
    policies = loaded(REFUSES, exemption("validate"), second)
    assert [row.name for row in policies.exemptions] == ["a-first", "while-it-moves"]
