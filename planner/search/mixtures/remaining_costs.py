"""The highest cost at which a mixture can be part of a placement, given the domains that are still to come.

    three racks, the gang needs 24 GPUs, and its least cost is known: 206
    pool of the racks after r1:   12 GPUs cost 103, 16 GPUs cost 104, 24 GPUs cost 205
    r1 holds a mixture of 12 GPUs at 103:   12 GPUs remain, 103 + 103 = 206, it may be part of the placement
    r1 holds a mixture of  8 GPUs at 102:   16 GPUs remain, 102 + 104 = 206, it may be too
    r1 holds a mixture of 10 GPUs at 103:   14 GPUs remain, 103 + 104 = 207, it is dropped

A mixture is a number of pods of each class. The pool of some domains states what they can hold by the total
weight of the pods in a direction alone, here by their GPUs (`packing.pooled_classes`), and at which cost: no
more than that of any mixture of the same weight. So a mixture that is dropped is in no placement of the least
cost, and the search finds the same placement as without dropping any.
"""

from __future__ import annotations

from bisect import bisect_left

from planner.search.packing.pooled_classes import Direction, weight
from planner.search.pod_counts import CostBySum, CountAlgebra, PodCount


class MixtureWeights(dict[PodCount, int]):
    """The weight of each mixture in one direction (a weight for each pod class), computed on first use."""

    def __init__(self, direction: Direction, counts: CountAlgebra) -> None:
        super().__init__()
        self._direction, self._counts = direction, counts

    def __missing__(self, counts: PodCount) -> int:
        pooled = self[counts] = weight(self._direction, self._counts.each(counts))
        return pooled


class AllowedCosts(dict[PodCount, int]):
    """By the pods in the domains so far: the highest cost at which these pods can be part of a placement,
    below zero if they cannot.

    `cost`: the cost of the placement. `goal`: the weight of all its pods. `ahead`: the weights that the
    domains still to come can hold, each with its least cost. A larger weight always costs more.
    """

    def __init__(self, weights: MixtureWeights, ahead: CostBySum, goal: int, cost: int) -> None:
        super().__init__()
        self._weights, self._goal, self._cost = weights, goal, cost
        self._held = sorted(ahead)
        self._costs = [ahead[held] for held in self._held]

    def __missing__(self, counts: PodCount) -> int:
        index = bisect_left(self._held, self._goal - self._weights[counts])
        allowed = self[counts] = self._cost - self._costs[index] if index < len(self._held) else -1
        return allowed
