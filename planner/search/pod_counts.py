"""Numbers of pods by class, all packed into one integer, so that the search adds them quickly.

    two classes, 5 and 3 pods wanted: a field of five bits for each, the first class in the higher bits

    0 0101 0 0011    all wanted pods (163)           0 0010 0 0001    two of the first class, one of the other
    ^      ^         the spare bit of each field                      (65)

To add two such integers is to add the pods of each class. To compare them field by field, the spare bits of
one are set and the other is subtracted: a spare bit is cleared exactly if the other has more pods of that
class.

Counts are capped at the wanted number of pods, so that sums stay small, and a sum has all wanted pods exactly
if it equals `full`. The *measure* of a count is the number of pods of each class and, for several classes,
the total request of each resource that more than one class requests. The maximum measure of one domain gives
a lower bound of the number of domains.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Protocol

from planner.model.effort.deadline import DeadlinePassed, deadline
from planner.model.pod_class import PodClass

PodCount = int
"""The number of pods of one pod class; for several classes all their numbers, packed into one integer
(`MultiClassCounts`).
"""


Option = tuple[PodCount, int]
"""A count that a domain could hold, and its lowest cost."""


CostBySum = dict[PodCount, int]
"""Sums of options, each with its lowest cost."""


Measure = tuple[int, ...]
"""The measure of a count (see the module); in pooled classes, its weight in each direction."""


_MAX_COMPARED = 400
"""Maximum number of sums of three or more classes that are compared with each other, which takes at most
80,000 comparisons. If there are more, all are kept.
"""


class Allowed(Protocol):
    """The maximum allowed cost of each sum (a list or a mapping)."""

    def __getitem__(self, counts: PodCount, /) -> int: ...


class CountAlgebra(Protocol):
    """The operations of the search on counts. `full`: all wanted pods; `zero`: no pods."""

    full: PodCount
    zero: PodCount

    def add(self, counts: PodCount, other: PodCount) -> PodCount:
        """Returns the sum, capped at the wanted pods."""
        ...

    def minus(self, counts: PodCount, other: PodCount) -> PodCount:
        """Returns `counts` without `other`, by class never below zero."""
        ...

    def smaller(self, counts: PodCount, other: PodCount) -> PodCount:
        """Returns the smaller of both numbers of each pod class."""
        ...

    def covers(self, counts: PodCount, other: PodCount) -> bool:
        """Reports whether `counts` has at least as many pods of each class as `other`."""
        ...

    def size(self, counts: PodCount) -> int:
        """Returns the total number of pods."""
        ...

    def each(self, counts: PodCount) -> tuple[int, ...]:
        """Returns the number of pods of each class."""
        ...

    def pack(self, counts: Sequence[int]) -> PodCount:
        """Returns the count with these numbers of pods of each class, capped at the wanted pods."""
        ...

    def measure(self, counts: PodCount) -> Measure:
        """Returns the measure of the count (see the module)."""
        ...

    def sums(
        self,
        before: CostBySum,
        options: Sequence[Option],
        goal: PodCount,
        allowed: Allowed,
        min_pods: int = 0,
    ) -> CostBySum:
        """Returns the sums `before`, and each of them with one of the options added, capped at the goal and
        within their allowed costs.

        A sum that has reached the goal is not extended. Options are sorted by count. For one pod class their
        costs ascend, and so do the allowed costs with the number of pods. Sums of fewer than `min_pods` pods
        may be left out, because they cannot reach the goal.
        """
        ...

    def undominated(self, stage: CostBySum) -> CostBySum:
        """Returns the sums for which no larger sum has the same or a lower cost. If there are very many, it
        may return all."""
        ...


class SingleClassCounts:
    """Counts of one pod class."""

    zero: PodCount = 0

    def __init__(self, wanted: int) -> None:
        self.full: PodCount = wanted

    def add(self, counts: PodCount, other: PodCount) -> PodCount:
        total = counts + other
        return total if total < self.full else self.full

    def minus(self, counts: PodCount, other: PodCount) -> PodCount:
        return counts - other if counts > other else 0

    def smaller(self, counts: PodCount, other: PodCount) -> PodCount:
        return counts if counts < other else other

    def covers(self, counts: PodCount, other: PodCount) -> bool:
        return bool(counts >= other)

    def size(self, counts: PodCount) -> int:
        return int(counts)

    def each(self, counts: PodCount) -> tuple[int, ...]:
        return (counts,)

    def pack(self, counts: Sequence[int]) -> PodCount:
        return min(counts[0], self.full)

    def measure(self, counts: PodCount) -> Measure:
        return (counts,)

    def sums(
        self,
        before: CostBySum,
        options: Sequence[Option],
        goal: PodCount,
        allowed: Allowed,
        min_pods: int = 0,
    ) -> CostBySum:
        after = (
            {counts: cost for counts, cost in before.items() if counts >= min_pods}
            if min_pods > 0
            else dict(before)
        )
        sizes = [added for added, _ in options]
        for counts, cost in before.items():
            if counts == goal:
                continue
            reaching = bisect_left(sizes, goal - counts)  # the first that reaches the goal is the cheapest
            smallest = bisect_left(sizes, min_pods - counts) if counts < min_pods else 0
            # If even the lowest price is more than the largest of these sums may cost, all are too dear: of a
            # gang that needs two blocks, a second block is allowed only in sums that reach the goal.
            if smallest < reaching and cost + options[smallest][1] <= allowed[counts + sizes[reaching - 1]]:
                for added, price in options[smallest:reaching]:
                    total, paid = counts + added, cost + price
                    if paid <= allowed[total] and (total not in after or paid < after[total]):
                        after[total] = paid
            if reaching < len(sizes):
                paid = cost + options[reaching][1]
                if paid <= allowed[goal] and (goal not in after or paid < after[goal]):
                    after[goal] = paid
        return after

    def undominated(self, stage: CostBySum) -> CostBySum:
        kept: CostBySum = {}
        min_cost: int | None = None
        for counts in sorted(stage, reverse=True):
            if min_cost is None or stage[counts] < min_cost:
                kept[counts] = min_cost = stage[counts]
        return kept


class MultiClassCounts:
    """Counts of several pod classes in one integer: a bit field per class, the first class in the most
    significant bits.

    Each field has a spare bit on top, so that two counts are compared without unpacking them. `wanted`: the
    number of pods of each class. `asked`: for each resource that several pod classes request, the request of
    each class.
    """

    zero: PodCount = 0

    def __init__(self, wanted: tuple[int, ...], asked: Sequence[tuple[int, ...]] = ()) -> None:
        # The sum of two counts is at most twice as large; the bit above stays spare.
        self._bits = (2 * max(wanted)).bit_length() + 1
        self._mask = (1 << self._bits) - 1
        self._class_count = len(wanted)
        self._shifts = [self._bits * index for index in range(len(wanted) - 1, -1, -1)]
        self._spare = sum(1 << shift + self._bits - 1 for shift in self._shifts)
        self._asked = tuple(asked)
        self._wanted = wanted
        self.full: PodCount = sum(map(int.__lshift__, wanted, self._shifts))

    def add(self, counts: PodCount, other: PodCount) -> PodCount:
        total, spare = counts + other, self._spare
        # If all spare bits are left, no class exceeds the wanted pods: the common case.
        return total if ((self.full | spare) - total) & spare == spare else self.smaller(total, self.full)

    def minus(self, counts: PodCount, other: PodCount) -> PodCount:
        return counts - self.smaller(counts, other)

    def smaller(self, counts: PodCount, other: PodCount) -> PodCount:
        spare = self._spare
        # The spare bits of the fields in which `other` has at least as many pods as `counts`.
        smaller = ((other | spare) - counts) & spare
        if smaller == spare:
            return counts
        # A spare bit minus the lowest bit of its field has ones in all bits of the field below the spare bit.
        keep = smaller - (smaller >> self._bits - 1)
        return (counts & keep) | (other & ~(keep | smaller) & ~spare)

    def covers(self, counts: PodCount, other: PodCount) -> bool:
        spare = self._spare
        return bool(((counts | spare) - other) & spare == spare)

    def size(self, counts: PodCount) -> int:
        return sum(self.each(counts))

    def each(self, counts: PodCount) -> tuple[int, ...]:
        mask = self._mask
        return tuple([counts >> shift & mask for shift in self._shifts])

    def pack(self, counts: Sequence[int]) -> PodCount:
        return sum(map(int.__lshift__, map(min, counts, self._wanted), self._shifts))

    def measure(self, counts: PodCount) -> Measure:
        each = self.each(counts)
        return (*each, *[sum(map(int.__mul__, each, asked)) for asked in self._asked])

    def sums(
        self,
        before: CostBySum,
        options: Sequence[Option],
        goal: PodCount,
        allowed: Allowed,
        min_pods: int = 0,
    ) -> CostBySum:
        after, spare, below = dict(before), self._spare, self._bits - 1
        goal_with_spare, late = goal | spare, deadline()
        for counts, cost in before.items():
            if late():  # allowed costs are computed on first use, which may take long
                raise DeadlinePassed("search")
            if counts == goal:
                continue
            for added, price in options:
                total, paid = counts + added, cost + price
                within = (goal_with_spare - total) & spare
                if within != spare:
                    # `smaller(total, goal)` without a call, which takes as long as the rest of this loop: a
                    # gang of a launcher and 143 workers adds up 90,000 sums, most of them above the goal.
                    keep = within - (within >> below)
                    total = (total & keep) | (goal & ~keep)
                if (total not in after or paid < after[total]) and paid <= allowed[total]:
                    after[total] = paid
        return after

    def undominated(self, stage: CostBySum) -> CostBySum:
        if self._class_count > 2 and len(stage) > _MAX_COMPARED:
            return stage
        by_cost = sorted(stage.items(), key=lambda item: (item[1], -item[0]))
        if self._class_count == 2:
            return self._undominated_pairs(by_cost)
        kept: CostBySum = {}
        spare = self._spare
        larger: list[int] = []
        late = deadline()
        for counts, cost in by_cost:
            if late():
                raise DeadlinePassed("search")
            for other in larger:
                if (other - counts) & spare == spare:
                    break
            else:
                larger.append(counts | spare)
                kept[counts] = cost
        return kept

    def _undominated_pairs(self, by_cost: Sequence[Option]) -> CostBySum:
        """Returns the same as `undominated` for two pod classes. If the largest counts so far are sorted by
        the first number ascending, their second numbers descend, so that one binary search finds whether a
        count is dominated."""
        kept: CostBySum = {}
        rising: list[int] = []
        falling: list[int] = []
        bits, mask = self._bits, self._mask
        for counts, cost in by_cost:
            first, second = counts >> bits, counts & mask
            place = bisect_left(rising, first)
            if place < len(rising) and falling[place] >= second:
                continue
            kept[counts] = cost
            end = place + 1 if place < len(rising) and rising[place] == first else place
            while place and falling[place - 1] <= second:
                place -= 1
            rising[place:end], falling[place:end] = [first], [second]
        return kept


def algebra(pod_classes: Sequence[PodClass]) -> CountAlgebra:
    """Returns the algebra for these pod classes."""
    if len(pod_classes) == 1:
        return SingleClassCounts(pod_classes[0].count)
    names = sorted({name for pod_class in pod_classes for name in pod_class.shape.requests})
    requested = {tuple(pod_class.shape.requests.get(name, 0) for pod_class in pod_classes) for name in names}
    shared = [amounts for amounts in requested if sum(map(bool, amounts)) > 1]
    return MultiClassCounts(tuple(pod_class.count for pod_class in pod_classes), sorted(shared))
