"""Functions of later versions of the string extension, which Kubernetes lacks or has in another form.

`format()` of version 4 shows numbers without a locale; an offset behind the end of a text is an error of
`indexOf()` and `lastIndexOf()` by the CEL specification.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.libraries.conversions import plain_double
from webhook.cel.libraries.formatting import (
    WHOLE_NUMBERS,
    Clause,
    charge_for,
    fill,
    refusal,
    scalar_text,
)
from webhook.cel.libraries.strings import index_of, last_index_of
from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import UInt, from_key


def _special(value: Any) -> str | None:
    if type(value) is float and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return None


def _text(meter: Meter, value: Any, digits: int | None = None) -> str:
    charge_for(meter, value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(meter, item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = sorted((_text(meter, from_key(key)), _text(meter, item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _special(value) or scalar_text(value)


def _decimal(_: Meter, value: Any, digits: int | None) -> str:
    if type(value) in (int, UInt):
        return str(int(value))
    if type(value) is float:
        return _special(value) or plain_double(value)
    raise refusal("d", value)


def _float(verb: str) -> Clause:
    def show(_: Meter, value: Any, digits: int | None) -> str:
        if type(value) not in (int, UInt, float):
            raise refusal(verb, value)
        return _special(value) or f"{float(value):.{6 if digits is None else digits}{verb}}"

    return show


_CLAUSES: Final[Mapping[str, Clause]] = {
    **WHOLE_NUMBERS,
    "s": _text,
    "d": _decimal,
    "f": _float("f"),
    "e": _float("e"),
}


def _format(meter: Meter, template: str, args: list[Any]) -> str:
    return fill(meter, template, args, _CLAUSES)


def _index_of(text: str, part: str, start: int) -> int:
    if start > len(text):
        raise FunctionError(f"indexOf() offset {start} out of range")
    return index_of(text, part, start)


def _last_index_of(text: str, part: str, start: int) -> int:
    if start > len(text):
        raise FunctionError(f"lastIndexOf() offset {start} out of range")
    return last_index_of(text, part, start)


def _reverse(meter: Meter, text: str) -> str:
    meter.charge(len(text) // 10)
    return text[::-1]


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("<string>.format(list) -> string", _format, metered=True),
    scanning("<string>.indexOf(string, int) -> int", _index_of),
    scanning("<string>.lastIndexOf(string, int) -> int", _last_index_of),
    overload("<string>.reverse() -> string", _reverse, metered=True),
)
