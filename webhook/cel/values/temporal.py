"""Timestamps and durations: text forms, arithmetic and the parts of a date."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import INT_MAX, INT_MIN, Duration, Timestamp, type_name

SECOND: Final = 1_000_000_000


_EARLIEST: Final = -62_135_596_800 * SECOND
"""The first nanosecond of the year 1, in nanoseconds since 1970."""


_LATEST: Final = 253_402_300_800 * SECOND - 1
"""The last nanosecond of the year 9999."""


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


_UNITS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip


_SPAN: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


_OFFSET: Final = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)


def timestamp(nanos: int) -> Timestamp:
    """Returns a timestamp. Raises FunctionError outside of the years 1 to 9999."""
    if not _EARLIEST <= nanos <= _LATEST:
        raise FunctionError("timestamp out of range")
    return Timestamp(nanos)


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
    if sign:
        offset = (int(hours) * 60 + int(minutes)) * 60 * SECOND
        nanos -= offset if sign == "+" else -offset
    return timestamp(nanos)


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
    """Returns RFC 3339 text in UTC, without trailing zeros in the fraction."""
    seconds, nanos = divmod(value.nanos, SECOND)
    moment = _EPOCH + dt.timedelta(seconds=seconds)
    text = f"{moment.year:04}-{moment.month:02}-{moment.day:02}T{moment:%H:%M:%S}"
    return text + _fraction(nanos) + "Z"


def format_duration(value: Duration) -> str:
    """Returns the duration as text in seconds, such as `90s` or `-0.5s`."""
    seconds, nanos = divmod(abs(value.nanos), SECOND)
    return f"{'-' if value.nanos < 0 else ''}{seconds}{_fraction(nanos)}s"


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
        return timestamp(a.nanos + b.nanos)
    raise FunctionError(f"no overload of + for ({type_name(a)}, {type_name(b)})")


def subtract_times(a: Any, b: Any) -> Any:
    """Returns a timestamp minus a duration or a timestamp, or the difference of two durations.

    Raises FunctionError for other values.
    """
    if isinstance(a, Timestamp) and isinstance(b, Duration):
        return timestamp(a.nanos - b.nanos)
    if type(a) is type(b) and isinstance(a, (Timestamp, Duration)):
        return duration(a.nanos - b.nanos)
    raise FunctionError(f"no overload of - for ({type_name(a)}, {type_name(b)})")


@lru_cache(maxsize=256)  # anybody may name a zone: hence the bound
def _zone(name: str) -> dt.tzinfo:
    fixed = _OFFSET.fullmatch(name)
    try:
        if fixed:
            delta = dt.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
            return dt.timezone(-delta if fixed[1] == "-" else delta)
        return ZoneInfo(name) if name not in ("", "UTC") else dt.UTC
    except (ValueError, OSError, KeyError):
        raise FunctionError("unknown time zone") from None


def local_time(value: Timestamp, zone: str = "UTC") -> dt.datetime:
    """Returns the date and time of a timestamp in a named zone or at a fixed offset such as `-02:30`.

    Raises FunctionError for an unknown zone.
    """
    seconds, nanos = divmod(value.nanos, SECOND)
    try:
        moment = _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000)
        return moment.astimezone(_zone(zone))
    except OverflowError:
        raise FunctionError("timestamp out of range") from None
