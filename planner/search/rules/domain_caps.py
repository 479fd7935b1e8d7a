"""How many pods of certain classes one domain may hold at the most, and counts cut down to that.

    classes 0 and 1, cap ((0,), (0, 1), 2): beside any pod of class 0 there are two of both at the most
    a domain that could hold 3 of class 0 and 1 of class 1 may hold (2, 0), (1, 1), or (0, 1): three counts

What `CountCap` says of a domain: if any pod of the classes `keepers` is there, the pods of the classes
`counted` are no more than the last number; below zero none of the keepers may be there. For pods that must
differ over a label both are that one class and the number is 1; for pods that are spread, what the skew
leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.cluster.tree import Subtree
from planner.model.pod_class import PodClass
from planner.search.pod_counts import CountAlgebra, PodCount

CountCap = tuple[tuple[int, ...], tuple[int, ...], int]
"""Keepers, counted, most: kinds by their places."""


@dataclass(frozen=True, slots=True)
class DomainCap:
    """The caps of a level's named domains: of some (`at`), else by the label's value (of hosts by name), else
    `other`, where None is no cap."""

    level: int
    keepers: tuple[int, ...]
    counted: tuple[int, ...]
    values: Mapping[str, int] = field(default_factory=dict)
    other: int | None = None
    at: Mapping[Subtree, int] = field(default_factory=dict)

    def of(self, branch: Subtree) -> CountCap | None:
        """The cap of one domain of the level."""
        if not branch.named:
            return None
        most = self.at.get(branch, self.by_value(value_of(branch)))
        return None if most is None else (self.keepers, self.counted, most)

    def by_value(self, value: str) -> int | None:
        """The cap of the domains of this value."""
        return self.values.get(value, self.other)


def value_of(branch: Subtree) -> str:
    """A domain's value of its level's label; of a host its name."""
    return branch.node or branch.path[-1]


class CapTrimmer:
    """Cuts counts down to caps, never in the middle of what must be together further in."""

    def __init__(self, kinds: Sequence[PodClass], counts: CountAlgebra) -> None:
        self._kinds, self._counts = kinds, counts

    def bound(self, level: int, counts: PodCount, caps: Iterable[CountCap]) -> PodCount:
        """At least as many of each kind as any counts within the caps have; exact for a single kind."""
        each = list(self._counts.each(counts))
        for keepers, counted, most in caps:
            for at in keepers:
                if most < 0:
                    each[at] = 0
                elif at in counted:
                    each[at] = self._whole(level, at, min(each[at], most))
        return self._counts.pack(each)

    def each(self, level: int, each: tuple[PodCount, ...], caps: Iterable[CountCap]) -> tuple[PodCount, ...]:
        """The counts within the caps that no other exceed."""
        for cap in caps:
            cut = (one for counts in each for one in self._cut(level, counts, cap))
            each = tuple(dict.fromkeys(cut))
        return each

    def _cut(self, level: int, counts: PodCount, cap: CountCap) -> Iterator[PodCount]:
        keepers, counted, most = cap
        each = self._counts.each(counts)
        if not any(each[at] for at in keepers) or sum(each[at] for at in counted) <= most:
            yield counts
            return
        if most >= 0:
            for some in self._within(level, counted, each, most):
                yield self._counts.pack([some.get(at, n) for at, n in enumerate(each)])
        if most < 0 or not set(counted) <= set(keepers):
            yield self._counts.pack([0 if at in keepers else n for at, n in enumerate(each)])

    def _within(
        self, level: int, kinds: Sequence[int], each: Sequence[int], most: int
    ) -> Iterator[dict[int, int]]:
        """The numbers of these kinds that come to `most` at the most, each way as many as can be."""
        if len(kinds) == 1:
            yield {kinds[0]: self._whole(level, kinds[0], min(each[kinds[0]], most))}
            return
        first, *rest = kinds
        for count in range(min(each[first], most), -1, -1):
            if count == self._whole(level, first, count):
                for others in self._within(level, rest, each, most - count):
                    yield {first: count, **others}

    def _whole(self, level: int, at: int, count: int) -> int:
        """As many as can be there, where some must be together in this domain or further in."""
        kind = self._kinds[at]
        if kind.required >= max(level, 0):
            return count if count == kind.count else 0
        return count // kind.slice_size * kind.slice_size if kind.slice_level >= max(level, 0) else count
