"""Decides how many device groups one partition of a node's devices can hold.

The devices of a partition share counters, or values of an attribute on which a claim has a constraint.
Different partitions share neither. So each partition is searched separately, and equal partitions only once.

Example: a GPU that MIG divides on demand is one partition. It offers `3g` instances a0, a1 and `1g` instances
b0 … b6, all of which consume its counter "memory slices" (8 in all: 4 for a `3g`, 1 for a `1g`). Two items
(device groups, here of one device) are requested: `3g` at most 2 times and `1g` at most 7 times, the caps.
The largest counts are (2, 0), (1, 4) and (0, 7): all other counts that fit are smaller than one of these.
Eight such GPUs are eight equal partitions, computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from planner.devices.device_masks import CounterUse, bits
from planner.model.effort.work_budget import BudgetEnded, WorkBudget

MAX_STEPS = 20_000
"""The maximum number of steps of one search, about 0.25 s; trying one device is one step. If `allocator.fits`
reaches the limit, it treats the claims as not fitting. A cached result costs as many steps as computing it,
so that the answer does not depend on the content of the cache.
"""

Vector = tuple[int, ...]
"""Numbers by index: of each item, or of each counter or attribute of a partition."""


@dataclass(frozen=True, slots=True)
class AttributeTie:
    """A constraint on an attribute: the devices of these parts of an item have the same value or, if
    `distinct`, all different values. `attribute`: the index of its values in `Partition.devices`.
    """

    attribute: int
    distinct: bool
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A device group whose masks refer to the devices of one partition: `counts[i]` devices of `masks[i]`,
    with ties between these parts.
    """

    masks: tuple[int, ...]
    counts: tuple[int, ...]
    ties: tuple[AttributeTie, ...] = ()

    @property
    def size(self) -> int:
        """The total number of devices."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's devices and the items requested of it.

    `devices`: for each device, what it consumes of the partition's counters, and for each attribute a number
    that stands for the device's value (-1: none). `counters_left`: the remaining amount of each counter.
    `items`: what may be requested; their masks refer to these devices.
    """

    devices: tuple[tuple[CounterUse, Vector], ...]
    counters_left: Vector
    items: tuple[Item, ...]

    def max_items(self, place: int) -> int:
        """Returns an upper bound of how often the item with index `place` fits; ignores counters and ties."""
        item = self.items[place]
        return min(mask.bit_count() // count for mask, count in zip(item.masks, item.counts, strict=True))


@lru_cache(maxsize=16_384)  # an entry for each kind of partition and caps
def largest_counts(partition: Partition, caps: Vector) -> tuple[tuple[Vector, ...] | None, int]:
    """Returns all largest counts (numbers of each item that fit, to which no item can be added), and the
    number of steps used.

    `caps`: the maximum for each item. The counts are None if the search reached `MAX_STEPS`. The search
    starts from zero and adds one item at a time.
    """
    zero, budget = (0,) * len(caps), WorkBudget(MAX_STEPS)
    largest, seen, stack = [], {zero}, [zero]
    try:
        while stack:
            counts = stack.pop()
            larger_counts = [
                (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                for index, cap in enumerate(caps)
                if counts[index] < cap
            ]
            for larger in larger_counts:
                if larger not in seen and fits_together(partition, larger, budget):
                    seen.add(larger)
                    stack.append(larger)
            if seen.isdisjoint(larger_counts):
                largest.append(counts)
    except BudgetEnded:
        return None, MAX_STEPS
    return tuple(sorted(largest, reverse=True)), MAX_STEPS - budget.left


def minimal_remainders(remainders: Iterable[Vector]) -> set[Vector]:
    """Returns the remaining demands without those that are larger than another: (1, 0) makes (2, 1)
    superfluous.
    """
    kept: list[Vector] = []
    for remainder in sorted(remainders, key=lambda vector: (sum(vector), vector)):
        if not any(all(map(int.__le__, other, remainder)) for other in kept):
            kept.append(remainder)
    return set(kept)


def fits_together(partition: Partition, counts: Vector, budget: WorkBudget) -> bool:
    """Reports whether the partition can hold these counts of items together. Raises `BudgetEnded`."""
    fit, steps = _solve(partition, counts)
    budget.spend(steps + 1)
    if fit is None:
        raise BudgetEnded
    return fit


@lru_cache(maxsize=65_536)  # an entry for each kind of partition and counts
def _solve(partition: Partition, counts: Vector) -> tuple[bool | None, int]:
    """Returns whether the items fit (None: not decided within `MAX_STEPS`), and the number of steps used."""
    if any(count > partition.max_items(index) for index, count in enumerate(counts) if count):
        return False, 0
    assignment = _DeviceAssignment(partition, counts)
    try:
        fit = assignment.complete(0, 0, 0, partition.counters_left)
    except BudgetEnded:
        return None, MAX_STEPS
    return fit, MAX_STEPS - assignment.budget.left


class _DeviceAssignment:
    """A depth-first search that assigns devices to items, the largest items first: they fail soonest.

    Failed states are recorded as (index of the next item, devices used, `lowest` of `complete`); the counters
    left follow from the devices used.
    """

    def __init__(self, partition: Partition, counts: Vector) -> None:
        self._partition = partition
        masks = [mask for item in partition.items for mask in item.masks]
        # Devices with equal counters, values and mask bits are interchangeable: only one of them is tried.
        self._kinds = [
            (device, tuple(mask >> index & 1 for mask in masks))
            for index, device in enumerate(partition.devices)
        ]
        wanted = [place for place, count in enumerate(counts) for _ in range(count)]
        minima = {place: self._min_consumption(partition.items[place]) for place in {*wanted}}
        self._order = sorted(
            wanted, key=lambda place: (-partition.items[place].size, -sum(minima[place]), place)
        )
        # The minimum that the items from each index on consume of the counters; the last entry is zero.
        self._still_needed = [(0,) * len(partition.counters_left)]
        for place in reversed(self._order):
            self._still_needed.append(tuple(map(int.__add__, self._still_needed[-1], minima[place])))
        self._still_needed.reverse()
        self._failed: set[tuple[int, int, int]] = set()
        self.budget = WorkBudget(MAX_STEPS)

    def _min_consumption(self, item: Item) -> Vector:
        """Returns the minimum that the item consumes of each counter, whichever devices it gets."""
        consumed = [dict(uses) for uses, _ in self._partition.devices]
        return tuple(
            sum(
                count * min(consumed[index].get(counter, 0) for index in bits(mask))
                for mask, count in zip(item.masks, item.counts, strict=True)
            )
            for counter in range(len(self._partition.counters_left))
        )

    def complete(self, place: int, used: int, lowest: int, left: Vector) -> bool:
        """Reports whether all items from `place` on can be assigned unused devices. Raises `BudgetEnded`.

        If an item of one device equals the item before it, devices below `lowest` are not tried: exchanging
        the devices of equal items makes no difference.
        """
        if place == len(self._order):
            return True
        if not all(map(int.__ge__, left, self._still_needed[place])):
            return False
        key = (place, used, lowest)
        if key in self._failed:
            return False
        item = self._partition.items[self._order[place]]
        single = item.size == 1
        repeated = place + 1 < len(self._order) and self._order[place + 1] == self._order[place]
        for last, now_used, now_left in self._choices(item, used, lowest, left):
            if self.complete(place + 1, now_used, last + 1 if single and repeated else 0, now_left):
                return True
        self._failed.add(key)
        return False

    def _choices(self, item: Item, used: int, lowest: int, left: Vector) -> Iterator[tuple[int, int, Vector]]:
        """Yields each choice of devices for the item: the index of the last device, the mask of all devices
        used so far, and the counters left.
        """
        slots = [part for part, count in enumerate(item.counts) for _ in range(count)]

        def choose(
            slot: int, used: int, lowest: int, left: Vector, chosen: tuple[tuple[int, int], ...]
        ) -> Iterator[tuple[int, int, Vector]]:
            if slot == len(slots):
                yield chosen[-1][1], used, left
                return
            part = slots[slot]
            tried = set()
            # `-1 << lowest` has all bits from `lowest` upwards.
            for index in bits(item.masks[part] & ~used & (-1 << lowest)):
                self.budget.spend(1)
                if self._kinds[index] in tried or not self._meets_ties(item, part, index, chosen):
                    continue
                tried.add(self._kinds[index])
                after = self._after_consuming(left, index)
                if after is not None:
                    same_part = slot + 1 < len(slots) and slots[slot + 1] == part
                    longer = (*chosen, (part, index))
                    yield from choose(
                        slot + 1, used | 1 << index, index + 1 if same_part else 0, after, longer
                    )

        return choose(0, used, lowest, left, ())

    def _meets_ties(self, item: Item, part: int, index: int, chosen: tuple[tuple[int, int], ...]) -> bool:
        """Reports whether the device meets the item's ties, given the devices `chosen` for the item so far.
        A device without the attribute (-1) meets no tie.
        """
        for tie in item.ties:
            if part not in tie.parts:
                continue
            values = self._partition.devices[index][1]
            value = values[tie.attribute]
            tied_values = [self._partition.devices[i][1][tie.attribute] for p, i in chosen if p in tie.parts]
            if value < 0 or (
                value in tied_values if tie.distinct else any(value != other for other in tied_values)
            ):
                return False
        return True

    def _after_consuming(self, left: Vector, index: int) -> Vector | None:
        """Returns the counters left after one more device, or None if one of them does not suffice."""
        uses = self._partition.devices[index][0]
        if not uses:
            return left
        after = list(left)
        for counter, amount in uses:
            after[counter] -= amount
            if after[counter] < 0:
                return None
        return tuple(after)
