"""int(), uint(), double(), string(), bytes(), bool(), timestamp(), duration()."""

from __future__ import annotations

import decimal
import math
import re
from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.temporal import (
    SECOND,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
    timestamp,
)
from webhook.cel.values.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_INT: Final = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_UINT: Final = re.compile(r"\d{1,20}", re.ASCII)
_DOUBLE: Final = re.compile(
    r"[+-]?(?:D(?:\.(?:D)?)?|\.D)(?:e[+-]?D)?|[+-]?inf(?:inity)?|nan".replace("D", r"\d+(?:_\d+)*"),
    re.ASCII | re.IGNORECASE,
)
"""The numbers of Go's strconv.ParseFloat, but for hexadecimal numbers."""
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise FunctionError("integer overflow")
    return int(value)


def _uint(value: int) -> UInt:
    if not 0 <= value <= UINT_MAX:
        raise FunctionError("unsigned integer overflow")
    return UInt(value)


def _int_of_double(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise FunctionError("double out of the range of int")
    return int(value)


def _uint_of_double(value: float) -> UInt:
    if not 0 <= value < 2.0**64:
        raise FunctionError("double out of the range of uint")
    return UInt(value)


def _parse(pattern: re.Pattern[str], text: str, kind: str) -> str:
    if pattern.fullmatch(text) is None:
        raise FunctionError(f"string is no {kind}")
    return text


def _double(text: str) -> float:
    number = float(_parse(_DOUBLE, text, "double"))
    if math.isinf(number) and any(map(str.isdigit, text)):
        raise FunctionError("string is out of the range of double")
    return number


def _bool(text: str) -> bool:
    if text not in _BOOLS:
        raise FunctionError("string is no bool")
    return _BOOLS[text]


def format_double(value: float) -> str:
    """Returns the shortest decimal form, as Go's `%g`: with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, _ = decimal.Decimal(repr(value)).normalize().as_tuple()
    power = decimal.Decimal(repr(value)).adjusted()
    if value == 0 or -4 <= power < 6:
        return plain_double(value)
    text = "".join(map(str, digits))
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"


def plain_double(value: float) -> str:
    """Returns the shortest decimal form without an exponent."""
    return f"{decimal.Decimal(repr(value)):f}".removesuffix(".0")


def decode(value: bytes) -> str:
    """Returns the text of UTF-8 bytes. Raises FunctionError for other bytes."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise FunctionError("bytes are not UTF-8") from None


def _unchanged(value: Any) -> Any:
    return value


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("int(int) -> int", _unchanged),
    overload("int(uint) -> int", _int),
    overload("int(double) -> int", _int_of_double),
    scanning("int(string) -> int", lambda text: _int(int(_parse(_INT, text, "int")))),
    overload("int(google.protobuf.Timestamp) -> int", lambda t: t.nanos // SECOND),
    overload("int(google.protobuf.Duration) -> int", lambda d: d.nanos),
    overload("uint(uint) -> uint", _unchanged),
    overload("uint(int) -> uint", _uint),
    overload("uint(double) -> uint", _uint_of_double),
    scanning("uint(string) -> uint", lambda text: _uint(int(_parse(_UINT, text, "uint")))),
    overload("double(double) -> double", _unchanged),
    overload("double(int|uint) -> double", float),
    scanning("double(string) -> double", _double),
    overload("string(string) -> string", _unchanged),
    overload("string(int|uint) -> string", lambda number: str(int(number))),
    overload("string(double) -> string", format_double),
    overload("string(bool) -> string", lambda flag: "true" if flag else "false"),
    scanning("string(bytes) -> string", decode),
    overload("string(google.protobuf.Timestamp) -> string", format_timestamp),
    overload("string(google.protobuf.Duration) -> string", format_duration),
    overload("bytes(bytes) -> bytes", _unchanged),
    scanning("bytes(string) -> bytes", lambda text: text.encode("utf-8")),
    overload("bool(bool) -> bool", _unchanged),
    overload("bool(string) -> bool", _bool),
    overload("timestamp(google.protobuf.Timestamp) -> google.protobuf.Timestamp", _unchanged),
    scanning("timestamp(string) -> google.protobuf.Timestamp", parse_timestamp),
    overload("timestamp(int) -> google.protobuf.Timestamp", lambda seconds: timestamp(seconds * SECOND)),
    overload("duration(google.protobuf.Duration) -> google.protobuf.Duration", _unchanged),
    scanning("duration(string) -> google.protobuf.Duration", parse_duration),
)
