"""A PolicyException that is wrong is an error with file, line and field, and the set is not used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.webhook.policy.helpers import Json, check, exemption, validating
from webhook.policy import PolicyError, load

POLICY = validating(check("true"))


def problems_of(document: Json) -> list[str]:
    """What is wrong with an exemption beside a policy."""
    try:
        load([("p.yaml", yaml.safe_dump(POLICY)), ("e.yaml", yaml.safe_dump(document))])
    except PolicyError as error:
        return list(map(str, error.problems))
    return []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d["spec"].pop("until"), "spec: until is required: a date after which it ends"),
        (lambda d: d["spec"].update(until="soon"), "spec.until: 'soon' is no date or time; use 2026-12-31"),
        (lambda d: d["spec"].update(until="2026-02-30"), "is no date or time"),
        (lambda d: d["spec"].update(until="2026-12-31T18:00:00"), "is no date or time"),
        (lambda d: d["spec"].pop("reason"), "reason is required: why, and who allowed it"),
        (lambda d: d["spec"].pop("match"), "match is required: whom it is for"),
        (lambda d: d["spec"].update(match={}), "or groups is required: at least one"),
        (lambda d: d["spec"]["match"].update(name="a"), "spec.match.name: unknown field"),
        (lambda d: d["spec"].update(policies=[]), "policies is required"),
        (
            lambda d: d["spec"].update(policies=["validat"]),
            "spec.policies[0]: no policy 'validat' in the files; ",
        ),
        (lambda d: d["spec"].update(policies=["x-*"]), "name the folder of the policies too"),
        (lambda d: d["spec"].update(policies=["plan"]), "what the planner refuses can never run"),
        (lambda d: d["spec"].update(conditions=[{"name": "c", "expression": "plan.x"}]), "undeclared name"),
        (lambda d: d.update(apiVersion="kyverno.io/v2"), "known: bayplan.dev/v1alpha1"),
        (lambda d: d["spec"].update(exceptions=[]), "spec.exceptions: unknown field"),
    ],
)
def test_each_slip_is_told_with_its_field(change: Callable[[Json], Any], expected: str) -> None:
    """Starting from one that loads."""
    document = exemption("validate")
    assert problems_of(document) == []
    change(document)
    problems = problems_of(document)
    assert any(expected in problem for problem in problems), problems
    assert all(problem.startswith("e.yaml:") for problem in problems)


@pytest.mark.parametrize(
    ("until", "end"), [("9999-12-31", 253_402_300_800.0), ("2026-12-31", 1_798_761_600.0)]
)
def test_the_last_day_counts_also_where_no_later_date_exists(until: str, end: float) -> None:
    """9999-12-31 is what people write for an exemption without an end."""
    document = exemption("validate")
    document["spec"]["until"] = until
    policies = load([("p.yaml", yaml.safe_dump(POLICY)), ("e.yaml", yaml.safe_dump(document))])
    assert policies.exemptions[0].until == end


def test_one_that_stands_twice_is_told() -> None:
    """By its name."""
    with pytest.raises(PolicyError, match="occurs twice"):
        load([("p.yaml", yaml.safe_dump_all([POLICY, exemption("validate"), exemption("validate")]))])
