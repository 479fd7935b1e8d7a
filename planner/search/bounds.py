"""How far a search looks: the most that sums may cost so that a placement within a ceiling can come of them.

    racks with 72, 30, 24, 24 free GPUs; 128 pods of a GPU each

72 + 30 + 24 are 126: the pods need four racks (`fewest`), though 128 / 72 says two. The first ceiling to try
is thus the price of four racks. A sum that has used two racks for 54 pods leaves 74, which need two more at
the least (72 + 30): it is kept. One that has used three racks for 54 pods leaves as many, and would end with
five racks: it is dropped.

So at each level the pods that are left need at least as many domains as the fullest ones would do (`Peaks`).
Ceilings begin with the fewest domains of every level that there can be; most gangs have a place with these,
and then hardly anything is looked at.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from planner.search.pod_counts import Allowed, CountAlgebra, Measure, PodCount, SingleClassCounts

_MOST_LISTED = 4096
"""Pods up to which what sums may cost is worked out for all numbers at once, a list a level; of more pods,
as read."""


class CostLimit:
    """One goal in one domain, whose children are of level `first`; the prices and tops are those of the
    levels from there to the hosts: of one more domain, and the most that some hold."""

    def __init__(
        self,
        counts: CountAlgebra,
        goal: PodCount,
        first: int,
        prices: Sequence[int],
        tops: Sequence[Peaks],
        ceiling: int,
    ) -> None:
        self.goal, self.ceiling = goal, ceiling
        self._counts, self.first, self._prices, self._tops = counts, first, prices, tops
        need = counts.measure(goal)
        self._bases = [ceiling]
        for price, top in zip(prices, tops, strict=True):
            self._bases.append(self._bases[-1] - price * fewest(need, top))
        self._allowed: dict[int, Allowed] = {}

    def allowed(self, level: int) -> Allowed:
        """By the pods placed the most that the domains of this level and finer ones may have cost so far."""
        found = self._allowed.get(level)
        if found is None:
            made: Allowed = _Remembered(self, level)
            if self._listed(level):
                made = [self.most(level, counts) for counts in range(self.goal + 1)]
            found = self._allowed[level] = made
        return found

    def _listed(self, level: int) -> bool:
        """Whether all numbers of pods are worked out at once: a list is read faster than a dictionary."""
        return isinstance(self._counts, SingleClassCounts) and self.goal <= _MOST_LISTED

    def most(self, level: int, placed: PodCount) -> int:
        """See `allowed`, for one sum."""
        place = level - self.first
        left = self._counts.measure(self._counts.minus(self.goal, placed))
        ahead = zip(self._prices[place:], self._tops[place:], strict=True)
        return self._bases[place] - sum(price * fewest(left, top) for price, top in ahead)

    def copies(self, level: int, start: int) -> int:
        """Domains of the level that can be paid for inside one whose own digits cost `start`."""
        place = level - self.first
        price = self._prices[place]  # nothing, of a level that only rules look at
        return max(0, self._bases[place] - start) // price if price else sys.maxsize


class _Remembered(dict[PodCount, int]):
    """What sums of a level may cost, each worked out when it is first read."""

    def __init__(self, limit: CostLimit, level: int) -> None:
        super().__init__()
        self._limit, self._level = limit, level

    def __missing__(self, placed: PodCount) -> int:
        most = self[placed] = self._limit.most(self._level, placed)
        return most


def cost_limits(needed: Sequence[int], prices: Sequence[int], domains: int, floor: int = 0) -> Iterator[int]:
    """Ceilings to try, ascending: the fewest domains of each level (`needed`), then more; at last any cost.

    `domains`: there are no more of any level, so more need not be allowed for. `floor`: nothing costs less,
    and a host more may do; only ceilings above that are of use.
    """
    if floor:
        yield floor + prices[-1]
    yield sum(count * price for count, price in zip(needed, prices, strict=True)) + prices[-1] - 1
    for finest in range(max(0, len(prices) - 2), -1, -1):
        least = sum(count * price for count, price in zip(needed[: finest + 1], prices, strict=False))
        gap = 0
        while needed[finest] + gap < domains:
            yield least + (gap + 1) * prices[finest] - 1
            gap = 2 * gap or 1
    yield unlimited(prices)


def unlimited(prices: Sequence[int]) -> int:
    """A ceiling that nothing passes."""
    return max(prices) << 64


Peaks = tuple[tuple[int, ...], ...]
"""By what is measured, the most that one, two, … domains of a level hold together. Of further ones none
holds more than the last that is listed; where that holds nothing, none does."""


_FEW = 3
"""Domains up to which `steady` rounds a peak up. Of more domains a rounded peak would bound them too
weakly."""


def fewest(wanted: Measure, tops: Peaks) -> int:
    """Domains that hold what is wanted at the least, for the tops of their level."""
    found = 0
    for much, sums in zip(wanted, tops, strict=True):
        highest = sums[-1]
        if not much or not highest:
            continue
        if len(sums) == 1:
            need = -(-much // highest)
        elif much <= highest:
            need = bisect_left(sums, much) + 1
        else:
            last = highest - sums[-2]
            need = len(sums) - (much - highest) // -last
        if need > found:
            found = need
    return found


def single_peaks(peak: Measure) -> Peaks:
    """The tops where no domain holds more than this."""
    return tuple([(one,) for one in peak])


def steady(peak: Measure, need: Measure) -> Measure:
    """The largest peak that bounds the number of domains alike, where that is a small one.

    What the fullest of some blocks holds changes with many a pod, and with it all that a limit is good for;
    that two of them are needed hardly ever does.
    """
    return tuple(
        max(most, (much - 1) // (-(-much // most) - 1)) if most and 1 < -(-much // most) <= _FEW else most
        for much, most in zip(need, peak, strict=True)
    )
