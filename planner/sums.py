"""Adding up what several domains hold: the least cost of each sum of their options."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from planner.budget import Budget
from planner.counts import Algebra, Counts, One, Option, Stage
from planner.limit import Limit

_MOST_COMPARED = 256
"""Sums of several kinds that are compared with one another; of more all are kept."""


class Sums:
    """Sums of options by one algebra; `effort` is what trying one sum counts against the budget."""

    def __init__(self, counts: Algebra, budget: Budget, effort: int, beam: int) -> None:
        self._counts, self._budget, self._effort, self._beam = counts, budget, effort, beam

    def stages(
        self,
        offers: Sequence[Sequence[Option]],
        reaches: Sequence[Counts],
        limit: Limit,
        level: int,
        ceiling: int | None,
    ) -> list[Stage]:
        """The sums after the first 0, 1, … of the domains of this level, on the way to the limit's goal.

        Those that cannot reach it any more with what the rest can hold (`reaches`) are dropped, and so are
        those that would pass the limit, or the ceiling where that is lower.
        """
        counts, goal = self._counts, limit.goal
        rest = [counts.zero]
        for reach in reversed(reaches):
            rest.append(counts.add(rest[-1], reach))
        rest.reverse()
        start = 0 if ceiling is None else max(0, limit.ceiling - ceiling)
        stages: list[Stage] = [{counts.zero: start}]
        allowed = limit.allowed(level)
        for place, options in enumerate(offers):
            stage = stages[-1]
            if options:
                stage = counts.sums(stage, options, goal, allowed)
                self._budget.spend(len(stages[-1]) * (len(options) + 1) * self._effort)
            ahead = rest[place + 1]
            if ahead != counts.full:
                stage = {s: c for s, c in stage.items() if counts.covers(counts.add(s, ahead), goal)}
            stages.append(self.undominated(stage) if options else stage)
        return [{s: c - start for s, c in stage.items()} for stage in stages] if start else stages

    def extended(self, stage: Stage, options: Sequence[Option], limit: Limit, level: int) -> Stage:
        """The sums with one more domain's options."""
        self._budget.spend(len(stage) * (len(options) + 1) * self._effort)
        return self.undominated(self._counts.sums(stage, options, limit.goal, limit.allowed(level)))

    def undominated(self, stage: Stage) -> Stage:
        """The sums that no larger sum costs as little as; at most the beam's number of them."""
        if isinstance(self._counts, One):
            kept: Stage = {}
            least: int | None = None
            for counts in sorted(stage, reverse=True):
                if least is None or stage[counts] < least:
                    kept[counts] = least = stage[counts]
        else:
            kept = self._undominated_many(stage)
        if self._beam and len(kept) > self._beam:
            largest = sorted(kept.items(), key=lambda item: (-self._counts.size(item[0]), item[1], item[0]))
            kept = dict(largest[: self._beam])
        return kept

    def _undominated_many(self, stage: Stage) -> Stage:
        size = self._counts.size
        if self._beam and len(stage) > 3 * self._beam:
            largest = sorted(stage.items(), key=lambda item: (-size(item[0]), item[1], item[0]))
            stage = dict(largest[: 3 * self._beam])
        if len(stage) > _MOST_COMPARED:
            return stage
        kept: list[Option] = []
        for counts, cost in sorted(stage.items(), key=lambda item: (item[1], -size(item[0]))):
            if not any(self._counts.covers(other, counts) for other, _ in kept):
                kept.append((counts, cost))
        self._budget.spend(len(stage) * len(kept))
        return dict(kept)


def cheapest(tables: Sequence[Sequence[Option]], copies: int) -> list[list[Option]]:
    """Each domain's options without those that so many other domains offer at less, or as cheap and earlier.

    Where a placement uses no more than so many domains, one of the others is free to stand in: so the best
    placement, and the first of equal ones, is among what is left.
    """
    if copies >= len(tables):
        return [list(table) for table in tables]
    offered: dict[Counts, list[tuple[int, int]]] = {}
    for place, table in enumerate(tables):
        for counts, cost in table:
            best = offered.get(counts)
            if best is None:
                offered[counts] = [(cost, place)]
            elif len(best) < copies or (cost, place) < best[-1]:
                insort(best, (cost, place))
                del best[copies:]
    return [
        [(counts, cost) for counts, cost in table if (cost, place) <= offered[counts][-1]]
        for place, table in enumerate(tables)
    ]
