"""Timestamps and durations: text forms, arithmetic and the parts of a date."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import INT_MAX, INT_MIN, Duration, Timestamp, type_name

SECOND: Final = 1_000_000_000


EARLIEST: Final = -62_135_596_800 * SECOND
"""The first nanosecond of the year 1, in nanoseconds since 1970."""


_LATEST: Final = 253_402_300_800 * SECOND - 1
"""The last nanosecond of the year 9999."""


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?"
    r"(?:Z|([+-])([01]\d|2[0-4]):([0-5]\d|60))",
    re.ASCII,
)
"""RFC 3339 as Go's time.Parse takes it: capital letters, a comma, an hour of one digit, offsets to 24:60."""


_UNITS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip


_SPAN: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


_OFFSET: Final = re.compile(r"([+-]?\d{1,4}):([+-]?\d{1,4})", re.ASCII)
_CYCLE: Final = 146_097
"""Days of 400 years, after which dates and days of the week recur."""


def timestamp(nanos: int, offset: int = 0) -> Timestamp:
    """Returns a timestamp; its text form is in a zone of this offset, in seconds.

    Raises FunctionError outside of the years 1 to 9999.
    """
    if not EARLIEST <= nanos <= _LATEST:
        raise FunctionError("timestamp out of range")
    return Timestamp(nanos, offset)


def duration(nanos: int) -> Duration:
    """Returns a duration. Raises FunctionError if it is not an int64."""
    if not INT_MIN <= nanos <= INT_MAX:
        raise FunctionError("duration out of range")
    return Duration(nanos)


def parse_timestamp(text: str) -> Timestamp:
    """Returns the timestamp of an RFC 3339 date and time. Raises FunctionError for any other text."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise FunctionError("timestamp() needs an RFC 3339 time")
    *whole, fraction, sign, hours, minutes = match.groups()
    try:
        moment = dt.datetime(*map(int, whole), tzinfo=dt.UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        raise FunctionError("timestamp() needs a date that exists, in the years 1 to 9999") from None
    nanos = _seconds(moment) * SECOND + int((fraction or "").ljust(9, "0"))
    offset = (int(hours) * 60 + int(minutes)) * 60 * (-1 if sign == "-" else 1) if sign else 0
    return timestamp(nanos - offset * SECOND, offset)


def _seconds(moment: dt.datetime) -> int:
    delta = moment - _EPOCH
    return delta.days * 86_400 + delta.seconds


def parse_duration(text: str) -> Duration:
    """Returns a duration from Go's text form: `1h30m`, `-1.5s`, `0`. Raises FunctionError for any
    other text.
    """
    sign = -1 if text[:1] == "-" else 1
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(body):
        match = _SPAN.match(body, position)
        if match is None or not (match[1] or match[2]) or len(match[0]) > 60:
            raise FunctionError("duration() needs a form such as '1h30m' or '90s'")
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        position = match.end()
    if not body:
        raise FunctionError("duration() needs a form such as '1h30m' or '90s'")
    return duration(sign * total)


def format_timestamp(value: Timestamp) -> str:
    """Returns RFC 3339 text in the timestamp's zone, without trailing zeros in the fraction."""
    moment, years = _shifted(value, dt.timedelta(seconds=value.offset))
    text = f"{moment.year + years:04}-{moment.month:02}-{moment.day:02}T{moment:%H:%M:%S}"
    hours, minutes = divmod(abs(value.offset) // 60, 60)
    zone = f"{'-' if value.offset < 0 else '+'}{hours:02}:{minutes:02}" if value.offset else "Z"
    return text + _fraction(value.nanos % SECOND) + zone


def format_duration(value: Duration) -> str:
    """Returns the duration as text in seconds, such as `90s` or `-0.5s`: that of a double, as cel-go does."""
    seconds, nanos = divmod(abs(value.nanos), SECOND)
    number = Decimal(repr(seconds + nanos / SECOND))
    return f"{'-' if value.nanos < 0 else ''}{number:f}".removesuffix(".0") + "s"


def _fraction(nanos: int) -> str:
    return f".{nanos:09}".rstrip("0") if nanos else ""


def add_times(a: Any, b: Any) -> Any:
    """Returns the sum of a timestamp and a duration (in either order), or of two durations.

    Raises FunctionError for other values.
    """
    if isinstance(a, Duration) and isinstance(b, Duration):
        return duration(a.nanos + b.nanos)
    if isinstance(a, Duration) and isinstance(b, Timestamp):
        a, b = b, a
    if isinstance(a, Timestamp) and isinstance(b, Duration):
        return timestamp(a.nanos + b.nanos, a.offset)
    raise FunctionError(f"no overload of + for ({type_name(a)}, {type_name(b)})")


def subtract_times(a: Any, b: Any) -> Any:
    """Returns a timestamp minus a duration or a timestamp, or the difference of two durations.

    Raises FunctionError for other values.
    """
    if isinstance(a, Timestamp) and isinstance(b, Duration):
        return timestamp(a.nanos - b.nanos, a.offset)
    if type(a) is type(b) and isinstance(a, (Timestamp, Duration)):
        return duration(a.nanos - b.nanos)
    raise FunctionError(f"no overload of - for ({type_name(a)}, {type_name(b)})")


@lru_cache(maxsize=256)  # anybody may name a zone: hence the bound
def _zone(name: str) -> dt.timedelta | ZoneInfo:
    """Returns a zone, or the offset that a text such as `-02:30` stands for."""
    fixed = _OFFSET.fullmatch(name)
    try:
        if fixed:
            # As cel-go: the sign of the hours holds for the minutes, so `-00:30` is half an hour east of UTC.
            hours, minutes = int(fixed[1]), int(fixed[2])
            return dt.timedelta(hours=hours, minutes=-minutes if hours < 0 else minutes)
        return ZoneInfo(name) if name not in ("", "UTC", "Local") else dt.timedelta()
    except (ValueError, OSError, KeyError):
        raise FunctionError("unknown time zone") from None


def _shifted(value: Timestamp, offset: dt.timedelta) -> tuple[dt.datetime, int]:
    """Returns the date and time at an offset, and the years to add to it: Python's dates end with the year
    9999, and those of other zones do not.
    """
    seconds, nanos = divmod(value.nanos, SECOND)
    cycles = 1 if seconds < 0 else -1
    moment = _EPOCH + dt.timedelta(cycles * _CYCLE, seconds, nanos // 1000)
    return (moment + offset).replace(tzinfo=None), -400 * cycles


def local_time(value: Timestamp, zone: str = "") -> tuple[dt.datetime, int]:
    """Returns the date and time of a timestamp, and the years to add to it. The zone is that of a name, at an
    offset such as `-02:30`, or UTC.

    Raises FunctionError for an unknown zone.
    """
    where = _zone(zone)
    if isinstance(where, dt.timedelta):
        return _shifted(value, where)
    seconds, nanos = divmod(value.nanos, SECOND)
    try:
        moment = _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000)
        return moment.astimezone(where), 0
    except OverflowError:
        # At the ends of the calendar a zone has the offset that it has a day further inside.
        inside = _EPOCH + dt.timedelta(seconds=seconds + (-86_400 if seconds > 0 else 86_400))
        return _shifted(value, inside.astimezone(where).utcoffset() or dt.timedelta())
