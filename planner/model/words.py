"""Phrases that several packages use in messages: counts, lists of names, long values, sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{count} {singular if count == 1 else plural or f'{singular}s'}"


def pods(count: int) -> str:
    """A pod count in words."""
    return counted(count, "pod")


def listed(names: Sequence[str], limit: int = 8) -> str:
    """The first few names, and the number of further ones."""
    remainder = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + remainder


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning and an ellipsis: `limit` characters at most."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def joined(parts: Iterable[str]) -> str:
    """Several messages in one line, each once: sentences follow each other, other parts a semicolon."""
    text = ""
    for part in dict.fromkeys(filter(None, parts)):
        glue = "" if not text else " " if text.endswith((".", "!", "?")) else "; "
        text += glue + part
    return text
