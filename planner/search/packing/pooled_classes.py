"""Pools: what domains can hold of several pod classes, as a few weighted sums instead of every mixture.

    hosts with 4 free GPUs each; a gang of 6 pods of 2 GPUs (S) and 3 pods of 4 GPUs (L)
    direction (S 2, L 4): the gang weighs 6 * 2 + 3 * 4 = 24, a host holds at most 4: 6 hosts or more
    direction (S 0, L 1): the gang weighs 3, a host holds at most 1:                   3 hosts or more
    assigned to 6 hosts:  SS SS SS L L L: it fits, so 6 is the optimum

Eight nodes of four GPUs hold 16 pods of two GPUs, or 8 pods of four, or any mixture. As a pool they hold 32
GPUs. A *direction* is a weight for each pod class. A host holds at most the weight of its heaviest packing,
and a gang has the weight of all its pods. So the cheapest hosts with enough weight in every direction cost no
more than any placement. If the pods can be assigned to these hosts (``host_assignment``), their cost is the
optimum. In a pool each host has a single option instead of one for each mixture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Generic, TypeVar

from planner.cluster.capacity import DomainCapacity
from planner.model.effort.deadline import poll
from planner.model.pod_class import PodClass
from planner.search.domain_caps import CountCap
from planner.search.eligibility_map import EligibilityMap
from planner.search.packing.capacity_classes import EMPTY, CapacityClass, CapacityClasses, PeaksByClass
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

T = TypeVar("T")


Direction = Measure
"""The weight of one pod of each pod class."""


def directions(pod_classes: Sequence[PodClass], wanted: Sequence[int]) -> tuple[Direction, ...]:
    """Returns the directions that give the best bounds for most gangs. `wanted`: the number of pods of each
    class; directions of classes without pods are left out.

    There is one for each pod class. For each resource and each requested amount there are two, in which only
    classes that request at least this amount have a weight: their request, or 1. Smaller pods are left out
    because a node with three free GPUs, for example, has no room for a pod of four.
    """
    is_wanted = [bool(count) for count in wanted]
    all_directions = [
        tuple(int(place == index) for place in range(len(pod_classes)))
        for index in range(len(pod_classes))
        if is_wanted[index]
    ]
    for name in sorted({name for pod_class in pod_classes for name in pod_class.shape.requests}):
        amounts = [
            pod_class.shape.requests.get(name, 0) * wanted_pod
            for pod_class, wanted_pod in zip(pod_classes, is_wanted, strict=True)
        ]
        for threshold in sorted(set(amounts) - {0}):
            large = [need if need >= threshold else 0 for need in amounts]
            common = gcd(*large)
            all_directions.append(tuple(need // common for need in large))
            all_directions.append(tuple(int(need > 0) for need in large))
    return tuple(dict.fromkeys(all_directions))


def weight(direction: Direction, each: Sequence[int]) -> int:
    """Returns the total weight of these numbers of pods of each class."""
    return sum(map(int.__mul__, direction, each))


class PooledClasses:
    """The classes of `CapacityClasses` under the same ids, with counts replaced by their weights in the
    directions `along`; each host has one option.
    """

    def __init__(self, classes: CapacityClasses, along: Sequence[Direction]) -> None:
        self.base, self.along = classes, tuple(along)
        wanted = tuple(weight(direction, classes.counts.each(classes.counts.full)) for direction in along)
        self.counts: CountAlgebra = (
            SingleClassCounts(wanted[0]) if len(wanted) == 1 else NestedCounts(wanted, self.along)
        )
        self.domain_classes = classes.domain_classes
        self._sums: dict[int, Measure] = {EMPTY: (0,) * len(along)}
        self.reach = _ByClass(lambda class_id: self.counts.pack(self.sums(class_id)))
        self.options = _ByClass(self._options)
        self.highest = PeaksByClass()

    def __len__(self) -> int:
        return len(self._sums)

    def of(self, capacity: DomainCapacity, match: EligibilityMap) -> int:
        """Returns the class of a domain."""
        return self.base.of(capacity, match)

    def maximum(self, class_id: int) -> Measure:
        """Returns the maximum weight of a domain of the class by direction, capped at the gang's weight."""
        return self.counts.each(self.reach[class_id])

    def peak(self, class_id: int, level: int) -> Measure:
        """Returns the maximum of the whole domain, an upper bound for one domain of the level inside it."""
        return self.maximum(class_id) if class_id else ()

    def goal(self, counts: PodCount) -> PodCount:
        """Returns the weights of a count of pods, as a count in the pool."""
        each = self.base.counts.each(counts)
        return self.counts.pack([weight(direction, each) for direction in self.along])

    def uniform(self, class_id: int, /) -> bool:
        """Returns False, because what a domain keeps of a pool may differ from what its children hold."""
        return False

    def is_limited(self, domain_class: CapacityClass, /) -> bool:
        """See `DomainClasses`."""
        return self.base.is_limited(domain_class)

    def each_kept(
        self, level: int, counts: PodCount, *, has_name: bool, caps: tuple[CountCap, ...] = ()
    ) -> tuple[PodCount, ...]:
        """Returns the weights that the rules allow in a domain whose children hold `counts`: less if the pods
        of a class must be together.
        """
        return (self.counts.pack(self._kept(level, self.counts.each(counts), caps, has_name=has_name)),)

    def _highest_weight(self, direction: Direction, options: Sequence[Measure]) -> int:
        poll("search")  # there are about ten thousand options
        return max(weight(direction, counts) for counts in options)

    def sums(self, class_id: int) -> Measure:
        """Returns the maximum weight that a domain of the class holds in each direction."""
        max_sums = self._sums.get(class_id)
        if max_sums is None:
            domain_class = self.domain_classes[class_id]
            if domain_class is None:
                each = [self.base.counts.each(counts) for counts, _ in self.base.options[class_id]]
                max_sums = tuple(self._highest_weight(direction, each) for direction in self.along)
            else:
                sums = tuple(map(sum, zip(*map(self.sums, domain_class.children), strict=True)))
                max_sums = (
                    sums
                    if domain_class.is_chunk
                    else self._kept(
                        domain_class.level, sums, domain_class.caps, has_name=domain_class.has_name
                    )
                )
            self._sums[class_id] = max_sums
        return max_sums

    def _kept(self, level: int, sums: Measure, caps: tuple[CountCap, ...], *, has_name: bool) -> Measure:
        """Returns the weights that the rules allow in a domain. Rules are applied only in directions of a
        single pod class; in other directions the domain keeps all of `sums`, an upper bound.
        """
        counts = self.base.counts
        # `each_kept` drops classes that must be together if one of them is incomplete. Here only the class of
        # the direction is tested, so all other classes count as complete.
        others = counts.each(counts.full if self.base.unites(level) else counts.zero)
        kept_sums = []
        for along, held in zip(self.along, sums, strict=True):
            kept = held
            if level >= 0 and held and sum(map(bool, along)) == 1:
                of_it = counts.pack(
                    [
                        held // pod_weight if pod_weight else n
                        for pod_weight, n in zip(along, others, strict=True)
                    ]
                )
                each = self.base.each_kept(level, of_it, has_name=has_name, caps=caps)
                kept = max((weight(along, counts.each(kept_counts)) for kept_counts in each), default=0)
            kept_sums.append(kept)
        return tuple(kept_sums)

    def _options(self, class_id: int) -> list[Option]:
        if self.domain_classes[class_id] is not None or class_id == EMPTY:
            return []
        return [(self.counts.pack(self.sums(class_id)), self.base.options[class_id][0][1])]


