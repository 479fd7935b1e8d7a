"""Sets of bundles in the order of what moving them costs, the cheapest first: a best-first search.

A bundle is a set of movables that leave together (those of a rack, of a node, or one alone). Bundles may
share movables (a gang in two racks), which are paid once. The state of the search is the bundles chosen so
far and the next to decide on; its bound is the cost of those chosen and the least that is surely paid
besides: as many of the bundles to come as are lacking, each with the movables that no other bundle has.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from planner.planning.defragmentation.movable import NO_COST, Cost, Movable, cost_of

Bundle = frozenset[str]
"""Names of movables."""

Chosen = tuple[int, ...]
"""Indexes of bundles, ascending."""

STATES = 200_000
"""States that one search looks at: some seconds. Ten racks out of a thousand take a thousand, unless many
of the cheapest have movables that fit nowhere else."""


@dataclass(slots=True)
class CheapestFirst:
    """One search over bundles, which stand from the cheapest on.

    `lacking`: how many bundles must at least be added to the chosen ones; 0 for a set that may do. `further`:
    sets that contain one that may do are looked at too. `max_lost`: GPU seconds of work that a set may lose;
    `over`: the least of those that were left out for it, inf for none. `spent`: the search ended because of
    `STATES`.
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
        """Each set that may do with its cost, in the order of cost, then of the bundles."""
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
        """Queue what can become of the chosen bundles: themselves, just chosen, and more of them."""
        cost = cost_of(self.movables[name] for name in self.names(chosen))
        if cost.lost > self.max_lost:  # it is a sum: whatever contains these loses as much at least
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
        """The movables of these bundles, each once, in a fixed order."""
        return sorted(frozenset().union(*(self.bundles[index] for index in chosen)))

    def _cheapest_rest(self, lacking: int) -> list[list[Cost]]:
        """From each bundle on, the least costs of what only one bundle has: as many as lack at first."""
        shared = Counter(name for bundle in self.bundles for name in bundle)
        rests: list[list[Cost]] = [[]]
        for bundle in reversed(self.bundles):
            own = [self.movables[name] for name in bundle if shared[name] == 1]
            paid = Cost(NO_COST.highest, cost_of(own).priorities, 0)  # of a maximum nothing is surely added
            rests.append(heapq.nsmallest(max(1, lacking), (*rests[-1], paid)))
        return rests[::-1]
