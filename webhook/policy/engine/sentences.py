"""Several messages as one text: sentences follow each other, other parts are joined by semicolons."""

from __future__ import annotations

from collections.abc import Iterable


def joined(parts: Iterable[str]) -> str:
    """The parts, each once, in one line."""
    text = ""
    for part in dict.fromkeys(filter(None, parts)):
        glue = "" if not text else " " if text.endswith((".", "!", "?")) else "; "
        text += glue + part
    return text
