"""Sums of options: which numbers of pods several domains hold together, and at what lowest cost.

    options of r1: 1 pod 101, 2 pods 102        of r2: 1 pod 101, 2 pods 102        the gang: three pods
    sums after r1: 1:101  2:102                 after r2: 3:203                     three pods cost 203
    read backwards: r2 gets its smallest option with which the total is 203, 1 pod at 101; r1 holds the other
    two pods at 102

A sum with which no placement within the limit is possible is dropped at once: here no pods in r1, because r2
cannot hold all three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from planner.model.effort.deadline import poll
from planner.model.effort.work_budget import WorkBudget
from planner.search.packing.bounds import CostLimit
from planner.search.pod_counts import Allowed, CostBySum, CountAlgebra, Option, PodCount


class FrontierSearch(NamedTuple):
    """The options of several domains within a limit (`offers`), and the lowest cost of each sum over the
    first 0, 1, … of these domains (`stages`)."""

    limit: CostLimit
    offers: list[list[Option]]
    stages: list[CostBySum]

    def shares(
        self, counts: CountAlgebra, target: PodCount, cost: int
    ) -> Iterator[tuple[int, PodCount, int]]:
        """Yields the domains that hold the target at this cost, the last one first: index, count and price.

        Each domain gets its smallest option that is part of a placement of this cost; the domains before it
        hold the rest. So earlier domains hold as much as they can.
        """
        for index in range(len(self.offers) - 1, -1, -1):
            price, rest = _smallest_option(counts, self.stages[index], self.offers[index], target, cost)
            share = counts.minus(target, rest)
            if share != counts.zero:
                yield index, share, price
            target, cost = rest, cost - price


class Frontier:
    """Adds up options of one count algebra to sums. `effort`: the steps of the budget that one sum costs;
    `beam`: the number of sums that are kept at each step, 0 for all."""

    def __init__(self, counts: CountAlgebra, budget: WorkBudget, effort: int, beam: int) -> None:
        self._counts, self._budget, self._effort, self._beam = counts, budget, effort, beam

    def stages(
        self,
        offers: Sequence[Sequence[Option]],
        reaches: Sequence[PodCount],
        limit: CostLimit,
        level: int,
        ceiling: int | None,
    ) -> list[CostBySum]:
        """Returns the sums over the first 0, 1, … of these domains of the level, up to the limit's goal.

        A sum is dropped if the remaining domains cannot hold the rest of the goal (`reaches`: the maximum
        that each holds), or if its cost exceeds the limit or the ceiling, whichever is lower.
        """
        counts, goal = self._counts, limit.goal
        rest = [counts.zero]
        for reach in reversed(reaches):
            rest.append(counts.add(rest[-1], reach))
        rest.reverse()
        # A ceiling below that of the limit is applied by costs that begin above zero: the limit stays the
        # same object, so that its cached lists are used.
        start = 0 if ceiling is None else max(0, limit.ceiling - ceiling)
        stages: list[CostBySum] = [{counts.zero: start}]
        allowed = limit.allowed(level)
        for index, options in enumerate(offers):
            stage, needed = stages[-1], counts.minus(goal, rest[index + 1])
            if options and stage:
                stage = counts.sums(stage, options, goal, allowed, needed)
                self._budget.spend(len(stages[-1]) * (len(options) + 1) * self._effort)
            if needed != counts.zero:
                stage = {s: c for s, c in stage.items() if counts.covers(s, needed)}
            stages.append(self.narrowed(stage, allowed) if options else stage)
        if not start or goal not in stages[-1]:  # of a search without a placement, no sum is read
            return stages
        return [{s: c - start for s, c in stage.items()} for stage in stages]

    def extended(
        self, stage: CostBySum, options: Sequence[Option], limit: CostLimit, level: int
    ) -> CostBySum:
        """Returns the sums with the options of one more domain added."""
        self._budget.spend(len(stage) * (len(options) + 1) * self._effort)
        allowed = limit.allowed(level)
        return self.narrowed(self._counts.sums(stage, options, limit.goal, allowed), allowed)

    def narrowed(self, stage: CostBySum, allowed: Allowed) -> CostBySum:
        """Returns the sums for which no larger sum has the same or a lower cost; with a beam, at most `beam`
        of them: half are the largest sums, the others those with costs furthest below their allowed cost.
        """
        kept = self._counts.undominated(stage)
        self._budget.spend(len(stage))
        if not self._beam or len(kept) <= self._beam:
            return kept
        sizes: dict[PodCount, int] = {}
        passed: dict[PodCount, int] = {}
        for counts, cost in kept.items():
            poll("search")  # sizes and allowed costs take time for each pod class
            sizes[counts], passed[counts] = -self._counts.size(counts), cost - allowed[counts]
        largest = sorted(kept, key=lambda counts: (sizes[counts], kept[counts], counts))[: self._beam // 2]
        roomiest = sorted(kept, key=lambda counts: (passed[counts], sizes[counts], counts))[: self._beam]
        chosen = list(dict.fromkeys([*largest, *roomiest]))[: self._beam]
        return {counts: kept[counts] for counts in chosen}


def cheapest(
    classes: Sequence[int], options: Callable[[int], list[Option]], copies: int
) -> list[list[Option]]:
    """Returns the options of domains of these classes, a list for each domain. An option is left out if
    `copies` other domains offer the same count at no higher cost.

    `copies`: the maximum number of domains that a placement uses, so it leaves one of these other domains
    unused, which can replace the option. The best placement, and the first of equal ones, therefore consists
    of the remaining options.
    """
    if copies >= len(classes):
        return [options(class_id) for class_id in classes]
    seen: dict[int, int] = {}
    tables: list[list[Option]] = []
    for class_id in classes:
        earlier = seen[class_id] = seen.get(class_id, -1) + 1
        tables.append(options(class_id) if earlier < copies else [])
    offers = sorted([(*option, index) for index, table in enumerate(tables) for option in table])
    kept: list[list[Option]] = [[] for _ in tables]
    last, left = -1, copies
    for counts, cost, index in offers:
        if counts != last:
            last, left = counts, copies
        if left:
            left -= 1
            kept[index].append((counts, cost))
    return kept


def _smallest_option(
    counts: CountAlgebra, before: CostBySum, options: Sequence[Option], target: PodCount, cost: int
) -> tuple[int, PodCount]:
    """Returns the price of the smallest option with which the target is reached at this cost, and the count
    that the domains before it hold. `before`: the sums over these domains.
    """
    if before.get(target) == cost:  # most domains hold no pod of a placement
        return 0, target
    held_at: dict[int, list[PodCount]] = {}
    for held, paid in before.items():
        held_at.setdefault(paid, []).append(held)
    for option, price in [(counts.zero, 0), *options]:
        rests = [
            counts.smaller(held, target)
            for held in held_at.get(cost - price, ())
            if counts.covers(counts.add(held, option), target)
        ]
        if rests:
            return price, max(rests)
    raise AssertionError("a sum was reached by no option")
