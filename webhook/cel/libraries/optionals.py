"""optional.of(), optional.none(), and the methods of optional values."""

from __future__ import annotations

from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.temporal import EARLIEST
from webhook.cel.values.values import ABSENT, Duration, Optional, Timestamp


def is_zero(value: Any) -> bool:
    """Returns whether a value is the zero value of its type: that of a field that is not set."""
    if isinstance(value, Timestamp):
        return value.nanos == EARLIEST  # Go's zero time is in the year 1
    if isinstance(value, Duration):
        return value.nanos == 0
    return (
        value is None or value in (False, 0, 0.0, "", b"") or (isinstance(value, (list, dict)) and not value)
    )


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise FunctionError("optional.none() has no value")
    return optional.value


def _unwrap(items: list[Any]) -> list[Any]:
    return [item.value for item in items if isinstance(item, Optional) and item.present]


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("optional.of(dyn) -> optional_type", Optional),
    overload(
        "optional.ofNonZeroValue(dyn) -> optional_type", lambda v: ABSENT if is_zero(v) else Optional(v)
    ),
    overload("optional.none() -> optional_type", lambda: ABSENT),
    overload("optional.unwrap(list) -> list", _unwrap),
    overload("<list>.unwrapOpt() -> list", _unwrap),
    overload("<optional_type>.hasValue() -> bool", lambda o: o.present),
    overload("<optional_type>.value() -> dyn", _value),
    overload("<optional_type>.or(optional_type) -> optional_type", lambda a, b: a if a.present else b),
    overload("<optional_type>.orValue(dyn) -> dyn", lambda a, b: a.value if a.present else b),
    overload("<list>.first() -> optional_type", lambda items: Optional(items[0]) if items else ABSENT),
    overload("<list>.last() -> optional_type", lambda items: Optional(items[-1]) if items else ABSENT),
)
