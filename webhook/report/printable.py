"""What a text may hold that is shown to a person or stands in a file."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(
    "[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # marks that turn the direction of what follows
)


_BREAKS = re.compile("[\t\n\r]")


def printable_name(text: str) -> str:
    """The same of what stands in a line: nobody's name begins another, as one of a report may look."""
    return _BREAKS.sub("\ufffd", printable(text))


def printable(text: str) -> str:
    """The text with U+FFFD for what could steer a terminal, is not allowed in XML, or turns other text."""
    return _UNPRINTABLE.sub("\ufffd", text)
