"""What a device request says of its devices, in the simple CEL that such requests are written in.

Source: `resource.k8s.io` CELDeviceSelector. Read are comparisons of attributes and capacities with literals,
`in`, the string functions, quantities and versions, joined by `&&`, `||`, `!` and parentheses. What is more
than that is not guessed at: its truth is None, unknown. A look at an attribute that a device does not have is
an error in CEL, unless another side of `&&` or `||` decides; such a device is never given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction

import re2

from planner.devices.slices import SINGLE, Device
from planner.model.errors import InputError, Where
from planner.model.quantity import parse

_OPTIONS = re2.Options()


_OPTIONS.log_errors = False


_TEXT = r"""(?:'(?P<one>[^'\\]*)'|"(?P<two>[^"\\]*)")"""


_PATH = re.compile(
    r"""device\.(?:(?P<driver>driver)|(?P<kind>attributes|capacity)\[(?P<quote>['"])(?P<domain>[^'"]+)(?P=quote)\]"""
    r"""(?:\.(?P<name>\w+)(?![\w(]))?)"""
)


_LITERAL = re.compile(_TEXT + r"|(?P<number>-?\d+)|(?P<flag>true|false)")


_CALL = re.compile(r"\.(?P<name>\w+)\((?P<argument>[^()]*(?:\([^()]*\)[^()]*)?)\)")


_MADE = re.compile(r"""(?P<made>quantity|semver)\(\s*['"](?P<text>[^'"]*)['"]\s*\)""")


_COMPARE: Mapping[str, Callable[[object, object], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    "<": lambda a, b: a < b,  # type: ignore[operator]
}


_LONGEST = 4096


_DEEPEST = 16


class _Error(Enum):
    """What comes of a look at an attribute that is not there."""

    ABSENT = "absent"


_Truth = bool | None | _Error


def holds(expression: str, device: Device) -> bool | None:
    """Whether the expression holds for the device; None where it says more than is read here."""
    found = _truth(expression, device, 0)
    return False if found is _Error.ABSENT else found


def _truth(expression: str, device: Device, depth: int) -> _Truth:
    text = expression.strip()
    if len(text) > _LONGEST or depth > _DEEPEST:
        return None
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    for mark, decisive in (("||", True), ("&&", False)):
        parts = list(_split(text, mark))
        if len(parts) > 1:
            return _joined([_truth(part, device, depth + 1) for part in parts], decisive=decisive)
    if text.startswith("!") and not text.startswith("!="):
        inner = _truth(text[1:], device, depth + 1)
        return not inner if isinstance(inner, bool) else inner
    return _atom(text, device)


def _joined(found: Sequence[_Truth], *, decisive: bool) -> _Truth:
    """One side decides whatever the others are; else an error stays one, and `&&` never makes it true."""
    if any(one is decisive for one in found):
        return decisive
    if _Error.ABSENT in found and (None not in found or not decisive):
        return _Error.ABSENT
    return None if None in found else not decisive


def _atom(text: str, device: Device) -> _Truth:
    path = _PATH.match(text)
    if path is None:
        return None
    known, value = _looked_up(path, device)
    if not known:
        return value if isinstance(value, _Error) else None
    rest = text[path.end() :].strip()
    while call := _CALL.match(rest):
        value = _called(value, call["name"], call["argument"].strip())
        rest = rest[call.end() :].strip()
        if value is None:
            return None
    if not rest:
        return value if isinstance(value, bool) else None
    if rest.startswith("in "):
        listed = rest[3:].strip()
        items = [_literal(item) for item in listed[1:-1].split(",")] if listed.startswith("[") else [None]
        return None if None in items else value in items
    operator = next((sign for sign in _COMPARE if rest.startswith(sign)), "")
    other = _literal(rest[len(operator) :]) if operator else None
    if other is None or (isinstance(value, str) != isinstance(other, str)):
        return None
    return _COMPARE[operator](value, other)


def _looked_up(path: re.Match[str], device: Device) -> tuple[bool, object]:
    if path["driver"]:
        return True, device.driver
    domain, _, named = path["domain"].partition("/")
    name = path["name"] or named
    if not name:
        return False, None
    if domain != device.driver:
        name = f"{domain}/{name}"
    table: Mapping[str, object] = dict(device.attributes if path["kind"] == "attributes" else device.capacity)
    if name in table:
        return True, table[name]
    absent = device.complete and name.rpartition("/")[2] not in SINGLE
    return False, _Error.ABSENT if absent else None


def _called(value: object, name: str, argument: str) -> object:
    """The value of a function on what was looked up; None where it is not read."""
    if name == "lowerAscii" and isinstance(value, str):
        return value.lower()
    other = _literal(argument)
    if isinstance(value, str) and isinstance(other, str):
        return _text_function(value, name, other)
    order = _order(value, other)
    if order is None:
        return None
    return {"compareTo": order, "isGreaterThan": order > 0, "isLessThan": order < 0}.get(name)


def _text_function(value: str, name: str, other: str) -> object:
    if name == "matches":
        try:
            return re2.compile(other, _OPTIONS).search(value) is not None
        except (re2.error, UnicodeError):
            return None
    found = {
        "startsWith": value.startswith(other),
        "endsWith": value.endswith(other),
        "contains": other in value,
    }
    return found.get(name)


def _order(value: object, other: object) -> int | None:
    """How two quantities, or two versions, compare: -1, 0 or 1."""
    if isinstance(other, Fraction) and isinstance(value, int):
        return (value > other) - (value < other)
    if isinstance(other, tuple) and isinstance(value, str) and (own := _version(value)) is not None:
        return (own > other) - (own < other)
    return None


_Parts = tuple[int, ...]


def _version(text: str) -> _Parts | None:
    parts = text.split("-")[0].split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdecimal() for part in parts) else None


def _literal(text: str) -> object:
    """A text, a number, a truth value, a quantity or a version; None for anything else."""
    text = text.strip()
    made = _MADE.fullmatch(text)
    if made and made["made"] == "semver":
        return _version(made["text"])
    if made:
        try:
            return parse(made["text"], Where())
        except InputError:
            return None
    found = _LITERAL.fullmatch(text)
    if found is None:
        return None
    if found["number"]:
        return int(found["number"])
    if found["flag"]:
        return found["flag"] == "true"
    return found["one"] if found["one"] is not None else found["two"]


def _split(text: str, mark: str) -> Iterator[str]:
    """The parts between marks that stand outside of quotes and parentheses."""
    start = 0
    for place in _outside(text):
        if text.startswith(mark, place):
            yield text[start:place]
            start = place + len(mark)
    yield text[start:]


def _unquoted(text: str) -> Iterator[tuple[int, str]]:
    """The signs that stand outside of quotes, with their places; quotation marks left out."""
    quote = ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        else:
            yield place, sign


def _outside(text: str) -> Iterator[int]:
    depth = 0
    for place, sign in _unquoted(text):
        if sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif not depth:
            yield place


def _closing(text: str) -> int:
    """Where the parenthesis closes that opens the text; -1 where it does not."""
    depth = 0
    for place, sign in _unquoted(text):
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if not depth:
                return place
    return -1
