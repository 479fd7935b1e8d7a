"""getFullYear(), getHours() and the other methods that return a part of a timestamp or duration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.values.temporal import SECOND, local_time
from webhook.cel.values.values import Duration, Timestamp

_PARTS: Final[dict[str, Callable[[dt.datetime], int]]] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDayOfWeek": lambda t: (t.weekday() + 1) % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
    "getMilliseconds": lambda t: t.microsecond // 1000,
}


def _toward_zero(value: Duration, unit: int) -> int:
    whole = abs(value.nanos) // unit
    return -whole if value.nanos < 0 else whole


def _part(name: str) -> tuple[Overload, Overload]:
    of = _PARTS[name]

    def in_zone(value: Timestamp, zone: str = "") -> int:
        moment, years = local_time(value, zone)
        return of(moment) + (years if name == "getFullYear" else 0)

    return (
        overload(f"<google.protobuf.Timestamp>.{name}() -> int", in_zone),
        overload(f"<google.protobuf.Timestamp>.{name}(string) -> int", in_zone),
    )


OVERLOADS: Final[tuple[Overload, ...]] = (
    *(entry for name in _PARTS for entry in _part(name)),
    overload("<google.protobuf.Duration>.getHours() -> int", lambda d: _toward_zero(d, 3600 * SECOND)),
    overload("<google.protobuf.Duration>.getMinutes() -> int", lambda d: _toward_zero(d, 60 * SECOND)),
    overload("<google.protobuf.Duration>.getSeconds() -> int", lambda d: _toward_zero(d, SECOND)),
    overload(
        "<google.protobuf.Duration>.getMilliseconds() -> int", lambda d: _toward_zero(d, SECOND // 1000)
    ),
)
