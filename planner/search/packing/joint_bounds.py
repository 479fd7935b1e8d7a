"""Lower bounds of the number of domains that some pods need, computed for two neighbouring levels at once.

    1 block of racks with 12, 12, 12 free nodes          10 blocks of racks with 18, 4, 4 free nodes

60 pods of a whole node each need two blocks: 36 + 26. By the bound of the rack level alone (`bounds`), four
racks of 18 nodes are enough. But any *two* blocks have at best the racks 18, 12, 12, 12, 4, 4: all six are
needed.

To prove this without trying every pair of blocks, subtract a *toll* from each used rack, here 4 pods. The
*surplus* of a block is the maximum that its racks hold above their tolls: 3 * (12 - 4) = 24 for the first
block, 18 - 4 = 14 for each other one. So r racks in two blocks hold at most 4 r + 24 + 14 pods, and 60 pods
need (60 - 38) / 4 racks, rounded up: six. Each toll gives a valid bound; the largest bound is used. (This is
a Lagrangian relaxation. On half-used clusters of 9,216 nodes it gave the true number of racks in all measured
samples; the bound of the rack level alone was up to 20 racks too low.)

`LimitsByClass` has the cost limits of searches inside domains, with one of three kinds of bounds:

    separate           each level alone (`bounds`)
    largest domains    two neighbouring levels, as if each domain held as much as the largest one
    joint              two neighbouring levels, by what each domain holds

Each kind proves at least as many domains as the one before it, so the search drops more sums, but it changes
more often when a pod comes or goes. Bounds of two levels are valid for a single pod class only.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from typing import NamedTuple

from planner.search.objective import Weights
from planner.search.packing.bounds import (
    CostLimit,
    InnerLevels,
    Peaks,
    fewest,
    single_peaks,
    steady,
    unlimited,
    up_to,
)
from planner.search.packing.capacity_classes import MAX_LISTED, CapacityClasses, DomainClasses
from planner.search.pod_counts import CountAlgebra, Measure, PodCount

_MAX_TOLLS = 64
"""Maximum number of tolls of a level, spread evenly over the useful ones. Fewer tolls make the bounds weaker,
but not wrong. Pods of one GPU on racks of 72 GPUs have up to 72 useful tolls, and the time grows with the
number of tolls (4 to 8 ms with 18 tolls on 9,216 nodes)."""


_DOMAINS = 2**32
"""More domains than a cluster has."""

_MAX_LIMITS = 512
"""Maximum number of limits that are kept: one for thousands of pods takes 100 KB, and others are needed when
the largest domains change."""

Surpluses = tuple[tuple[int, int], ...]
"""Tolls, each with the largest surplus of a domain."""


@dataclass(frozen=True, slots=True)
class LevelPairBound:
    """The joint bound of a level and the next finer one. `surplus`: by toll, the total surplus of the 0, 1,
    2, … domains of the level with the largest surplus."""

    surplus: tuple[tuple[int, Sequence[int]], ...]
    _best_tolls: dict[int, _BestTolls] = field(default_factory=dict, compare=False)

    def fewest_finer(self, domains: int, pods: int) -> int:
        """Returns a lower bound of the domains of the finer level that the pods need in `domains` domains of
        the level.
        """
        best = self._best_tolls.get(domains)
        if best is None:
            held_above = [(toll, held[min(domains, len(held) - 1)]) for toll, held in self.surplus]
            best = self._best_tolls[domains] = _best_tolls(held_above)
        toll, held = best.tolls[bisect_right(best.starts, pods)]
        return -((held - pods) // toll)


class _BestTolls(NamedTuple):
    """The toll with the largest bound for each number of pods: `tolls[0]` below `starts[0]` pods, and so on.

    For one toll the bound is a line over the number of pods, steeper for lower tolls. Each toll is therefore
    best in one interval, and a single toll is evaluated instead of 64.
    """

    starts: list[int]
    tolls: list[tuple[int, int]]


def _best_tolls(held_above: Iterable[tuple[int, int]]) -> _BestTolls:
    """Returns the best tolls. `held_above`: tolls, each with the surplus. Goes from the flattest line to the
    steepest, and drops lines that are nowhere the highest.
    """
    starts: list[int] = []
    tolls = [(sys.maxsize, sys.maxsize - 1)]  # gives the bound 0 for any number of pods
    for toll, held in sorted(held_above, reverse=True):
        while True:
            flatter, held_flatter = tolls[-1]
            start = -((held_flatter * toll - held * flatter) // (flatter - toll))
            if not starts or start > starts[-1]:
                break
            starts.pop()
            tolls.pop()
        starts.append(start)
        tolls.append((toll, held))
    return _BestTolls(starts, tolls)


Bounds = tuple[LevelPairBound, ...]


def level_pair_bounds(classes: CapacityClasses, class_id: int) -> Bounds:
    """Returns the bounds for each level inside a domain of the class and the next finer one."""
    level: Mapping[int, int] = _domains_inside(classes, {class_id: 1})
    bounds: list[LevelPairBound] = []
    while any(classes.domain_classes[domain] for domain in level):
        bounds.append(_pair_bound(classes, level))
        level = _domains_inside(classes, level)
    return tuple(bounds)


def _domains_inside(classes: CapacityClasses, domains: Mapping[int, int]) -> Counter[int]:
    """Returns by capacity class the number of children of these domains; `domains`: their number by class.
    The children of a chunk count as children of its domain.
    """
    inside: Counter[int] = Counter()
    for domain, copies in domains.items():
        domain_class = classes.domain_classes[domain]
        for child, times in Counter(domain_class.children if domain_class else ()).items():
            child_class = classes.domain_classes[child]
            if child_class and child_class.is_chunk:
                for grandchild, number in _domains_inside(classes, {child: copies * times}).items():
                    inside[grandchild] += number
            else:
                inside[child] += copies * times
    return inside


def _pair_bound(classes: CapacityClasses, domains: Mapping[int, int]) -> LevelPairBound:
    holds: Counter[tuple[int, ...]] = Counter()
    for domain, copies in domains.items():
        (held,) = classes.maximum(domain)
        (finer, *_) = classes.highest.inner_peaks(classes, domain) or [((held,),)]
        holds[tuple([min(sums, held) for sums in finer[0]])] += copies
    return LevelPairBound(tuple([(toll, _best_surpluses(holds, toll)) for toll in _tolls(list(holds))]))


def _tolls(holds: Sequence[tuple[int, ...]]) -> list[int]:
    """Returns the useful tolls, ascending: the numbers of pods that one more finer domain can add. One of
    these tolls gives the largest bound.

    A list of `MAX_LISTED` sums may go on with additions as large as its last one. A toll below that addition
    would miss their surplus, and the bound would be wrong, so such tolls are left out.
    """
    added = {sums[0] for sums in holds}
    lowest = 1
    for sums in holds:
        added.update(map(int.__sub__, sums[1:], sums))
        if len(sums) >= MAX_LISTED:
            lowest = max(lowest, sums[-1] - sums[-2])
    useful = sorted(toll for toll in added if toll >= lowest)
    step = -(-len(useful) // _MAX_TOLLS)
    return useful[:: step or 1]


def _best_surpluses(holds: Mapping[tuple[int, ...], int], toll: int) -> tuple[int, ...]:
    surpluses: list[int] = []
    for sums, copies in holds.items():
        best = max(map(int.__sub__, sums, range(toll, toll * len(sums) + 1, toll)))
        surpluses += [max(0, best)] * copies
    surpluses.sort(reverse=True)
    return (0, *accumulate(surpluses))


def fewest_by_level(pods: int, peaks: Sequence[Peaks], pairs: Bounds, at_least: int = 0) -> list[int]:
    """Returns the fewest domains of each level for the pods, from the coarsest (at least `at_least`) to the
    finest.

    The bound of a level assumes the fewest domains of the coarser one: one more of these always costs more
    than any number of finer domains.
    """
    needed: list[int] = []
    for index, level_peaks in enumerate(peaks):
        if index:
            at_least = pairs[index - 1].fewest_finer(needed[-1], pods)
        needed.append(max(at_least, fewest((pods,), level_peaks)))
    return needed


class JointCostLimit(CostLimit):
    """A `CostLimit` with joint bounds, for a single pod class and levels that all have a cost."""

    def __init__(
        self, counts: CountAlgebra, goal: PodCount, levels: InnerLevels, ceiling: int, pairs: Bounds
    ) -> None:
        super().__init__(counts, goal, levels, ceiling)
        self._pairs = pairs
        needed = fewest_by_level(goal, levels.peaks, pairs)
        paid = map(int.__mul__, levels.prices, needed)
        self._bases = list(accumulate(paid, int.__sub__, initial=ceiling))
        # How many domains of each level the ceiling allows: the remaining pods may be in all of them.
        self._payable = list(map(int.__floordiv__, self._bases, levels.prices))

    @property
    def key(self) -> Hashable:
        """Everything that a search reads from the limit. Most pods that come or go change peaks and joint
        bounds, but few change the allowed costs, so limits with the same key can share the cached results.
        """
        if not self._listed():
            return self
        levels = range(self.first, self.first + len(self._prices))
        allowed = (self.allowed(level) for level in levels)
        return self.goal, self.first, self.ceiling, tuple(self._bases), *allowed

    def _needed(self, place: int) -> Iterator[list[int]]:
        """Yields for each level the fewest domains by joint bounds, for 0, 1, … pods."""
        needed: Iterable[int] = repeat(max(0, self._payable[place - 1]))
        pairs = (None, *self._pairs)[place:]
        for pair, separate in zip(pairs, super()._needed(place), strict=True):
            jointly = map(pair.fewest_finer, needed, range(self.goal + 1)) if pair else separate
            needed = list(map(max, jointly, separate))
            yield needed

    def max_cost(self, level: int, placed: PodCount) -> int:
        """See `CostLimit.max_cost`."""
        place, remaining = level - self.first, self.goal - placed
        if remaining <= 0:
            return self._bases[place]
        at_least = 0
        if place:
            at_least = self._pairs[place - 1].fewest_finer(max(0, self._payable[place - 1]), remaining)
        needed = fewest_by_level(remaining, self._peaks[place:], self._pairs[place:], at_least)
        return self._bases[place] - sum(map(int.__mul__, self._prices[place:], needed))


def surpluses(held: tuple[int, ...]) -> Surpluses:
    """Returns the surplus of a domain that holds this much, by toll (see `joint_bounds`).

    Tolls below three quarters of the largest domain are left out: they tell what the last domains add, which
    few placements use, and their surplus changes whenever a pod comes or goes there. If one domain is listed,
    each further one may hold as much, and only its own toll gives a bound.
    """
    largest = held[0]
    lowest = largest * 3 // 4 if len(held) > 1 else largest - 1
    tolls = range(largest, lowest, -max(1, largest // 32))
    return tuple(
        [(toll, max(map(int.__sub__, held, range(toll, toll * len(held) + 1, toll)))) for toll in tolls]
    )


def largest_pair_bounds(levels: Sequence[Surpluses]) -> Bounds:
    """Returns the bounds of each level and the next finer one, if every domain has its level's surplus."""
    return tuple(
        [LevelPairBound(tuple([(toll, _multiples(surplus)) for toll, surplus in level])) for level in levels]
    )


