"""When a match condition is evaluated again, and when its value is known."""

from __future__ import annotations

import pytest

from tests.webhook.policy.helpers import (
    OURS,
    Json,
    binding,
    evaluations,
    loaded,
    mutate,
    mutating,
    patch,
    pod,
)
from webhook.policy import PolicySet, from_object, run_mutating

MUTATION = patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: "kai"}]')


def policies(enabled: str, condition: str) -> PolicySet:
    """A policy with this condition, and its parameters in the same file."""
    policy = mutating(
        MUTATION,
        api=OURS,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConditions=[{"name": "asked", "expression": condition}],
    )
    settings: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {"enabled": enabled},
    }
    return loaded(policy, binding(policy, paramRef={"name": "settings"}), settings)


@pytest.fixture
def conditions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the conditions that are evaluated from now on."""
    return evaluations(monkeypatch, lambda each: each.label if "matchConditions" in each.label else None)


def test_a_condition_on_the_parameters_alone_is_evaluated_once_for_all_requests(
    conditions: list[str],
) -> None:
    """Its value cannot differ until the parameters do."""
    switched_on = policies("true", 'params.data.enabled == "true" // for all requests')
    for name in ("a", "b", "c"):
        assert mutate(switched_on, pod(hostname=name)).effects
    assert len(conditions) == 1


def test_other_parameters_are_asked_anew(conditions: list[str]) -> None:
    """The same condition, in another set of policies."""
    text = 'params.data.enabled == "true" // with other parameters'
    on, off = policies("true", text), policies("false", text)
    assert [bool(mutate(each, pod()).effects) for each in (on, off, on)] == [True, False, True]
    assert len(conditions) == 2


@pytest.mark.parametrize(
    "other",
    ['object.spec.hostname == "a"', 'request.name == "a"', "authorizer.group('').resource('pods') != null"],
)
def test_a_condition_that_reads_more_is_evaluated_for_each_request(conditions: list[str], other: str) -> None:
    """The object, the request and what its user may do differ."""
    policy = policies("true", f'params.data.enabled == "true" && ({other} || true)')
    for _ in range(2):
        run_mutating(policy, from_object(pod(hostname="a")), pod(hostname="a"))
    assert len(conditions) == 2
