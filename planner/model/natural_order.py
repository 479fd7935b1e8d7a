"""The sort order of names: natural, so `r2` is before `r10`, and total, so results are deterministic."""

from __future__ import annotations

import re
from functools import lru_cache

_DIGITS = re.compile(r"(\d+)")

_NUMBER, _TEXT, _END = "\0", "\1", "\2"
"""The first characters of the parts of a key, in the order of what may follow the same beginning."""


@lru_cache(maxsize=262_144)  # more than a large cluster has nodes, label values and gangs
def natural(name: str) -> str:
    """Returns a sort key: runs of digits are compared by value, the rest as text, ties (`r1`, `r01`) by the
    whole name.

    The key is a string, because a tuple of its parts takes three times the memory, and the names of all gangs
    of the last weeks are kept.
    """
    parts = (_number(part) if part.isdecimal() else _TEXT + part for part in _DIGITS.split(name) if part)
    return "".join((*parts, _END, name))


def _number(digits: str) -> str:
    """Returns the part for a run of digits of any length: more significant digits are a larger number."""
    significant = digits.lstrip("0")
    return f"{_NUMBER}{chr(len(significant))}{significant}"
