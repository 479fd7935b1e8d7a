"""`'%s has %d'.format([name, count])`, as version 2 of the string extension does it: that of Kubernetes.

Version 2 shows numbers as text for people (golang.org/x/text, locale en-US): `%f` groups digits, and `%e` has
a power of ten in superscript. Lists and maps are shown as CEL literals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from webhook.cel.libraries.conversions import decode, format_double
from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.temporal import format_duration, format_timestamp
from webhook.cel.values.values import CelType, Duration, Timestamp, UInt, from_key, type_name

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.0*([0-9]+))?(.)|)", re.DOTALL)
_MAX_PRECISION: Final = 1000
"""Maximum number of digits after the point, so that a short expression cannot create a very long text."""
_DIGITS: Final = 6
"""Digits after the point if a clause does not say how many."""
_SPECIAL_TEXTS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES_AND_QUOTES: Final = {**_ESCAPES, "\\": "\\\\", '"': '\\"'}

Clause = Callable[[Meter, Any, int | None], str]
"""Shows an argument, which is charged by its size. With it comes the clause's precision, None if it has none.
"""


def fill(meter: Meter, template: str, args: list[Any], clauses: Mapping[str, Clause]) -> str:
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
        clause = clauses.get(verb)
        if clause is None:
            raise FunctionError("format(): unknown clause")
        if used >= len(args):
            raise FunctionError(f"format(): no argument for clause {used + 1}")
        digits = int(precision[:5]) if precision else None  # a number with more digits is above the limit
        if digits is not None and digits > _MAX_PRECISION:
            raise FunctionError(f"format(): precision above {_MAX_PRECISION}")
        piece = clause(meter, args[used], digits)
        meter.charge(len(piece) // 10)
        out.append(piece)
        used += 1
    out.append(template[end:])
    meter.charge(len(template) // 10)
    return "".join(out)


def refusal(verb: str, value: Any) -> FunctionError:
    """Returns the error for a value that a clause cannot show."""
    return FunctionError(f"format(): %{verb} cannot show {type_name(value)}")


def charge_for(meter: Meter, value: Any) -> None:
    """Charges a value before it is joined: a list may contain one long string many times."""
    meter.charge(1 + (len(value) // 10 if isinstance(value, (str, bytes)) else 0))


def _text(meter: Meter, value: Any, digits: int | None = None) -> str:
    """`%s`: scalars as `string()` shows them, lists and maps as literals."""
    charge_for(meter, value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_literal(meter, item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = sorted((_key(meter, from_key(key)), _literal(meter, item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    return scalar_text(value)


def scalar_text(value: Any) -> str:
    """Returns a scalar as `string()` shows it. Raises FunctionError for a value of another kind."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return format_double(value)
    if value is None:
        return "null"
    show = _RARE.get(kind)
    if show is None:
        raise refusal("s", value)
    return show(value)


_RARE: Final[dict[type, Callable[[Any], str]]] = {
    bytes: decode,
    Timestamp: format_timestamp,
    Duration: format_duration,
    CelType: lambda value: value.name,
}


def _literal(meter: Meter, value: Any) -> str:
    """Returns an element of a list, or a value of a map."""
    if isinstance(value, str):
        charge_for(meter, value)
        return _quoted(value)
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{format_double(value)}"'
    text = _text(meter, value)
    if isinstance(value, bytes):
        return f"b{_quoted(text)}"
    if isinstance(value, Timestamp):
        return f'timestamp("{text}")'
    return f'duration("{text}")' if isinstance(value, Duration) else text


def _key(meter: Meter, key: Any) -> str:
    charge_for(meter, key)
    return _quoted(key) if isinstance(key, str) else scalar_text(key)


def _quoted(text: str) -> str:
    """Returns the text in double quotes, as Go's `%q` does: what cannot be printed is escaped."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    short = _ESCAPES_AND_QUOTES.get(char)
    if short or char.isprintable():
        return short or char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _decimal(_: Meter, value: Any, digits: int | None) -> str:
    if type(value) not in (int, UInt):
        raise refusal("d", value)
    return str(int(value))


def _double(verb: str, value: Any) -> float:
    """Returns the number that `%f` or `%e` shows: a double, or a text for one that is not finite."""
    if type(value) is str and value in _SPECIAL_TEXTS:
        return _SPECIAL_TEXTS[value]
    if type(value) is not float:
        raise refusal(verb, value)
    return value


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _fixed(_: Meter, value: Any, digits: int | None) -> str:
    number = _double("f", value)
    if not math.isfinite(number):
        return _not_finite(number)
    return f"{number or 0.0:,.{_DIGITS if digits is None else digits}f}"


def _scientific(_: Meter, value: Any, digits: int | None) -> str:
    """`%e`: always six digits after the point. Version 2 takes the precision for the least width."""
    number = _double("e", value)
    if math.isfinite(number):
        mantissa, exponent = f"{number or 0.0:.6e}".split("e")
        power = exponent.removeprefix("+").translate(_SUPERSCRIPT)
        text = f"{mantissa}×10{power}"
    else:
        text = _not_finite(number)
    return text.rjust(_DIGITS if digits is None else digits)


def _binary(_: Meter, value: Any, digits: int | None) -> str:
    if type(value) not in (bool, int, UInt):
        raise refusal("b", value)
    return f"{int(value):b}"


def _octal(_: Meter, value: Any, digits: int | None) -> str:
    if type(value) not in (int, UInt):
        raise refusal("o", value)
    return f"{int(value):o}"


def _hex(verb: str) -> Clause:
    def show(_: Meter, value: Any, digits: int | None) -> str:
        if type(value) in (int, UInt):
            return f"{int(value):{verb}}"
        if isinstance(value, (str, bytes)):
            raw = value.encode("utf-8") if isinstance(value, str) else value
            return raw.hex() if verb == "x" else raw.hex().upper()
        raise refusal(verb, value)

    return show


WHOLE_NUMBERS: Final[Mapping[str, Clause]] = {"b": _binary, "o": _octal, "x": _hex("x"), "X": _hex("X")}
"""The clauses that are alike in all versions of the extension."""
_CLAUSES: Final[Mapping[str, Clause]] = {
    **WHOLE_NUMBERS,
    "s": _text,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
}


def format_string(meter: Meter, template: str, args: list[Any]) -> str:
    """Returns the template with its arguments, as `fill` does it, with Kubernetes' clauses."""
    return fill(meter, template, args, _CLAUSES)
