"""Suggests the correct spelling of a misspelt name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns "; did you mean …?" with the most similar of some names; "" if none is similar."""
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
