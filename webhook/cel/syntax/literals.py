"""String, bytes and number literals, by the CEL specification's lexical rules."""

from __future__ import annotations

import re
from typing import Final

from webhook.cel.values.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_SIMPLE: Final = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11,
    "\\": 92, "'": 39, '"': 34, "`": 96, "?": 63,
}  # fmt: skip


_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.?))",
    re.DOTALL,
)


class LiteralError(ValueError):
    """A literal without a value, such as an integer out of range."""


def _split(token: str) -> tuple[bool, bool, str]:
    """Returns whether a literal is raw, whether it is bytes, and the text between its quotes."""
    start = 0
    while token[start] not in "'\"":
        start += 1
    prefix = token[:start].lower()
    quotes = 3 if len(token) - start >= 6 and token[start] * 3 == token[start : start + 3] else 1
    return "r" in prefix, "b" in prefix, token[start + quotes : len(token) - quotes]


def string(token: str) -> str:
    """Returns the string of a STRING_LIT token. Raises LiteralError for an invalid escape sequence."""
    raw, _, body = _split(token)
    if "\r" in body:
        body = body.replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        return body
    return _ESCAPE.sub(lambda m: _character(m), body)


def _character(match: re.Match[str]) -> str:
    simple, byte, short, long, octal, bad = match.groups()
    if simple:
        return chr(_SIMPLE[simple])
    if bad is not None:
        raise LiteralError(f"unknown escape sequence \\{bad}")
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("escape sequence is no Unicode code point")
    return chr(code)


def byte_string(token: str) -> bytes:
    """Returns the bytes of a BYTES_LIT token: \\x and octal escapes are bytes, everything else is UTF-8."""
    raw, _, body = _split(token)
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    out = bytearray()
    end = 0
    for match in _ESCAPE.finditer(body):
        out += body[end : match.start()].encode("utf-8", "surrogatepass")
        end = match.end()
        simple, byte, short, long, octal, _ = match.groups()
        if byte or octal:
            out.append(int(byte, 16) if byte else int(octal, 8))
        elif simple:
            out.append(_SIMPLE[simple])
        elif short or long:
            out += _character(match).encode("utf-8")
        else:
            _character(match)
    return bytes(out + body[end:].encode("utf-8", "surrogatepass"))


def integer(token: str) -> int:
    """Returns the value of an INT_LIT token. Raises LiteralError if it is not an int64."""
    value = _number(token)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("integer literal out of range")
    return value


def unsigned(token: str) -> UInt:
    """Returns the value of a UINT_LIT token. Raises LiteralError if it is not a uint64."""
    value = _number(token[:-1])
    if not 0 <= value <= UINT_MAX:
        raise LiteralError("unsigned integer literal out of range")
    return UInt(value)


def _number(token: str) -> int:
    if len(token) > 40:  # checked first: Python's int() refuses a very long text, with another error
        raise LiteralError("integer literal out of range")
    return int(token, 16) if "x" in token.lower() else int(token)
