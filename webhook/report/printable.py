"""Replaces characters that are unsafe in a terminal or an XML file."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(
    "[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # marks that change the text direction
)


_BREAKS = re.compile("[\t\n\r]")


def printable_name(text: str) -> str:
    """Returns a name in which U+FFFD replaces tabs, line breaks and all characters that `printable` replaces.
    With a line break, a name could imitate another line of a report.
    """
    return _BREAKS.sub("\ufffd", printable(text))


def printable(text: str) -> str:
    """Returns the text with control characters (apart from tabs and line breaks), characters that XML does
    not allow, and marks that change the text direction replaced by U+FFFD.
    """
    return _UNPRINTABLE.sub("\ufffd", text)
