"""The order of names: natural, so that `r2` comes before `r10`, and total, so that results are stable."""

from __future__ import annotations

import re
from functools import lru_cache

_DIGITS = re.compile(r"(\d+)")


NaturalKey = tuple[tuple[int, int, str], ...]


@lru_cache(maxsize=262_144)
def natural(name: str) -> NaturalKey:
    """A sort key: runs of digits by their value, the rest as text; ties (`r1`, `r01`) by the text itself."""
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(name) if part
    )
    return (*parts, (2, 0, name))
