"""How many domains a gang needs at the least, from the most that one, two, … domains of a level hold.

That the fullest rack holds 72 GPUs says that 128 need two racks. That the next ones hold 30 and 24 says that
they need four.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from planner.counts import Measure

if TYPE_CHECKING:
    from planner.classes import DomainClass

Tops = tuple[tuple[int, ...], ...]
"""By what is measured, the most that one, two, … domains of a level hold together. Of further ones none
holds more than the last that is listed; where that holds nothing, none does."""
_FEW = 3
"""Domains up to which a search is steadied; see `steady`."""
_MOST = 64
"""Domains of a level that are listed."""


def fewest(wanted: Measure, tops: Tops) -> int:
    """Domains that hold what is wanted at the least, for the tops of their level."""
    found = 0
    for much, sums in zip(wanted, tops, strict=True):
        highest = sums[-1]
        if not much or not highest:
            continue
        if len(sums) == 1:
            need = -(-much // highest)
        elif much <= highest:
            need = bisect_left(sums, much) + 1
        else:
            last = highest - sums[-2]
            need = len(sums) - (much - highest) // -last
        if need > found:
            found = need
    return found


def tops_of(peak: Measure) -> Tops:
    """The tops where no domain holds more than this."""
    return tuple([(one,) for one in peak])


def steady(peak: Measure, need: Measure) -> Measure:
    """The largest peak that bounds the number of domains alike, where that is a small one.

    What the fullest of some blocks holds changes with many a pod, and with it all that a limit is good for;
    that two of them are needed hardly ever does.
    """
    return tuple(
        max(most, (much - 1) // (-(-much // most) - 1)) if most and 1 < -(-much // most) <= _FEW else most
        for much, most in zip(need, peak, strict=True)
    )


class _Classes(Protocol):
    """What is asked of classes: see `planner.classes`."""

    @property
    def made(self) -> Sequence[DomainClass | None]: ...

    def held(self, known: int, /) -> Measure:
        """The most that a domain of the class holds."""
        ...


class Highest:
    """The tops of the levels inside the domains of each class, down to the hosts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tops, ...]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def inside(self, classes: _Classes, known: int) -> tuple[Tops, ...]:
        """The tops of the levels inside a domain of the class; () of a host."""
        found = self._known.get(known)
        if found is None:
            made = classes.made[known]
            rows = [self._row(classes, child) for child in made.children] if made else []
            found = tuple([_joined(level) for level in zip(*rows, strict=True)])
            self._known[known] = found
        return found

    def _row(self, classes: _Classes, known: int) -> tuple[Tops, ...]:
        """A child's own level and those inside it; of a part only these."""
        made, inside = classes.made[known], self.inside(classes, known)
        return inside if made and made.part else (tops_of(classes.held(known)), *inside)


def _joined(tops: Iterable[Tops]) -> Tops:
    return tuple([_summed(column) for column in zip(*tops, strict=True)])


def _summed(column: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The highest of what one more domain adds to any of these sums."""
    each = sorted([more for sums in column for more in map(int.__sub__, sums, (0, *sums))], reverse=True)
    return tuple(accumulate([more for place, more in enumerate(each[:_MOST]) if more or not place]))
