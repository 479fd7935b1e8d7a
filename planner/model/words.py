"""Phrases that several packages use in messages: counts, lists of names, long values."""

from __future__ import annotations

from collections.abc import Sequence


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
