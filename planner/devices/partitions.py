"""What one cell of a node's devices can give: devices that share counters, or values that a rule looks at.

A claim's devices that a rule ties together lie in one cell, and no cell's devices touch another's counters.
So each cell is packed by itself, and cells that are equal are looked at once: eight GPUs split by MIG on
demand are one cell, eight times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from planner.devices.node_devices import CounterUse, bits
from planner.model.work_budget import BudgetEnded, WorkBudget

MOST_STEPS = 20_000
"""Devices that are tried for one question, about a quarter of a second; past them what is asked for counts as
not fitting. What was worked out before counts as if it were worked out now, so that no answer hangs on it."""


Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tie:
    """Devices of these parts of an item have the same value of an attribute, or (`distinct`) no two have."""

    attribute: int
    distinct: bool
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """What is given wholly or not at all: of each part so many devices of a mask, and ties between parts."""

    masks: tuple[int, ...]
    counts: tuple[int, ...]
    ties: tuple[Tie, ...] = ()

    @property
    def size(self) -> int:
        """Devices in all."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Cell:
    """`rows`: of each device what it draws from the cell's counters, and its value of each attribute (-1 for
    none). `left`: of each counter. `items`: what is asked for, masks over the cell's devices."""

    rows: tuple[tuple[CounterUse, Vector], ...]
    left: Vector
    items: tuple[Item, ...]

    def most(self, place: int) -> int:
        """No more of an item than this has a place here."""
        item = self.items[place]
        return min(mask.bit_count() // count for mask, count in zip(item.masks, item.counts, strict=True))


@lru_cache(maxsize=16_384)
def options(cell: Cell, caps: Vector) -> tuple[tuple[Vector, ...] | None, int]:
    """The largest numbers of items that the cell holds together, none above its cap; and the steps that it
    took, None where their bound came first."""
    zero, budget = (0,) * len(caps), WorkBudget(MOST_STEPS)
    found, seen, stack = [], {zero}, [zero]
    try:
        while stack:
            counts = stack.pop()
            grown = False
            for place, cap in enumerate(caps):
                if counts[place] < cap:
                    more = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                    if more not in seen and fills(cell, more, budget):
                        seen.add(more)
                        stack.append(more)
                    grown = grown or more in seen
            if not grown:
                found.append(counts)
    except BudgetEnded:
        return None, MOST_STEPS
    return tuple(sorted(found, reverse=True)), MOST_STEPS - budget.left


def fills(cell: Cell, counts: Vector, budget: WorkBudget) -> bool:
    """Whether the cell holds so many of each item together. Raises `BudgetEnded`."""
    found, steps = _holds(cell, counts)
    budget.spend(steps + 1)
    if found is None:
        raise BudgetEnded
    return found


@lru_cache(maxsize=65_536)
def _holds(cell: Cell, counts: Vector) -> tuple[bool | None, int]:
    if any(count > cell.most(place) for place, count in enumerate(counts) if count):
        return False, 0
    filling = _Filling(cell, counts)
    try:
        found = filling.done(0, 0, 0, cell.left)
    except BudgetEnded:
        return None, MOST_STEPS
    return found, MOST_STEPS - filling.budget.left


class _Filling:
    """A search for one number of each item, the largest items first."""

    def __init__(self, cell: Cell, counts: Vector) -> None:
        self._cell = cell
        masks = [mask for item in cell.items for mask in item.masks]
        self._kinds = [(row, tuple(mask >> unit & 1 for mask in masks)) for unit, row in enumerate(cell.rows)]
        order = [place for place, count in enumerate(counts) for _ in range(count)]
        least = {place: self._least(cell.items[place]) for place in {*order}}
        self._order = sorted(order, key=lambda place: (-cell.items[place].size, -sum(least[place]), place))
        self._coming = [(0,) * len(cell.left)]
        for place in reversed(self._order):
            self._coming.append(tuple(map(int.__add__, self._coming[-1], least[place])))
        self._coming.reverse()  # what all items from each one on take of the counters at least
        self._failed: set[tuple[int, int, int]] = set()
        self.budget = WorkBudget(MOST_STEPS)

    def _least(self, item: Item) -> Vector:
        """What the item takes of each counter at least."""
        rows = [dict(draws) for draws, _ in self._cell.rows]
        return tuple(
            sum(
                count * min(rows[unit].get(counter, 0) for unit in bits(mask))
                for mask, count in zip(item.masks, item.counts, strict=True)
            )
            for counter in range(len(self._cell.left))
        )

    def done(self, place: int, used: int, least: int, left: Vector) -> bool:
        """Whether all items from this one on have a place beside the devices in use; of an item of one device
        that equals the former one, no device before `least` is tried. Raises `BudgetEnded`."""
        if place == len(self._order):
            return True
        if not all(map(int.__ge__, left, self._coming[place])):
            return False
        key = (place, used, least)
        if key in self._failed:
            return False
        item = self._cell.items[self._order[place]]
        single = item.size == 1
        again = place + 1 < len(self._order) and self._order[place + 1] == self._order[place]
        for unit, taken, rest in self._ways(item, used, least, left):
            if self.done(place + 1, taken, unit + 1 if single and again else 0, rest):
                return True
        self._failed.add(key)
        return False

    def _ways(self, item: Item, used: int, least: int, left: Vector) -> Iterator[tuple[int, int, Vector]]:
        """Each way to give the item's devices: the last of them, what is in use then, and what is left."""
        slots = [part for part, count in enumerate(item.counts) for _ in range(count)]

        def choose(
            slot: int, used: int, least: int, left: Vector, chosen: tuple[tuple[int, int], ...]
        ) -> Iterator[tuple[int, int, Vector]]:
            if slot == len(slots):
                yield chosen[-1][1], used, left
                return
            part = slots[slot]
            alike = set()
            for unit in bits(item.masks[part] & ~used & (-1 << least)):
                self.budget.spend(1)
                if self._kinds[unit] in alike or not self._tied(item, part, unit, chosen):
                    continue
                alike.add(self._kinds[unit])
                rest = self._drawn(left, unit)
                if rest is not None:
                    same = slot + 1 < len(slots) and slots[slot + 1] == part
                    after = (*chosen, (part, unit))
                    yield from choose(slot + 1, used | 1 << unit, unit + 1 if same else 0, rest, after)

        return choose(0, used, least, left, ())

    def _tied(self, item: Item, part: int, unit: int, chosen: tuple[tuple[int, int], ...]) -> bool:
        for tie in item.ties:
            if part not in tie.parts:
                continue
            value = self._cell.rows[unit][1][tie.attribute]
            others = [self._cell.rows[u][1][tie.attribute] for p, u in chosen if p in tie.parts]
            if value < 0 or (value in others if tie.distinct else any(value != other for other in others)):
                return False
        return True

    def _drawn(self, left: Vector, unit: int) -> Vector | None:
        draws = self._cell.rows[unit][0]
        if not draws:
            return left
        rest = list(left)
        for counter, amount in draws:
            rest[counter] -= amount
            if rest[counter] < 0:
                return None
        return tuple(rest)
