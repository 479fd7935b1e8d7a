"""CEL values for which plain JSON has no type.

`null`, booleans, strings, lists and maps are Python's own; an `int` is a CEL int, a `float` a CEL double,
`bytes` CEL bytes. All other values of the language itself have a class here; function libraries have their
own (Quantity, Semver, IP …), whose names they set with `register_type`. In a map, a boolean key is stored as
a `BoolKey`, because `True` and `1` are the same key in Python, but not in CEL.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

INT_MIN: Final = -(2**63)


INT_MAX: Final = 2**63 - 1


UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """A CEL uint: 0 to 2**64-1. It has the hash of its number, so `1` and `1u` are the same key, as
    in CEL.
    """

    __slots__ = ()


class BoolKey(enum.Enum):
    """A boolean as the key of a map."""

    FALSE = False
    TRUE = True


def to_key(key: Any) -> Any:
    """Returns the form in which a map stores a key."""
    if key is True:
        return BoolKey.TRUE
    return BoolKey.FALSE if key is False else key


def from_key(key: Any) -> Any:
    """Returns the CEL value of a stored key."""
    return key.value if type(key) is BoolKey else key


@dataclass(frozen=True, slots=True)
class CelType:
    """A type as a value, such as `int` or the result of `type(x)`."""

    name: str


class Optional:
    """An optional value. `ABSENT` is the optional without a value."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any, present: bool = True) -> None:
        self.value = value
        self.present = present


ABSENT: Final = Optional(None, present=False)


class ObjectValue(dict[str, Any]):
    """The result of `Object.spec.template{…}`: a map with its type path as `type_name`. Unset fields are
    absent.
    """

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__(fields or {})
        self.type_name = type_name


@dataclass(frozen=True, slots=True)
class JSONPatch:
    """One `JSONPatch{}` operation. `has_value` distinguishes `value: null` from a missing value. `source`:
    the field `from`.
    """

    op: str = ""
    path: str = ""
    source: str = ""
    value: Any = None
    has_value: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time, in nanoseconds since 1970-01-01T00:00:00Z; years 1 to 9999. `offset`: that of the zone
    in which its text was written, in seconds east of UTC; its text form keeps it.
    """

    nanos: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds, within int64 as in Go."""

    nanos: int


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    CelType: "type",
    Optional: "optional_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    JSONPatch: "JSONPatch",
    BoolKey: "bool",
}


def register_type(python: type, name: str) -> None:
    """Sets the CEL type name of a Python class, for `type(x)` and overloads."""
    _NAMES[python] = name


def type_name(value: Any) -> str:
    """Returns the name of a value's CEL type, "dyn" for a value of an unknown class."""
    builtin_name = _NAMES.get(type(value))
    if builtin_name is not None:
        return builtin_name
    if isinstance(value, ObjectValue):
        return value.type_name
    if isinstance(value, Mapping):
        return "map"
    for python, name in _NAMES.items():
        if isinstance(value, python):
            return name
    return "dyn"
