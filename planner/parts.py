"""Long rows in parts: what was worked out about a part is still good when another part has changed.

A root with 700 blocks would be walked from end to end for every plan. In parts, and these in parts again
while there are many, only the part with the change is looked at anew, and beside it each other part once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
WIDE, PART = 24, 12
"""The longest row that is left whole, and the length of a part."""


def in_parts(row: Sequence[T], join: Callable[[tuple[T, ...]], T]) -> tuple[T, ...]:
    """The row's parts, few enough to be looked at one by one; () where the row itself is.

    `join` makes one of several neighbours, of parts too. The parts hang on the row alone, so two rows of one
    length are divided alike.
    """
    if len(row) <= WIDE:
        return ()
    parts = tuple(row)
    while len(parts) > WIDE:
        parts = tuple([join(parts[start : start + PART]) for start in range(0, len(parts), PART)])
    return parts
