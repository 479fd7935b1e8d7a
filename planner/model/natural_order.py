"""The sort order of names: natural, so `r2` is before `r10`, and total, so results are deterministic."""

from __future__ import annotations

import re
from functools import lru_cache

_DIGITS = re.compile(r"(\d+)")


NaturalKey = tuple[tuple[int, int, str], ...]


@lru_cache(maxsize=262_144)  # more than a large cluster has nodes, label values and gangs
def natural(name: str) -> NaturalKey:
    """Returns a sort key: runs of digits are compared by value, the rest as text, ties (`r1`, `r01`) by the
    whole name.
    """
    parts = (_number(part) if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(name) if part)
    return (*parts, (2, 0, name))


def _number(digits: str) -> tuple[int, int, str]:
    """Returns the sort key of a run of digits of any length; Python reads at most 4,300 as a number."""
    significant = digits.lstrip("0")
    return 0, len(significant), significant
