"""What domains hold of several kinds of pods, pooled: a few sums instead of every mixture.

Eight trays of four GPUs hold 16 pods of two GPUs, or 8 of four, or any mixture between. Pooled, they hold
32 GPUs. A *direction* weighs each kind of pods; no host adds more to it than its best packing does, and a
gang needs as much of it as its pods weigh. So the cheapest hosts that have enough of every direction cost no
more than any placement does, and where the pods can be dealt to just these hosts (``host_assignment``),
that is the optimum. Each host has one option then, where there were as many as there are mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Generic, TypeVar

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass
from planner.search.capacity_classes import EMPTY, CapacityClasses, PeaksByClass
from planner.search.eligibility_map import EligibilityMap
from planner.search.pod_counts import (
    Allowed,
    CostBySum,
    CountAlgebra,
    Measure,
    MultiClassCounts,
    Option,
    PodCount,
    SingleClassCounts,
)
from planner.search.rules.domain_caps import CountCap

T = TypeVar("T")


Direction = Measure
"""How much one pod of each kind weighs."""


def directions(kinds: Sequence[PodClass], wanted: Sequence[int]) -> tuple[Direction, ...]:
    """The directions that bound most gangs, for so many pods of each kind.

    Each kind by itself; and of each resource what the pods ask for of which each asks for at least so much:
    a node with three free GPUs has none for the pods of four.
    """
    there = [bool(count) for count in wanted]
    found = [tuple(int(at == one) for at in range(len(kinds))) for one in range(len(kinds)) if there[one]]
    for name in sorted({name for kind in kinds for name in kind.shape.requests}):
        asked = [kind.shape.requests.get(name, 0) * its for kind, its in zip(kinds, there, strict=True)]
        for least in sorted(set(asked) - {0}):
            large = [need if need >= least else 0 for need in asked]
            common = gcd(*large)
            found.append(tuple(need // common for need in large))
            found.append(tuple(int(need > 0) for need in large))
    return tuple(dict.fromkeys(found))


def weight(direction: Direction, each: Sequence[int]) -> int:
    """What these numbers of each kind come to."""
    return sum(map(int.__mul__, direction, each))


class PooledClasses:
    """The classes of `CapacityClasses`, by the same ids, with counts pooled in some directions: one option
    a host."""

    def __init__(self, classes: CapacityClasses, along: Sequence[Direction]) -> None:
        self.base, self.along = classes, tuple(along)
        wanted = tuple(weight(one, classes.counts.each(classes.counts.full)) for one in along)
        self.counts: CountAlgebra = (
            SingleClassCounts(wanted[0]) if len(wanted) == 1 else NestedCounts(wanted, self.along)
        )
        self.made = classes.made
        self._sums: dict[int, Measure] = {EMPTY: (0,) * len(along)}
        self.reach = _Made(lambda known: self.counts.pack(self.sums(known)))
        self.options = _Made(self._options)
        self.highest = PeaksByClass()

    def __len__(self) -> int:
        return len(self._sums)

    def of(self, content: DomainCapacity, match: EligibilityMap) -> int:
        """The class of a domain."""
        return self.base.of(content, match)

    def held(self, known: int) -> Measure:
        """The most that a domain of the class has in each direction, and is of use."""
        return self.counts.each(self.reach[known])

    def peak(self, known: int, level: int) -> Measure:
        """No domain of the level in here has more than the whole."""
        return self.held(known) if known else ()

    def goal(self, counts: PodCount) -> PodCount:
        """What these numbers of pods come to, pooled."""
        each = self.base.counts.each(counts)
        return self.counts.pack([weight(one, each) for one in self.along])

    def each_kept(
        self, level: int, counts: PodCount, *, named: bool, caps: tuple[CountCap, ...] = ()
    ) -> tuple[PodCount, ...]:
        """What a domain may hold of what its children could: less of a kind that must be together."""
        return (self.counts.pack(self._kept(level, self.counts.each(counts), caps, named=named)),)

    def sums(self, known: int) -> Measure:
        """The most that a domain of the class adds in each direction."""
        found = self._sums.get(known)
        if found is None:
            made = self.made[known]
            if made is None:
                each = [self.base.counts.each(counts) for counts, _ in self.base.options[known]]
                found = tuple(max(weight(one, counts) for counts in each) for one in self.along)
            else:
                sums = tuple(map(sum, zip(*map(self.sums, made.children), strict=True)))
                found = sums if made.part else self._kept(made.level, sums, made.caps, named=made.named)
            self._sums[known] = found
        return found

    def _kept(self, level: int, sums: Measure, caps: tuple[CountCap, ...], *, named: bool) -> Measure:
        """In a direction of one kind alone, what is kept of that kind; in others all."""
        counts = self.base.counts
        others = counts.each(counts.full if self.base.unites(level) else counts.zero)
        found = []
        for along, held in zip(self.along, sums, strict=True):
            kept = held
            if level >= 0 and held and sum(map(bool, along)) == 1:
                of_it = counts.pack([held // one if one else n for one, n in zip(along, others, strict=True)])
                each = self.base.each_kept(level, of_it, named=named, caps=caps)
                kept = max((weight(along, counts.each(one)) for one in each), default=0)
            found.append(kept)
        return tuple(found)

    def _options(self, known: int) -> list[Option]:
        if self.made[known] is not None or known == EMPTY:
            return []
        return [(self.counts.pack(self.sums(known)), self.base.options[known][0][1])]


class NestedCounts(MultiClassCounts):
    """Sums in several directions, some of which hold others.

    A pod of four GPUs counts four among all pods' GPUs. So who has enough of the pods of four has that much
    of the GPUs, and more of these than the other pods need as well is of no use: it is cut off. A direction
    that holds several is cut to the one that leaves it most: then it always holds what each of them says,
    which is what makes a cut of one sum good beside a cut of another.
    """

    def __init__(self, wanted: Measure, along: Sequence[Direction]) -> None:
        super().__init__(wanted)
        every = range(len(along))
        held = [
            [
                (inner, times)
                for inner in every
                if inner != outer and (times := _times(along[outer], along[inner]))
            ]
            for outer in every
        ]
        self._cuts = [(outer, inners) for outer, inners in zip(every, held, strict=True) if inners]

    def sums(
        self, before: CostBySum, options: Sequence[Option], goal: PodCount, allowed: Allowed
    ) -> CostBySum:
        after = super().sums(before, options, goal, allowed)
        if not self._cuts:
            return after
        wanted = self.each(goal)
        cuts = [
            (
                outer,
                [(inner, times, max(0, wanted[outer] - times * wanted[inner])) for inner, times in inners],
            )
            for outer, inners in self._cuts
        ]
        cut: CostBySum = {}
        for counts, cost in after.items():
            each = self.each(counts)
            less = counts
            for outer, inners in cuts:
                over = each[outer] - max([times * each[inner] + more for inner, times, more in inners])
                if over > 0:
                    less -= over << self._shifts[outer]
            if less not in cut or cost < cut[less]:
                cut[less] = cost
        return cut


def _times(outer: Direction, inner: Direction) -> int:
    """How many times a direction holds another one, whatever the pods."""
    return min(out // one for out, one in zip(outer, inner, strict=True) if one)


class _Made(dict[int, T], Generic[T]):
    """What is worked out by class, once it is asked for."""

    def __init__(self, make: Callable[[int], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, known: int) -> T:
        found = self[known] = self._make(known)
        return found
