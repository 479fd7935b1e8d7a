"""Functions that are not in Kubernetes' base environment (math, base64, later string functions), and
`jsonpatch.escapeKey`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.budget import Meter
from webhook.cel.values.equality import compare
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import INT_MIN, UINT_MAX, UInt, type_name


def _extreme(op: str) -> Callable[..., Any]:
    def of(meter: Meter, *values: Any) -> Any:
        items = list(values[0]) if len(values) == 1 and isinstance(values[0], list) else list(values)
        meter.charge(len(items))
        if not items:
            raise FunctionError("an empty list has no extreme")
        for item in items:
            if type(item) not in (int, UInt, float):
                raise FunctionError(f"a number is needed, not {type_name(item)}")
        best = items[0]
        for item in items[1:]:
            if compare(item, best, op, meter):
                best = item
        return best

    return of


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


def _half_away(x: float) -> int:
    below = math.floor(abs(x))
    return below + 1 if abs(x) - below >= 0.5 else below


def _absolute(x: Any) -> Any:
    if type(x) is int and x == INT_MIN:
        raise FunctionError("integer overflow")
    return x if type(x) is UInt else abs(x)


def _sign(x: Any) -> Any:
    if type(x) is float:
        return x if math.isnan(x) else float((x > 0) - (x < 0))
    return type(x)((x > 0) - (x < 0))


def _left(x: Any, count: int) -> Any:
    if count < 0:
        raise FunctionError("a shift must not be negative")
    bits = (int(x) << count) & UINT_MAX if count < 64 else 0
    return UInt(bits) if type(x) is UInt else bits - 2**64 if bits >= 2**63 else bits


def _right(x: Any, count: int) -> Any:
    if count < 0:
        raise FunctionError("a shift must not be negative")
    bits = (int(x) & UINT_MAX) >> count if count < 64 else 0
    return UInt(bits) if type(x) is UInt else bits - 2**64 if bits >= 2**63 else bits


def _sqrt(x: Any) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _bits(function: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    return lambda a, b: type(a)(function(int(a), int(b)))


def _extremes(name: str, op: str) -> list[Overload]:
    of = _extreme(op)
    shapes = (", ".join(["int|uint|double"] * n) for n in range(2, 9))
    return [
        overload(f"math.{name}(int|uint|double|list) -> dyn", of, metered=True),
        *(overload(f"math.{name}({shape}) -> dyn", of, metered=True) for shape in shapes),
    ]


MATH: Final[tuple[Overload, ...]] = (
    *_extremes("greatest", ">"),
    *_extremes("least", "<"),
    overload("math.ceil(double) -> double", _whole(math.ceil)),
    overload("math.floor(double) -> double", _whole(math.floor)),
    overload("math.trunc(double) -> double", _whole(math.trunc)),
    overload("math.round(double) -> double", _whole(_half_away)),
    overload("math.abs(int|uint|double) -> dyn", _absolute),
    overload("math.sign(int|uint|double) -> dyn", _sign),
    overload("math.sqrt(int|uint|double) -> double", _sqrt),
    overload("math.isNaN(double) -> bool", math.isnan),
    overload("math.isInf(double) -> bool", math.isinf),
    overload("math.isFinite(double) -> bool", math.isfinite),
    *(
        overload(f"math.{name}({kind}, {kind}) -> {kind}", _bits(function))
        for kind in ("int", "uint")
        for name, function in (("bitAnd", int.__and__), ("bitOr", int.__or__), ("bitXor", int.__xor__))
    ),
    overload("math.bitNot(int) -> int", lambda x: ~x),
    overload("math.bitNot(uint) -> uint", lambda x: UInt(UINT_MAX ^ int(x))),
    overload("math.bitShiftLeft(int|uint, int) -> dyn", _left),
    overload("math.bitShiftRight(int|uint, int) -> dyn", _right),
)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise FunctionError("string is no base64") from None


BASE64: Final[tuple[Overload, ...]] = (
    scanning("base64.encode(bytes) -> string", lambda raw: base64.b64encode(raw).decode("ascii")),
    scanning("base64.decode(string) -> bytes", _decode),
)


MUTATIONS: Final[tuple[Overload, ...]] = (
    scanning("jsonpatch.escapeKey(string) -> string", lambda key: key.replace("~", "~0").replace("/", "~1")),
)
