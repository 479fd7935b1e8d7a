"""matches(), find(), findAll(): by google-re2, which takes linear time in the input for every pattern."""

from __future__ import annotations

from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.values.budget import Meter
from webhook.cel.values.regex import pattern

_CALL: Final = 20  # cost units of a call: the pattern may have to be compiled
_MATCH: Final = 25  # cost units of a match: each one creates a Python object


def _charge(meter: Meter, text: str, source: str) -> Any:
    meter.charge(_CALL + (len(text) // 10 + 1) * (len(source) // 4 + 1))
    meter.check()  # to compile a pattern may take 0.1 s
    return pattern(source)


def _matches(meter: Meter, text: str, source: str) -> bool:
    return _charge(meter, text, source).search(text) is not None


def _find(meter: Meter, text: str, source: str) -> str:
    match = _charge(meter, text, source).search(text)
    return match.group(0) if match else ""


def _find_all(meter: Meter, text: str, source: str, limit: int = -1) -> list[str]:
    out: list[str] = []
    last_end = -1
    for match in _charge(meter, text, source).finditer(text):
        if 0 <= limit <= len(out):
            break
        meter.charge(_MATCH)
        start, end = match.span()
        if not start == end == last_end:  # as Go, which accepts no empty match right after another match
            out.append(match.group(0))
        last_end = end
    return out


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("<string>.matches(string) -> bool", _matches, metered=True),
    overload("matches(string, string) -> bool", _matches, metered=True),
    overload("<string>.find(string) -> string", _find, metered=True),
    overload("<string>.findAll(string) -> list", _find_all, metered=True),
    overload("<string>.findAll(string, int) -> list", _find_all, metered=True),
)
