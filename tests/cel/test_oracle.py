"""Random expressions get the same answer here and from Google's C++ engine."""

from __future__ import annotations

import math
from typing import Any

from cel_expr_python import cel
from hypothesis import HealthCheck, example, given, settings

from tests.cel.expressions import BINDINGS, expressions
from webhook.cel import CelError, Declarations, compile

ERROR = "error"
_ENV = cel.NewEnv(variables=dict.fromkeys(BINDINGS, cel.Type.DYN))
_DECLARED = Declarations(variables=dict.fromkeys(BINDINGS), strict=False)


def _plain(value: Any) -> Any:
    """A value in a form that tells booleans from numbers, and takes NaN for itself."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _oracle(text: str) -> Any:
    value = _ENV.compile(text, disable_check=True).eval(data=BINDINGS)
    return ERROR if value.type().name() == "ERROR" else _plain(value.plain_value())


def _ours(text: str) -> Any:
    try:
        return _plain(compile(text, _DECLARED).evaluate(BINDINGS))
    except CelError:
        return ERROR


@given(expressions())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example("[1, 2, 3].all(e, 1 / (e - 2) > 0)")
@example("(l[9] == 1) || true")
def test_random_expressions_have_the_oracles_value(text: str) -> None:
    """The same value, or an error on both sides."""
    assert _ours(text) == _oracle(text)
