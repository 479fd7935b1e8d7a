"""Sets of bundles in the order of the cost of moving them: a best-first search.

A bundle is a set of movables that leave together: those of a rack, of a node, or a single one. Bundles may
share movables (a gang in two racks), which are paid once. A state of the search is the bundles chosen so far
and the next bundle to decide on. Its lower bound is the cost of the chosen bundles plus the least that is
certainly added: as many further bundles as are lacking, each counted with the movables that no other bundle
has.

Example: to free two of the racks r1 (cost 1), r2 (cost 2) and r3 (cost 4), the sets come in the order r1 r2
(3), r1 r3 (5), r2 r3 (6).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from planner.planning.defragmentation.movable import NO_COST, Cost, Movable, cost_of

Bundle = frozenset[str]
"""The names of movables."""

Chosen = tuple[int, ...]
"""Indexes of bundles, ascending."""

STATES = 200_000
"""Maximum number of states in one search, which takes some seconds. Ten racks out of a thousand take a
thousand states, unless many of the cheapest have movables that fit nowhere else.
"""


@dataclass(slots=True)
class CheapestFirst:
    """One search over bundles, which are sorted by cost.

    `lacking`: returns how many bundles must still be added to the chosen ones; 0 for a sufficient set.
    `further`: also continue with supersets of a sufficient set. `max_lost`: maximum GPU seconds of work that
    a set may lose. `over`: the smallest loss of a set that was left out for that, inf for none. `spent`: the
    search ended because of `STATES`.
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
        """Adds to the queue the states that follow from the chosen bundles: the set itself, and extensions of
        it.
        """
        cost = cost_of(self.movables[name] for name in self.names(chosen))
        if cost.lost > self.max_lost:  # the loss is a sum, so every superset loses at least as much
            self.over = min(self.over, cost.lost)
            return
        lacking = self.lacking(chosen)
        just_chosen = not index or (bool(chosen) and chosen[-1] == index - 1)
        if not lacking and just_chosen:
            heapq.heappush(heap, (cost, chosen, -1))
        if (lacking or self.further) and index < len(self.bundles) and index + lacking <= len(self.bundles):
            rest = self._rests[index][: max(1, lacking)]
            heapq.heappush(heap, (sum(rest, cost), chosen, index))

    def names(self, chosen: Chosen) -> list[str]:
        """Returns the movables of these bundles, each once, in a fixed order."""
        return sorted(frozenset().union(*(self.bundles[index] for index in chosen)))

    def _cheapest_rest(self, lacking: int) -> list[list[Cost]]:
        """Returns, for each bundle and the ones after it, the smallest costs of movables that only one bundle
        has.

        Each list has as many costs as bundles are lacking at first.
        """
        shared = Counter(name for bundle in self.bundles for name in bundle)
        rests: list[list[Cost]] = [[]]
        for bundle in reversed(self.bundles):
            own = [self.movables[name] for name in bundle if shared[name] == 1]
            paid = Cost(
                NO_COST.highest, cost_of(own).priorities, 0
            )  # further bundles may not raise the maximum
            rests.append(heapq.nsmallest(max(1, lacking), (*rests[-1], paid)))
        return rests[::-1]
