"""Sets of devices as bit masks, and what a device consumes of the counters that it shares with others."""

from __future__ import annotations

from collections.abc import Iterator

CounterUse = tuple[tuple[int, int], ...]
"""What a device consumes of counters: pairs of a counter's index (in `NodeDevices.counters`, or renumbered in
a `Partition`) and an amount.
"""


def bits(mask: int) -> Iterator[int]:
    """Yields the positions of the bits that are set, in ascending order."""
    while mask:
        low = mask & -mask  # the lowest bit that is set
        yield low.bit_length() - 1
        mask ^= low
