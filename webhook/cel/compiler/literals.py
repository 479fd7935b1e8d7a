"""Checks constant patterns, times and durations when the expression is compiled, as the API server does."""

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
"""By function: the argument that is checked (0 for the first, which may be a receiver; -1 for the last), and
the parser that checks it.
"""


def bad_literal(name: str, constants: Sequence[object]) -> str:
    """Returns the problem of a function's constant argument, "" for none.

    `constants`: the values of its arguments; `UNSET` for an argument that is not constant, which is not
    checked.
    """
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
