"""Simulated jobs: sizes, lengths and arrivals by published traces. Pure: the random source is passed in.

Sizes: the shares of Microsoft's Philly trace for 1 to 32 GPUs, plus 3 % of large gangs, divided equally among
the powers of two from 64 to 1,024. Lengths: Philly's median, 90th and 99th percentile (1,144 s, 11,266 s,
254,884 s), interpolated on a logarithmic scale, from a minute to a week. Arrivals: uniform over the days.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, inf, log
from typing import Protocol

SMALL = {1: 93.2, 2: 2.2, 4: 2.3, 8: 2.0, 16: 0.24, 32: 0.08}
"""The percentage of jobs by their number of GPUs (Philly)."""


LARGE = (64, 128, 256, 512, 1024)
"""Sizes of large gangs in GPUs; all are equally frequent."""


LARGE_SHARE = 0.03
"""The share of large gangs among all jobs."""


LENGTHS = ((0.0, 60.0), (0.5, 1_144.0), (0.9, 11_266.0), (0.99, 254_884.0), (1.0, 604_800.0))
"""Points of the distribution of job lengths: quantile and seconds."""


DAY = 86_400.0


class RandomSource(Protocol):
    """A random source, such as `random.Random(seed)`."""

    def random(self) -> float:
        """Returns the next random number, 0 or more and below 1."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One gang: `pods` pods of `gpus` GPUs each. `number`: its index in order of arrival. `arrival`,
    `length`: its arrival and running time in seconds.
    """

    number: int
    pods: int
    gpus: int
    arrival: float
    length: float

    @property
    def total(self) -> int:
        """The number of GPUs of the whole gang."""
        return self.pods * self.gpus


def jobs(chance: RandomSource, *, gpus: int, per_node: int, days: float, load: float) -> tuple[Job, ...]:
    """Returns jobs, sorted by arrival, whose total GPU time is `load` times that of `gpus` GPUs over `days`.

    No job is larger than half the cluster. A job with at most the GPUs of a node is one pod; a larger one has
    pods that use a whole node each. Raises `ValueError` if `gpus` or `per_node` is below one, or if `days` or
    `load` is not a finite number above zero.
    """
    if gpus < 1 or per_node < 1 or not (0 < days < inf and 0 < load < inf):
        raise ValueError("GPUs, days and load must be above zero, and finite")
    sizes, shares = _sizes(gpus // 2)
    wanted = load * gpus * days * DAY
    drawn: list[tuple[int, float]] = []
    while wanted > 0:
        size = sizes[min(bisect(shares, chance.random() * shares[-1]), len(sizes) - 1)]
        length = _length(chance.random())
        drawn.append((size, length))
        wanted -= size * length
    arrivals = sorted(chance.random() * days * DAY for _ in drawn)
    return tuple(
        Job(number, max(1, size // per_node), min(size, per_node), arrival, length)
        for number, ((size, length), arrival) in enumerate(zip(drawn, arrivals, strict=True))
    )


def _sizes(max_gpus: int) -> tuple[list[int], list[float]]:
    """Returns the possible sizes in GPUs, and their cumulative weights."""
    small = {size: share * (1 - LARGE_SHARE) for size, share in SMALL.items() if size <= max_gpus}
    allowed = [size for size in LARGE if size <= max_gpus]
    large = {size: 100 * LARGE_SHARE / len(allowed) for size in allowed}
    table = {**small, **large} or {1: 1.0}
    return list(table), list(accumulate(table.values()))


def _length(share: float) -> float:
    """Returns the length at this quantile, in seconds."""
    for (low, short), (high, long) in pairwise(LENGTHS):
        if share <= high:
            return exp(log(short) + (share - low) / (high - low) * log(long / short))
    return LENGTHS[-1][1]


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the value at this quantile, 0 for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
