"""Replaces characters that are unsafe in a terminal or an XML file."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(
    "[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # marks that change the text direction
)


_BREAKS = re.compile("[\t\n\r]")


def printable_name(text: str) -> str:
    """Does the same as `printable` for a name within a line. Line breaks are replaced too: otherwise a name
    could imitate another line of a report.
    """
    return _BREAKS.sub("\ufffd", printable(text))


def printable(text: str) -> str:
    """Replaces control characters, characters that XML does not allow, and direction marks by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)
