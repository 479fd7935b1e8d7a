"""Numbers of pods by kind, as the search adds them up: a plain number for one kind, a tuple for several.

Counts never exceed what is wanted, so that sums stay small and covering everything is an equality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from planner.request import Kind

Counts = Any
"""An `int` for one kind of pods, a tuple of `int` for several."""


class Algebra(Protocol):
    """What the search does with counts."""

    full: Counts
    zero: Counts

    def add(self, one: Counts, other: Counts) -> Counts:
        """The sum, capped at what is wanted."""
        ...

    def minus(self, one: Counts, other: Counts) -> Counts:
        """What is left of `one`, never below zero."""
        ...

    def least(self, one: Counts, other: Counts) -> Counts:
        """The smaller number of each kind."""
        ...

    def covers(self, one: Counts, other: Counts) -> bool:
        """Whether `one` has at least as many of each kind."""
        ...

    def size(self, counts: Counts) -> int:
        """Pods in all."""
        ...

    def each(self, counts: Counts) -> tuple[int, ...]:
        """The number of each kind."""
        ...

    def pack(self, counts: Sequence[int]) -> Counts:
        """The counts of these numbers, capped at what is wanted."""
        ...


class One:
    """Counts of one kind."""

    zero: Counts = 0

    def __init__(self, wanted: int) -> None:
        self.full: Counts = wanted

    def add(self, one: Counts, other: Counts) -> Counts:
        total = one + other
        return total if total < self.full else self.full

    def minus(self, one: Counts, other: Counts) -> Counts:
        return one - other if one > other else 0

    def least(self, one: Counts, other: Counts) -> Counts:
        return one if one < other else other

    def covers(self, one: Counts, other: Counts) -> bool:
        return bool(one >= other)

    def size(self, counts: Counts) -> int:
        return int(counts)

    def each(self, counts: Counts) -> tuple[int, ...]:
        return (counts,)

    def pack(self, counts: Sequence[int]) -> Counts:
        return min(counts[0], self.full)


class Many:
    """Counts of several kinds."""

    def __init__(self, wanted: tuple[int, ...]) -> None:
        self.full: Counts = wanted
        self.zero: Counts = (0,) * len(wanted)

    def add(self, one: Counts, other: Counts) -> Counts:
        return tuple(map(min, map(int.__add__, one, other), self.full))

    def minus(self, one: Counts, other: Counts) -> Counts:
        return tuple(a - b if a > b else 0 for a, b in zip(one, other, strict=True))

    def least(self, one: Counts, other: Counts) -> Counts:
        return tuple(map(min, one, other))

    def covers(self, one: Counts, other: Counts) -> bool:
        return all(map(int.__ge__, one, other))

    def size(self, counts: Counts) -> int:
        return sum(counts)

    def each(self, counts: Counts) -> tuple[int, ...]:
        return tuple(counts)

    def pack(self, counts: Sequence[int]) -> Counts:
        return tuple(map(min, counts, self.full))


def algebra(kinds: Sequence[Kind]) -> Algebra:
    """The algebra for these kinds."""
    return One(kinds[0].count) if len(kinds) == 1 else Many(tuple(kind.count for kind in kinds))


def projections(
    kinds: Sequence[Kind], counts: Algebra, levels: int
) -> list[Callable[[Counts, bool], Counts] | None]:
    """For each level what one of its domains may hold of the counts that its nodes could: None is "all".

    A kind required in one domain of the level is there wholly or not at all; slices are there wholly; of
    pods that must differ over the level there is one. A domain without the level's label (`named` False)
    can keep none of the first two together.
    """
    return [_projection(kinds, counts, level) for level in range(levels)]


def _projection(
    kinds: Sequence[Kind], counts: Algebra, level: int
) -> Callable[[Counts, bool], Counts] | None:
    if not any(level in (k.required, k.slice_level, *k.apart) for k in kinds):
        return None

    def keep(kind: Kind, count: int, named: bool) -> int:
        if named and level in kind.apart:
            count = min(count, 1)
        if level == kind.slice_level:
            count = count // kind.slice_size * kind.slice_size if named else 0
        if level == kind.required and not (named and count == kind.count):
            return 0
        return count

    def project(value: Counts, named: bool) -> Counts:
        each = counts.each(value)
        return counts.pack([keep(k, n, named) for k, n in zip(kinds, each, strict=True)])

    return project