class NestedCounts(MultiClassCounts):
    """Counts in several directions, some of which include others: a pod of four GPUs weighs 1 in the
    direction of such pods, and 4 in the outer direction of all GPUs.

    A sum's weight in the outer direction is cut to what its pods of four weigh there, plus what the goal
    needs for other pods. More GPUs are useless: each pod of four that is still missing brings its own. If a
    direction includes several others, the largest of the resulting values is used, so that sums which were
    cut differently stay comparable.
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
        self,
        before: CostBySum,
        options: Sequence[Option],
        goal: PodCount,
        allowed: Allowed,
        min_pods: int = 0,
    ) -> CostBySum:
        after = super().sums(before, options, goal, allowed, min_pods)
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
            poll("search")
            each = self.each(counts)
            trimmed = counts
            for outer, inners in cuts:
                over = each[outer] - max([times * each[inner] + excess for inner, times, excess in inners])
                if over > 0:
                    trimmed -= over << self._shifts[outer]
            if trimmed not in cut or cost < cut[trimmed]:
                cut[trimmed] = cost
        return cut


def _times(outer: Direction, inner: Direction) -> int:
    """Returns the largest integer factor such that no inner weight, times the factor, exceeds the outer
    weight of the same pod class: any pods weigh at least this many times as much in the outer direction.
    """
    return min(
        outer_weight // inner_weight
        for outer_weight, inner_weight in zip(outer, inner, strict=True)
        if inner_weight
    )


class _ByClass(dict[int, T], Generic[T]):
    """Values by capacity class, computed on first use."""

    def __init__(self, make: Callable[[int], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, class_id: int) -> T:
        value = self[class_id] = self._make(class_id)
        return value
