"""The best domain of a level for a gang, and the one that comes closest, without looking at every domain.

    b1: r1 ...   r2 ...      a dot is a free node; three pods of a node each, level rack
    b2: r3 ....

r1 and r2 are equal, so only r1 is looked at. r1 and r3 cost one rack and three nodes each; r3 would leave a
node free and r1 none, so r1 is the best of the root: the best of a domain is the best of its children's
bests. These are remembered by content: after a change only the path from the changed node up to the root is
looked at again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass, separated
from planner.model.topology import ROOT
from planner.search.domain_packing import DomainPacking
from planner.search.eligibility_map import EligibilityMap, inside

ChildPath = tuple[int, ...]
"""The places among children that lead from a domain down to one inside it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The best domain inside another. `key` is the order among candidates: what the placement costs and what
    is broken around it, then how full it is around it, from the nearest domain outwards."""

    key: tuple[int, ...]
    way: ChildPath


@dataclass(frozen=True, slots=True)
class BestPartialFit:
    """The domain that holds the most pods, though not all: at most so many, and where it is."""

    fits: int
    way: ChildPath


class DomainRanking:
    """The domains of a topology, ranked for kinds of pods with a gang's required level."""

    def __init__(self, search: DomainPacking, kinds: tuple[PodClass, ...], required: int) -> None:
        self.search, self._kinds = search, kinds
        together = {required, *(kind.required for kind in kinds), *(kind.slice_level for kind in kinds)}
        self._together = frozenset(together - {ROOT})
        alone = {level for kind in kinds if kind.count > 1 for level in kind.anti_affinity_levels}
        pairs = [(one, other) for one in kinds for other in kinds if one is not other]
        self._apart = frozenset(alone.union(*(separated(one, other) for one, other in pairs)))
        self._bests: dict[tuple[DomainCapacity, EligibilityMap, int, bool], Candidate | None] = {}
        self._nearests: dict[tuple[DomainCapacity, EligibilityMap, int, bool], BestPartialFit | None] = {}
        self._ceilings: dict[int, int] = {}

    @property
    def size(self) -> int:
        """How much it remembers."""
        return len(self._bests) + len(self._nearests) + self.search.size

    def best(
        self, content: DomainCapacity, match: EligibilityMap, level: int, *, clear: bool
    ) -> Candidate | None:
        """The best domain of the level that holds the whole gang; `clear`: that no other gang touches."""
        if not content.is_chunk and (
            not self._may(content, level, clear=clear) or self._keeps_apart(content)
        ):
            return None
        if not self.search.may_hold_all(content, match, level):
            return None
        key = (content, match, level, clear)
        if key in self._bests:
            return self._bests[key]
        if content.level == level and not content.is_chunk:
            cost = self.search.cost(content, match, self._ceilings.get(level))
            best = None if cost is None else Candidate((cost,), ())
            if cost is not None:
                self._lower(level, cost)
        else:
            best = self._best_inside(content, match, level, clear=clear)
            if best is not None and content.level > ROOT and not content.is_chunk:
                cost, *around = best.key
                breaks = self.search.weights.breaks(content)
                best = Candidate((cost + breaks, *around, content.worth), best.way)
        self._bests[key] = best
        return best

    def _best_inside(
        self, content: DomainCapacity, match: EligibilityMap, level: int, *, clear: bool
    ) -> Candidate | None:
        best: Candidate | None = None
        for place, child, its in _different(content, match):
            if best is not None and child.coarsest == level and self._dearer(child, its, best.key[0]):
                continue
            found = self.best(child, its, level, clear=clear)
            if found is not None and (best is None or found.key < best.key):
                best = Candidate(found.key, _way(place, child, found.way))
        return best

    def _lower(self, level: int, cost: int) -> None:
        """A domain was found: of no use is one that costs more than this can with what is around it."""
        weights = self.search.weights
        around = sum(weights.opened[: max(level, 0)]) + weights.unheld
        self._ceilings[level] = min(cost + around, self._ceilings.get(level, cost + around))

    def _dearer(self, content: DomainCapacity, match: EligibilityMap, cost: int) -> bool:
        return self.search.least_cost(content, match) >= cost

    def nearest(
        self, content: DomainCapacity, match: EligibilityMap, level: int, *, clear: bool
    ) -> BestPartialFit | None:
        """The domain of the level that holds the most pods of the gang; None where none may be used."""
        if not content.is_chunk and not self._may(content, level, clear=clear):
            return None
        if content.level == level and not content.is_chunk:
            return BestPartialFit(self.search.counts.size(self.search.reach(content, match)), ())
        key = (content, match, level, clear)
        if key not in self._nearests:
            best: BestPartialFit | None = None
            for place, child, its in _different(content, match):
                if best is not None and self._most(child, its, level) <= best.fits:
                    continue
                found = self.nearest(child, its, level, clear=clear)
                if found is not None and (best is None or found.fits > best.fits):
                    best = BestPartialFit(found.fits, _way(place, child, found.way))
            self._nearests[key] = best
        return self._nearests[key]

    def _most(self, content: DomainCapacity, match: EligibilityMap, level: int) -> int:
        """No domain of the level in here holds more pods than this."""
        return sum(self.search.bound(content, match, level)[: len(self._kinds)])

    def _may(self, content: DomainCapacity, level: int, *, clear: bool) -> bool:
        """Whether domains of the level in here may be used: they have the labels, and nobody is there."""
        if content.level in self._together and not content.named:
            return False
        return not (clear and content.level == level and content.gang)

    def _keeps_apart(self, content: DomainCapacity) -> bool:
        """Whether pods that must differ over this level would be in one of its domains."""
        return content.named and content.level in self._apart


def _different(
    content: DomainCapacity, match: EligibilityMap
) -> Iterator[tuple[int, DomainCapacity, EligibilityMap]]:
    """The children or parts with their places; of equal ones the first, for the others can be no better."""
    seen: set[tuple[DomainCapacity, EligibilityMap]] = set()
    for place, one, its in inside(content, match):
        if (one, its) not in seen:
            seen.add((one, its))
            yield place, one, its


def _way(place: int, child: DomainCapacity, way: ChildPath) -> ChildPath:
    """The way from a domain through a child at the place, or through a part that begins there."""
    return (place + way[0], *way[1:]) if child.is_chunk else (place, *way)
