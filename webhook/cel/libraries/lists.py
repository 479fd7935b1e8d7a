"""Kubernetes' list functions and CEL's list extensions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from webhook.cel.compiler.comprehensions import sort_key
from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.compiler.operators import add
from webhook.cel.values.budget import Meter
from webhook.cel.values.equality import compare, equals
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import Duration, Timestamp, UInt, type_name

_HASHED: Final = frozenset({str, int})
_SORTED: Final = frozenset({bool, int, UInt, float, str, bytes, Timestamp, Duration})


def _is_sorted(meter: Meter, items: list[Any]) -> bool:
    meter.charge(len(items))
    return all(not compare(b, a, "<", meter) for a, b in pairwise(items))


def _sum(meter: Meter, items: list[Any]) -> Any:
    meter.charge(len(items))
    if not items:
        return 0
    total = items[0]
    if type(total) not in (int, UInt, float) and type_name(total) != "google.protobuf.Duration":
        raise FunctionError(f"sum() cannot add {type_name(total)}")
    for item in items[1:]:
        if type(item) is not type(total):
            raise FunctionError("sum() needs elements of one type")
        total = add(total, item)
    return total


def _extreme(meter: Meter, items: list[Any], op: str, name: str) -> Any:
    meter.charge(len(items))
    if not items:
        raise FunctionError(f"{name}() of an empty list")
    best = items[0]
    for item in items[1:]:
        if compare(item, best, op, meter):
            best = item
    return best


def _index_of(meter: Meter, items: list[Any], value: Any) -> int:
    meter.charge(len(items))
    return next((i for i, item in enumerate(items) if equals(item, value, meter)), -1)


def _last_index_of(meter: Meter, items: list[Any], value: Any) -> int:
    meter.charge(len(items))
    return next((i for i in reversed(range(len(items))) if equals(items[i], value, meter)), -1)


def _slice(meter: Meter, items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise FunctionError(f"slice() out of range of a list of {len(items)}")
    meter.charge((end - start) // 10)
    return items[start:end]


def _flatten(meter: Meter, items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise FunctionError("flatten() needs a depth of 0 or more")
    out: list[Any] = []
    meter.charge(len(items) + 1)
    for item in items:
        if isinstance(item, list) and depth > 0:
            out.extend(_flatten(meter, item, depth - 1))
        else:
            out.append(item)
    return out


def _distinct(meter: Meter, items: list[Any]) -> list[Any]:
    # A value of any other type may equal one of a different type (1.0 and 1), so all pairs are compared.
    if all(type(item) in _HASHED for item in items):
        meter.charge(len(items))
        return list(dict.fromkeys(items))
    meter.charge(len(items) * len(items))
    out: list[Any] = []
    for item in items:
        if not any(equals(item, other, meter) for other in out):
            out.append(item)
    return out


def _sort(meter: Meter, items: list[Any]) -> list[Any]:
    meter.charge(len(items) * (len(items).bit_length() + 1))
    if items and type(items[0]) not in _SORTED:
        raise FunctionError(f"sort() cannot compare {type_name(items[0])}")
    if items and any(type(item) is not type(items[0]) for item in items):
        raise FunctionError("sort() needs elements of one type")
    return sorted(items, key=sort_key(meter))


def _range(meter: Meter, count: int) -> list[int]:
    if count < 0:
        raise FunctionError("lists.range() needs 0 or more")
    meter.charge(count)
    return list(range(count))


def _reverse(meter: Meter, items: list[Any]) -> list[Any]:
    meter.charge(len(items) // 10)
    return items[::-1]


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("<list>.isSorted() -> bool", _is_sorted, metered=True),
    overload("<list>.sum() -> dyn", _sum, metered=True),
    overload("<list>.min() -> dyn", lambda meter, items: _extreme(meter, items, "<", "min"), metered=True),
    overload("<list>.max() -> dyn", lambda meter, items: _extreme(meter, items, ">", "max"), metered=True),
    overload("<list>.indexOf(dyn) -> int", _index_of, metered=True),
    overload("<list>.lastIndexOf(dyn) -> int", _last_index_of, metered=True),
    overload("<list>.slice(int, int) -> list", _slice, metered=True),
    overload("<list>.flatten() -> list", _flatten, metered=True),
    overload("<list>.flatten(int) -> list", _flatten, metered=True),
    overload("<list>.distinct() -> list", _distinct, metered=True),
    overload("<list>.sort() -> list", _sort, metered=True),
    overload("<list>.reverse() -> list", _reverse, metered=True),
    overload("lists.range(int) -> list", _range, metered=True),
)
