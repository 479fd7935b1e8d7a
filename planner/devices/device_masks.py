"""Sets of devices as bit masks, and what a device consumes of the counters that it shares with others."""

from __future__ import annotations

from collections.abc import Iterator

CounterUse = tuple[tuple[int, int], ...]
"""What a device consumes: the index of a counter, and how much of it."""


def bits(mask: int) -> Iterator[int]:
    """The places of the bits of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
