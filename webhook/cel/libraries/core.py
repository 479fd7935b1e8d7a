"""size(), type(), dyn(), and the string functions of the CEL specification."""

from __future__ import annotations

from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.values.budget import Meter
from webhook.cel.values.values import CelType, type_name


def _type_of(value: Any) -> CelType:
    name = type_name(value)
    return CelType("type" if name == "type" else name)


def _contains(meter: Meter, text: str, part: str) -> bool:
    if len(text) > 100:
        meter.charge(len(text) // 10)
    return part in text


OVERLOADS: Final[tuple[Overload, ...]] = (
    *(overload(f"size({kind}) -> int", len) for kind in ("string", "bytes", "list", "map")),
    *(overload(f"<{kind}>.size() -> int", len) for kind in ("string", "bytes", "list", "map")),
    overload("type(dyn) -> type", _type_of),
    overload("dyn(dyn) -> dyn", lambda value: value),
    overload("<string>.contains(string) -> bool", _contains, metered=True),
    overload("<string>.startsWith(string) -> bool", str.startswith),
    overload("<string>.endsWith(string) -> bool", str.endswith),
)
