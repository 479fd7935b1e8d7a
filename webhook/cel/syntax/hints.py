"""What a misspelt name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean …?` for a name that resembles a known one."""
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
