"""Constant patterns, times and durations: read when the expression is compiled, as the API
server's validators do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from webhook.cel.values.errors import FunctionError
from webhook.cel.values.regex import pattern
from webhook.cel.values.temporal import parse_duration, parse_timestamp

_CHECKS: Final[dict[str, tuple[int, Callable[[str], object]]]] = {
    "matches": (1, pattern),
    "find": (1, pattern),
    "findAll": (1, pattern),
    "timestamp": (-1, parse_timestamp),
    "duration": (-1, parse_duration),
}
"""By function, which of its arguments is read, and by what: of a method the receiver is the first."""


def bad_literal(name: str, constants: Sequence[object]) -> str:
    """What is wrong with the constant argument of a function, "" for nothing; arguments that are known only
    when the expression is evaluated are no text here."""
    index, check = _CHECKS.get(name, (0, None))
    if check is None or not -len(constants) <= index < len(constants):
        return ""
    text = constants[index]
    if not isinstance(text, str):
        return ""
    try:
        check(text)
    except FunctionError as bad:
        return str(bad)
    return ""
