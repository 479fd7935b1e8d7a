"""Cost limits: the highest cost of a sum with which a placement within the ceiling is still possible.

    racks with 72, 30, 24, 24 free GPUs; 128 pods of a GPU each

72 + 30 + 24 = 126, so 128 pods need four racks (`fewest`), although 128 / 72 suggests two. The first ceiling
is therefore the price of four racks. A sum that has used two racks for 54 pods leaves 74 pods, which need at
least two more racks (72 + 30): it is kept. A sum that has used three racks for 54 pods would end with five
racks: it is dropped.

In general, at each level the remaining pods need at least as many domains as if these were the largest
domains (`Peaks`). The ceilings begin with the fewest possible domains of every level. Most gangs have a
placement within the first ceiling, and then the search examines very few sums.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.search.pod_counts import Allowed, CountAlgebra, Measure, PodCount, SingleClassCounts

_MAX_LISTED = 4096
"""Maximum number of pods for which the allowed costs are computed for all numbers of pods at once, as a tuple
for each level. For more pods each value is computed on first use."""


@dataclass(frozen=True, slots=True)
class InnerLevels:
    """The levels inside a domain, from `first` (that of its children) to the hosts. By level: `prices`, the
    cost of one more domain; `peaks`, the maximum that one, two, … domains of the level hold."""

    first: int
    prices: Sequence[int]
    peaks: Sequence[Peaks]


class CostLimit:
    """The cost limits for one goal inside one domain, within a ceiling."""

    def __init__(self, counts: CountAlgebra, goal: PodCount, levels: InnerLevels, ceiling: int) -> None:
        self.goal, self.ceiling = goal, ceiling
        self._counts, self.first, self._prices, self._peaks = (
            counts,
            levels.first,
            levels.prices,
            levels.peaks,
        )
        need = counts.measure(goal)
        # By level, from the coarsest: the ceiling minus the cost of the fewest domains of all coarser levels.
        self._bases = [ceiling]
        for price, level_peaks in zip(levels.prices, levels.peaks, strict=True):
            self._bases.append(self._bases[-1] - price * fewest(need, level_peaks))
        self._allowed: dict[int, Allowed] = {}

    def allowed(self, level: int) -> Allowed:
        """Returns the highest allowed cost of each sum over domains of this level, without the costs of
        coarser domains."""
        remembered = self._allowed.get(level)
        if remembered is None:
            max_costs: Allowed = _MaxCosts(self, level)
            if self._listed():
                max_costs = self._max_costs(level)
            remembered = self._allowed[level] = max_costs
        return remembered

    def _listed(self) -> bool:
        """Reports whether the allowed costs of all numbers of pods are computed at once: a tuple is read
        faster than a dictionary.
        """
        return isinstance(self._counts, SingleClassCounts) and self.goal <= _MAX_LISTED

    def _max_costs(self, level: int) -> tuple[int, ...]:
        """Returns the same as `allowed` as a tuple over the number of pods of a single class."""
        place = level - self.first
        prices = [0] * (self.goal + 1)
        for price, needed in zip(self._prices[place:], self._needed(place), strict=True):
            prices = [paid + price * domains for paid, domains in zip(prices, needed, strict=True)]
        base = self._bases[place]
        return tuple([base - paid for paid in reversed(prices)])

    def _needed(self, place: int) -> Iterator[list[int]]:
        """Yields for each level the fewest domains for 0, 1, … pods of one class."""
        return (fewest_by_amount(self.goal, sums) for sums, *_ in self._peaks[place:])

    def max_cost(self, level: int, placed: PodCount) -> int:
        """Returns the same as `allowed` for a single sum, `placed`."""
        place = level - self.first
        remaining = self._counts.measure(self._counts.minus(self.goal, placed))
        levels = zip(self._prices[place:], self._peaks[place:], strict=True)
        return self._bases[place] - sum(
            price * fewest(remaining, level_peaks) for price, level_peaks in levels
        )

    def copies(self, level: int, start: int) -> int:
        """Returns how many domains of the level the ceiling allows inside a domain, if the sums over them
        begin with the cost `start`."""
        place = level - self.first
        price = self._prices[place]  # a level that exists only for rules costs nothing
        return max(0, self._bases[place] - start) // price if price else sys.maxsize


class _MaxCosts(dict[PodCount, int]):
    """The allowed costs of sums of a level, each computed on first use."""

    def __init__(self, limit: CostLimit, level: int) -> None:
        super().__init__()
        self._limit, self._level = limit, level

    def __missing__(self, placed: PodCount) -> int:
        max_cost = self[placed] = self._limit.max_cost(self._level, placed)
        return max_cost


def cost_limits(needed: Sequence[int], prices: Sequence[int], domains: int, floor: int = 0) -> Iterator[int]:
    """Yields the ceilings to search with: the cost of the fewest domains of each level (`needed`), then
    higher ones, at last one that no cost exceeds. The caller skips a ceiling that is not higher than an
    earlier one.

    `domains`: the maximum number of domains of a level. `floor`: a lower bound of the cost, 0 for none; with
    a floor, the first ceiling is the floor plus the price of one host.
    """
    if floor:
        yield floor + prices[-1]
    # A ceiling is one less than the cost of a further domain, so all less significant digits (`objective`)
    # may have any value. `gap`: how many domains of the level are allowed beyond those that are needed.
    yield sum(count * price for count, price in zip(needed, prices, strict=True)) + prices[-1] - 1
    for finest in range(max(0, len(prices) - 2), -1, -1):
        min_cost = sum(count * price for count, price in zip(needed[: finest + 1], prices, strict=False))
        gap = 0
        while needed[finest] + gap < domains:
            yield min_cost + (gap + 1) * prices[finest] - 1
            gap = 2 * gap or 1
    yield unlimited(prices)


def unlimited(prices: Sequence[int]) -> int:
    """Returns a ceiling that no cost exceeds."""
    return max(prices) << 64


Peaks = tuple[tuple[int, ...], ...]
"""For each measure, the maximum that one, two, … domains of a level hold together. The list may be shorter
than the number of domains: each further domain adds at most as much as the last one listed."""


_FEW = 3
"""Maximum number of domains for which `steady` rounds a peak up. For more domains a rounded peak would make
the bound too weak."""


def fewest(wanted: Measure, peaks: Peaks) -> int:
    """Returns the minimum number of domains that hold the wanted measure, by the peaks of their level."""
    domains = 0
    for amount, sums in zip(wanted, peaks, strict=True):
        highest = sums[-1]
        if not amount or not highest:
            continue
        if len(sums) == 1:
            need = -(-amount // highest)
        elif amount <= highest:
            need = bisect_left(sums, amount) + 1
        else:
            last = highest - sums[-2]  # what each further domain adds; the division rounds up
            need = len(sums) - (amount - highest) // -last
        if need > domains:
            domains = need
    return domains


def fewest_by_amount(max_pods: int, sums: Sequence[int]) -> list[int]:
    """Returns the fewest domains for 0, 1, … `max_pods` pods of a single class, consistent with `fewest`.

    `sums`: the peaks for pods. The difference of two sums is the number of pods that one more domain adds, so
    the result contains each number of domains that many times.
    """
    steps = list(map(int.__sub__, sums, (0, *sums)))
    if not steps[-1]:  # no domain holds a pod: no bound, as in `fewest`
        return [0] * (max_pods + 1)
    if max_pods > sums[-1]:
        steps += [steps[-1]] * -((sums[-1] - max_pods) // steps[-1])
    needed = [0]
    for domains, added in enumerate(steps, 1):
        needed += [domains] * added
    return needed[: max_pods + 1]


def single_peaks(peak: Measure) -> Peaks:
    """Returns the peaks of a level of which no domain holds more than `peak`."""
    return tuple([(amount,) for amount in peak])


def up_to(peaks: Peaks, need: Measure) -> Peaks:
    """Returns the peaks up to the first of each measure with which `need` is reached, lowered to the need.

    No larger peak changes a bound for `need` or less. So most blocks have the same peaks for a gang, and
    share a cost limit and all that is cached under it.
    """
    return tuple(
        [
            sums if sums[-1] < amount else (*sums[: bisect_left(sums, amount)], amount)
            for sums, amount in zip(peaks, need, strict=True)
        ]
    )


def steady(peak: Measure, need: Measure) -> Measure:
    """Returns the largest peak with which `need` takes as many domains as with this `peak`, if these are two
    to `_FEW`; else the peak itself.

    The number of pods that fit in the emptiest block changes often, and would invalidate every cached result
    that depends on it; the number of blocks that are needed rarely changes.
    """
    return tuple(
        max(highest, (amount - 1) // (-(-amount // highest) - 1))
        if highest and 1 < -(-amount // highest) <= _FEW
        else highest
        for amount, highest in zip(need, peak, strict=True)
    )
