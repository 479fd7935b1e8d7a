"""Lists and maps of unlike types: the API server refuses such a policy, Bayplan evaluates it and warns."""

from __future__ import annotations

import pytest

from tests.webhook.policy.helpers import OURS, check, loaded, validating


@pytest.mark.parametrize(
    ("expression", "types"),
    [
        ("[object.metadata.name, 'a'].size() == 2", "elements of unlike types, fields without a type and "),
        ("{'a': 1, 'b': object.spec.hostname}.size() == 2", "values of unlike types, int and fields without"),
        ("{'a': true, 1: true}.size() == 2", "keys of unlike types, string and int"),
        ("'a' in [string(object.spec.nodeName), 1u].map(e, e)", "elements of unlike types, string and uint"),
    ],
)
def test_a_literal_of_unlike_types_is_a_warning_of_kubernetes_own_policies(
    expression: str, types: str
) -> None:
    """The warning names the types, and what would work; Bayplan's own policies may have such literals."""
    (warning,) = loaded(validating(check(expression))).warnings
    assert f"the API server refuses {types}" in warning
    assert "dyn(…)" in warning
    assert loaded(validating(check(expression), api=OURS)).warnings == ()


@pytest.mark.parametrize(
    "expression",
    [
        "[object.metadata.name, object.spec.nodeName].size() == 2",
        "[dyn(object.metadata.name), dyn('a')].size() == 2",
        "'%s %d'.format([object.metadata.name, 1]) != ''",
        "{'a': object.spec, 'b': object.metadata}.size() == [1, size(object.metadata.name)].size()",
    ],
)
def test_a_literal_of_equal_types_is_not_warned_of(expression: str) -> None:
    """Nor are the arguments of `format()`, or types that are not obvious."""
    assert loaded(validating(check(expression))).warnings == ()
