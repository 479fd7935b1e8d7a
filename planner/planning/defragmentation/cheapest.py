"""Sets of bundles in the order of the cost of moving them: a best-first search.

A bundle is a set of movables that leave together: those of a rack, those of a node, or a single movable.
Bundles may share movables (a gang in two racks), whose cost counts once. A state of the search consists of
the bundles chosen so far and the next bundle to decide on. States are visited in the order of a lower bound:
the cost of the chosen bundles, and of the cheapest remaining bundles, as many as are still lacking. Of a
remaining bundle only the movables in no other bundle count: a chosen bundle may contain the others already.

Example: to free two of the racks r1 (cost 1), r2 (cost 2) and r3 (cost 4), the sets come in the order r1 r2
(3), r1 r3 (5), r2 r3 (6).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from planner.planning.defragmentation.movable import NO_COST, Cost, Movable, cost_of

Bundle = frozenset[str]
"""The names of movables."""

Chosen = tuple[int, ...]
"""Indexes of bundles, ascending."""

STATES = 200_000
"""Maximum number of states in one search, so that it takes at most some seconds. To free ten racks out of a
thousand takes a thousand states, unless many of the cheapest racks have movables without another place.
"""


@dataclass(slots=True)
class CheapestFirst:
    """One search over bundles, which are sorted by cost.

    `lacking`: a function that returns the minimum number of bundles to add to the chosen ones; 0 if they are
    a sufficient set. `further`: whether supersets of a sufficient set are also searched, because the caller
    may find that the set is not enough after all. `max_lost`: the maximum loss of work by a set, in GPU
    seconds. `over`: after the search, the smallest loss above `max_lost` of a set that was left out, inf if
    there was none. `spent`: after the search, whether it ended because of `STATES`.
    """

    bundles: Sequence[Bundle]
    movables: dict[str, Movable]
    lacking: Callable[[Chosen], int]
    further: bool = False
    max_lost: float = inf
    over: float = inf
    spent: bool = False
    _rests: list[list[Cost]] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[Cost, Chosen]]:
        """Yields each sufficient set with its cost, ordered by cost, then by bundles."""
        self._rests = self._cheapest_rest(self.lacking(()))
        heap: list[tuple[Cost, Chosen, int]] = []
        self._push(heap, (), 0)
        for _ in range(STATES):
            if not heap:
                return
            cost, chosen, index = heapq.heappop(heap)
            if index < 0:
                yield cost, chosen
                continue
            self._push(heap, (*chosen, index), index + 1)
            self._push(heap, chosen, index + 1)
        self.spent = bool(heap)

    def _push(self, heap: list[tuple[Cost, Chosen, int]], chosen: Chosen, index: int) -> None:
        """Adds two states to the heap: the chosen set as a result (index -1), if it is sufficient and new,
        and its extensions by the bundles from `index` on.
        """
        cost = cost_of(self.movables[name] for name in self.names(chosen))
        if cost.lost > self.max_lost:  # the loss is a sum, so every superset loses at least as much
            self.over = min(self.over, cost.lost)
            return
        lacking = self.lacking(chosen)
        # If the bundle before `index` was skipped, the chosen set is unchanged and has been pushed before.
        just_chosen = not index or (bool(chosen) and chosen[-1] == index - 1)
        if not lacking and just_chosen:
            heapq.heappush(heap, (cost, chosen, -1))
        if (lacking or self.further) and index < len(self.bundles) and index + lacking <= len(self.bundles):
            # Even if the set is sufficient, its extensions have at least one bundle more.
            rest = self._rests[index][: max(1, lacking)]
            heapq.heappush(heap, (sum(rest, cost), chosen, index))

    def names(self, chosen: Chosen) -> list[str]:
        """Returns the names of the movables in these bundles, each once, sorted."""
        return sorted(frozenset().union(*(self.bundles[index] for index in chosen)))

    def _cheapest_rest(self, lacking: int) -> list[list[Cost]]:
        """Returns for each index a list of the smallest costs of the bundles from this index on, ascending.

        `lacking`: the maximum length of a list (at least 1). A cost here is a lower bound: it leaves out
        movables that are in several bundles.
        """
        shared = Counter(name for bundle in self.bundles for name in bundle)
        rests: list[list[Cost]] = [[]]
        for bundle in reversed(self.bundles):
            own = [self.movables[name] for name in bundle if shared[name] == 1]
            # The highest priority is left out of the bound: it is a maximum, not a sum.
            paid = replace(cost_of(own), highest=NO_COST.highest)
            rests.append(heapq.nsmallest(max(1, lacking), (*rests[-1], paid)))
        return rests[::-1]