def _multiples(surplus: int) -> range:
    return range(0, surplus * _DOMAINS + 1, surplus) if surplus > 0 else range(1)


class LevelBounds(NamedTuple):
    """The bounds of the levels inside a domain. `peaks`: those of each level alone. `pairs`: those of two
    neighbouring levels, if used; `largest`: the largest domains that they follow from, None for joint bounds.
    """

    peaks: tuple[Peaks, ...]
    pairs: Bounds | None = None
    largest: tuple[Surpluses, ...] | None = None

    def fewest(self, need: Measure) -> list[int]:
        """Returns the fewest domains of each level for the need, from the coarsest level to the hosts."""
        if self.pairs is None:
            return [fewest(need, level_peaks) for level_peaks in self.peaks]
        return fewest_by_level(need[0], self.peaks, self.pairs)


class LimitsByClass:
    """Bounds and cost limits for domains of these classes. `rounded`: whether peaks are rounded up, so that
    later plans can use what is cached under a limit."""

    def __init__(self, classes: DomainClasses, weights: Weights, *, rounded: bool) -> None:
        self._classes, self._weights, self._rounded = classes, weights, rounded
        self._limits: dict[Hashable, CostLimit] = {}
        self._pairs: dict[tuple[Surpluses, ...], Bounds] = {}
        self._joint: dict[int, Bounds] = {}

    def separate(self, class_id: int, need: Measure) -> LevelBounds:
        """Returns the bounds of each level inside a domain of this class; for a host, its own.

        Rounded peaks are larger (`steady`); others end at the need (`up_to`).
        """
        if self._rounded and isinstance(self._classes, CapacityClasses):
            peaks = self._classes.peaks[class_id][self._classes.domain_classes[class_id] is not None :]
            return LevelBounds(tuple([single_peaks(steady(peak, need)) for peak in peaks]))
        return self._exact(class_id, need)

    def by_largest_domains(
        self, class_id: int, need: Measure, held: Sequence[tuple[int, ...]]
    ) -> LevelBounds:
        """Returns the separate bounds, and those of two levels by `LargestDomains.held`."""
        if len(held) < 2:  # inside a block, the largest host tells no more than the peak of hosts
            return self.separate(class_id, need)
        largest = tuple(map(surpluses, held))
        pairs = self._pairs.get(largest)
        if pairs is None:
            if len(self._pairs) >= _MAX_LIMITS:
                self._pairs.clear()
            pairs = self._pairs[largest] = largest_pair_bounds(largest)
        return LevelBounds(self.separate(class_id, need).peaks, pairs, largest)

    def joint(self, class_id: int, need: Measure) -> LevelBounds:
        """Returns the joint bounds; only those of the last class are cached, as a plan needs them twice."""
        pairs = self._joint.get(class_id)
        if pairs is None:
            assert isinstance(self._classes, CapacityClasses), "pools have no bounds of two levels"
            self._joint.clear()
            pairs = self._joint[class_id] = level_pair_bounds(self._classes, class_id)
        return LevelBounds(self._exact(class_id, need).peaks, pairs)

    def _exact(self, class_id: int, need: Measure) -> LevelBounds:
        inner_peaks = self._classes.highest.inner_peaks(self._classes, class_id) or (
            single_peaks(self._classes.maximum(class_id)),
        )
        return LevelBounds(tuple([up_to(peaks, need) for peaks in inner_peaks]))

    def limit(
        self, class_id: int, goal: PodCount, ceiling: int | None, bounds: LevelBounds | None = None
    ) -> CostLimit:
        """Returns the limit of the costs of sums inside a domain of this class, for this goal and ceiling.

        The ceiling excludes the cost of the domain itself; None: no ceiling. `bounds`: None for separate.
        """
        counts, domain_class = self._classes.counts, self._classes.domain_classes[class_id]
        bounds = bounds or self.separate(class_id, counts.measure(goal))
        first = domain_class.level + 1 if domain_class else len(self._weights.domains) - 1
        prices = self._weights.domains[first:]
        levels = InnerLevels(first, prices, bounds.peaks)
        max_cost = unlimited(prices) if ceiling is None else ceiling
        if bounds.pairs is not None and bounds.largest is None:
            return self._with_equal_effect(JointCostLimit(counts, goal, levels, max_cost, bounds.pairs))
        key = (goal, first, bounds.peaks, bounds.largest, max_cost)
        if key not in self._limits:
            if len(self._limits) >= _MAX_LIMITS:
                self._limits.clear()
            self._limits[key] = (
                CostLimit(counts, goal, levels, max_cost)
                if bounds.pairs is None
                else self._with_equal_effect(JointCostLimit(counts, goal, levels, max_cost, bounds.pairs))
            )
        return self._limits[key]

    def _with_equal_effect(self, limit: JointCostLimit) -> CostLimit:
        """Returns the first limit that allows the same costs, so that what is cached under it is used."""
        return self._limits.setdefault(limit.key, limit)
