"""Phrases that several packages use in messages: counts, lists of names, long values, sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def counted(count: int, singular: str, plural: str = "") -> str:
    """Returns a number with its noun: "1 node", "2 nodes"."""
    return f"{count} {singular if count == 1 else plural or f'{singular}s'}"


def pods(count: int) -> str:
    """Returns a number of pods as text: "1 pod", "2 pods"."""
    return counted(count, "pod")


def listed(names: Sequence[str], limit: int = 8) -> str:
    """Returns the first `limit` names, separated by commas, and the number of further ones."""
    remainder = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + remainder


def shortened(text: str, limit: int) -> str:
    """Returns the text, or its beginning with an ellipsis, in at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def joined(parts: Iterable[str]) -> str:
    """Returns several messages in one line, without repetitions; a semicolon follows parts that do not end as
    a sentence.
    """
    text = ""
    for part in dict.fromkeys(filter(None, parts)):
        glue = "" if not text else " " if text.endswith((".", "!", "?")) else "; "
        text += glue + part
    return text
