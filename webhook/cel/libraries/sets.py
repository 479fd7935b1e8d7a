"""sets.contains(), sets.equivalent(), sets.intersects(), for lists."""

from __future__ import annotations

from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.values.budget import Meter
from webhook.cel.values.equality import equals


def _contains(meter: Meter, items: list[Any], subset: list[Any]) -> bool:
    meter.charge(len(items) * len(subset))
    return all(any(equals(item, other, meter) for item in items) for other in subset)


def _equivalent(meter: Meter, first: list[Any], second: list[Any]) -> bool:
    return _contains(meter, first, second) and _contains(meter, second, first)


def _intersects(meter: Meter, first: list[Any], second: list[Any]) -> bool:
    meter.charge(len(first) * len(second))
    return any(equals(item, other, meter) for item in first for other in second)


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("sets.contains(list, list) -> bool", _contains, metered=True),
    overload("sets.equivalent(list, list) -> bool", _equivalent, metered=True),
    overload("sets.intersects(list, list) -> bool", _intersects, metered=True),
)
