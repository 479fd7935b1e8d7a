"""Equality, order and membership across CEL's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.stand_in import false_unless_stand_in
from webhook.cel.values.values import Duration, Optional, Timestamp, UInt, to_key, type_name

_NUMBERS: Final = frozenset({int, UInt, float})


_SCALARS: Final = frozenset({str, bool, bytes, type(None)})


_ORDERED: Final = frozenset({str, bool, bytes, Timestamp, Duration})


_LONG: Final = 500  # characters; the comparison of shorter strings is not charged


def equals(a: Any, b: Any, meter: Meter) -> bool:
    """Returns `a == b` in CEL: numbers of all types are compared by value, others only within their type."""
    ta, tb = type(a), type(b)
    if ta in _NUMBERS:
        if tb not in _NUMBERS:
            return false_unless_stand_in(b)
        return bool(a == b if ta is tb else _exact(a, b) == _exact(b, a))
    if ta in _SCALARS:
        if ta is not tb:
            return false_unless_stand_in(b)
        if a != b:
            return False
        if ta is str and len(a) > _LONG:
            meter.charge(len(a) // 10)
        return True
    if tb in _SCALARS:  # for example `params == null`, in the first condition of each policy
        return false_unless_stand_in(a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and _equal_lists(a, b, meter)
    if ta is dict or isinstance(a, Mapping):
        return (tb is dict or isinstance(b, Mapping)) and _equal_maps(a, b, meter)
    if isinstance(a, Optional):
        if not isinstance(b, Optional) or a.present != b.present:
            return False
        return not a.present or equals(a.value, b.value, meter)
    return bool(a == b) if ta is tb else false_unless_stand_in(b)


def _exact(number: Any, other: Any) -> Any:
    """Returns the number as it is compared with `other`: an integer is converted to a double if the other
    number is a double, as in cel-go.
    """
    return float(number) if type(other) is float else number


def _equal_lists(a: Any, b: Any, meter: Meter) -> bool:
    if len(a) != len(b):
        return False
    meter.charge(len(a))
    return all(equals(x, y, meter) for x, y in zip(a, b, strict=True))


def _equal_maps(a: Mapping[Any, Any], b: Mapping[Any, Any], meter: Meter) -> bool:
    if len(a) != len(b):
        return False
    meter.charge(len(a))
    return all(key in b and equals(value, b[key], meter) for key, value in a.items())


def compare(a: Any, b: Any, op: str, meter: Meter) -> bool:
    """Returns `a op b` for `<`, `<=`, `>` or `>=`, for numbers of any type or two values of one ordered type.

    Raises FunctionError for other values.
    """
    ta, tb = type(a), type(b)
    if not (ta in _NUMBERS and tb in _NUMBERS) and not (ta is tb and ta in _ORDERED):
        raise FunctionError(f"no overload of {op} for ({type_name(a)}, {type_name(b)})")
    if ta is str or ta is bytes:
        meter.charge(min(len(a), len(b)) // 10)
    elif ta is not tb:
        a, b = _exact(a, b), _exact(b, a)
    if op == "<":
        return bool(a < b)
    if op == "<=":
        return bool(a <= b)
    return bool(a > b) if op == ">" else bool(a >= b)


def contains(a: Any, b: Any, meter: Meter) -> bool:
    """Returns `a in b`: whether a is an element of a list or a key of a map. Raises FunctionError for another
    b.
    """
    if isinstance(b, (list, tuple)):
        meter.charge(len(b) // 4)
        if type(a) is str:
            return a in b
        return any(equals(a, item, meter) for item in b)
    if isinstance(b, Mapping):
        try:
            return to_key(a) in b
        except TypeError:
            return False
    raise FunctionError(f"no overload of in for ({type_name(a)}, {type_name(b)})")
