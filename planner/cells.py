"""What one cell of a node's devices can give: devices that share counters, or values that a rule looks at.

A claim's devices that a rule ties together lie in one cell, and no cell's devices touch another's counters.
So each cell is packed by itself, and cells that are equal are looked at once: eight GPUs split by MIG on
demand are one cell, eight times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from planner.layouts import Draws, bits

_MOST_STEPS = 50_000
"""Devices that are tried for one cell; past them what is asked for counts as not fitting."""

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

    rows: tuple[tuple[Draws, Vector], ...]
    left: Vector
    items: tuple[Item, ...]

    def most(self, place: int) -> int:
        """No more of an item than this has a place here."""
        item = self.items[place]
        return min(mask.bit_count() // count for mask, count in zip(item.masks, item.counts, strict=True))


@lru_cache(maxsize=16_384)
def options(cell: Cell, caps: Vector) -> tuple[Vector, ...]:
    """The largest numbers of items that the cell holds together, none above its cap."""
    zero = (0,) * len(caps)
    found, seen, stack = [], {zero}, [zero]
    while stack:
        counts = stack.pop()
        grown = False
        for place, cap in enumerate(caps):
            if counts[place] < cap:
                more = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                if more in seen:
                    grown = True
                elif holds(cell, more):
                    grown = True
                    seen.add(more)
                    stack.append(more)
        if not grown:
            found.append(counts)
    return tuple(sorted(found, reverse=True))


@lru_cache(maxsize=65_536)
def holds(cell: Cell, counts: Vector) -> bool:
    """Whether the cell holds so many of each item together; exact within the bound on steps."""
    if any(count > cell.most(place) for place, count in enumerate(counts) if count):
        return False
    return _Filling(cell, counts).done(0, 0, 0, cell.left)


class _Filling:
    """A search for one number of each item, the largest items first."""

    def __init__(self, cell: Cell, counts: Vector) -> None:
        self._cell = cell
        masks = [mask for item in cell.items for mask in item.masks]
        self._kinds = [(row, tuple(mask >> unit & 1 for mask in masks)) for unit, row in enumerate(cell.rows)]
        order = [place for place, count in enumerate(counts) for _ in range(count)]
        weights = {place: (cell.items[place].size, self._weight(cell.items[place])) for place in {*order}}
        self._order = sorted(order, key=lambda place: (-weights[place][0], -weights[place][1], place))
        self._failed: set[tuple[int, int, int]] = set()
        self._steps = 0

    def _weight(self, item: Item) -> int:
        """The least that the item takes of all counters."""
        rows = self._cell.rows
        return sum(
            count * min(sum(amount for _, amount in rows[unit][0]) for unit in bits(mask))
            for mask, count in zip(item.masks, item.counts, strict=True)
        )

    def done(self, place: int, used: int, least: int, left: Vector) -> bool:
        """Whether all items from this one on have a place beside the devices in use; of an item of one device
        that equals the former one, no device before `least` is tried."""
        if place == len(self._order):
            return True
        key = (place, used, least)
        if key in self._failed or self._steps > _MOST_STEPS:
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
                self._steps += 1
                if self._steps > _MOST_STEPS:
                    return
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
