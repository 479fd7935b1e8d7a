"""String extensions, version 2 (Kubernetes), with format() and strings.quote()."""

from __future__ import annotations

import string as ascii_tables
from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.libraries.formatting import format_string
from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import FunctionError

_LOWER: Final = str.maketrans(ascii_tables.ascii_uppercase, ascii_tables.ascii_lowercase)
_UPPER: Final = str.maketrans(ascii_tables.ascii_lowercase, ascii_tables.ascii_uppercase)
# Unicode's White_Space property, which Go's TrimSpace uses; Python's strip() also removes \x1c to \x1f.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise FunctionError(f"charAt() index {index} out of range")
    return text[index : index + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Returns the first place of a part from an offset on, -1 if there is none. An empty part is at the
    offset itself (cel-go, ext/strings.go). Raises FunctionError for a negative offset.
    """
    if start < 0:
        raise FunctionError(f"indexOf() offset {start} out of range")
    return text.find(part, start) if part else min(start, len(text))


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Returns the last place of a part that does not begin after an offset, as `index_of`. Behind the end of
    the text is none.
    """
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise FunctionError(f"lastIndexOf() offset {start} out of range")
    if not part:
        return min(start, len(text))
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= last <= len(text):
        raise FunctionError("substring() out of range")
    return text[start:last]


def _replace(meter: Meter, text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if limit < 0 else min(limit, text.count(old))
    meter.charge((len(text) + count * len(new)) // 10)
    return text.replace(old, new, limit)


def _split(meter: Meter, text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    meter.charge(len(text) // 10)
    if separator == "":
        parts = list(text) if limit < 0 or limit >= len(text) else [*text[: limit - 1], text[limit - 1 :]]
    else:
        parts = text.split(separator, limit - 1 if limit > 0 else -1)
    meter.charge(len(parts) // 4)
    return parts


def _join(meter: Meter, items: list[Any], separator: str = "") -> str:
    if not all(type(item) is str for item in items):
        raise FunctionError("join() needs a list of strings")
    meter.charge((sum(map(len, items)) + len(separator) * len(items)) // 10)
    return separator.join(items)


def quote(text: str) -> str:
    """Returns the string in double quotes, with the characters of `_QUOTED` escaped as in a CEL literal.

    A lone surrogate becomes "?": it has no UTF-8 encoding, so no response could contain it.
    """
    clean = text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text
    return f'"{clean.translate(_QUOTED)}"'


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("<string>.charAt(int) -> string", _char_at),
    scanning("<string>.indexOf(string) -> int", index_of),
    scanning("<string>.indexOf(string, int) -> int", index_of),
    scanning("<string>.lastIndexOf(string) -> int", last_index_of),
    scanning("<string>.lastIndexOf(string, int) -> int", last_index_of),
    scanning("<string>.lowerAscii() -> string", lambda text: text.translate(_LOWER)),
    scanning("<string>.upperAscii() -> string", lambda text: text.translate(_UPPER)),
    overload("<string>.replace(string, string) -> string", _replace, metered=True),
    overload("<string>.replace(string, string, int) -> string", _replace, metered=True),
    overload("<string>.split(string) -> list", _split, metered=True),
    overload("<string>.split(string, int) -> list", _split, metered=True),
    scanning("<string>.substring(int) -> string", _substring),
    scanning("<string>.substring(int, int) -> string", _substring),
    scanning("<string>.trim() -> string", lambda text: text.strip(_SPACE)),
    overload("<list>.join() -> string", _join, metered=True),
    overload("<list>.join(string) -> string", _join, metered=True),
    overload("<string>.format(list) -> string", format_string, metered=True),
    scanning("strings.quote(string) -> string", quote),
)
