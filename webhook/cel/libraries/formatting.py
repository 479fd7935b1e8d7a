"""`'%s has %d'.format([name, count])`, by the CEL string extension's rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from webhook.cel.libraries.conversions import format_double, plain_double
from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.temporal import format_duration, format_timestamp
from webhook.cel.values.values import CelType, Duration, Timestamp, UInt, from_key, type_name

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.0*([0-9]+))?(.)|)", re.DOTALL)
_MAX_PRECISION: Final = 1000
"""Maximum number of digits after the point, so that a short expression cannot create a very long text."""


def format_string(meter: Meter, template: str, args: list[Any]) -> str:
    """Returns the template with each clause replaced by its argument. A tenth of the text's length is
    charged.

    Raises FunctionError for an unknown clause, a missing argument, or one that the clause cannot show.
    """
    out: list[str] = []
    end = used = 0
    for match in _CLAUSE.finditer(template):
        out.append(template[end : match.start()])
        end = match.end()
        percent, precision, verb = match.groups()
        if percent:
            out.append("%")
            continue
        if verb != "s" and verb not in _VERBS:
            raise FunctionError("format(): unknown clause")
        if used >= len(args):
            raise FunctionError(f"format(): no argument for clause {used + 1}")
        digits = int(precision[:5]) if precision else 6  # a number with more digits is above the limit
        if digits > _MAX_PRECISION:
            raise FunctionError(f"format(): precision above {_MAX_PRECISION}")
        piece = text_of(meter, args[used]) if verb == "s" else _VERBS[verb](args[used], digits)
        meter.charge(len(piece) // 10)
        out.append(piece)
        used += 1
    out.append(template[end:])
    meter.charge(len(template) // 10)
    return "".join(out)


def _refuse(verb: str, value: Any) -> FunctionError:
    return FunctionError(f"format(): %{verb} cannot show {type_name(value)}")


def _special(value: Any) -> str | None:
    if type(value) is float and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return None


def text_of(meter: Meter, value: Any) -> str:
    """Returns a value as `%s` shows it.

    Each string is charged before it is joined: a list may contain one long string many times.
    """
    meter.charge(1 + (len(value) // 10 if isinstance(value, (str, bytes)) else 0))
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return _special(value) or format_double(value)
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(text_of(meter, item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = sorted((text_of(meter, from_key(key)), text_of(meter, item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    return _rare(value)


def _rare(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, CelType):
        return value.name
    raise _refuse("s", value)


def _decimal(value: Any, digits: int) -> str:
    if type(value) in (int, UInt):
        return str(int(value))
    if type(value) is float:
        return _special(value) or plain_double(value)
    raise _refuse("d", value)


def _float(verb: str) -> Callable[[Any, int], str]:
    def show(value: Any, digits: int) -> str:
        if type(value) not in (int, UInt, float):
            raise _refuse(verb, value)
        return _special(value) or f"{float(value):.{digits}{verb}}"

    return show


def _binary(value: Any, digits: int) -> str:
    if type(value) is bool or type(value) in (int, UInt):
        return f"{int(value):b}"
    raise _refuse("b", value)


def _octal(value: Any, digits: int) -> str:
    if type(value) in (int, UInt):
        return f"{int(value):o}"
    raise _refuse("o", value)


def _hex(verb: str) -> Callable[[Any, int], str]:
    def show(value: Any, digits: int) -> str:
        if type(value) in (int, UInt):
            return f"{int(value):{verb}}"
        if isinstance(value, (str, bytes)):
            raw = value.encode("utf-8") if isinstance(value, str) else value
            return raw.hex() if verb == "x" else raw.hex().upper()
        raise _refuse(verb, value)

    return show


_VERBS: Final[dict[str | None, Callable[[Any, int], str]]] = {
    "d": _decimal,
    "f": _float("f"),
    "e": _float("e"),
    "b": _binary,
    "o": _octal,
    "x": _hex("x"),
    "X": _hex("X"),
}
