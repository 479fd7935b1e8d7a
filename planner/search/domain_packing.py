"""The cheapest way to place every pod of a gang inside one domain: exact, from the hosts up.

    rack r1: 3 free nodes     rack r2: 2 free nodes     four pods of a node each; a rack costs 100, a node 1

    options of r1: 1 pod 101, 2 pods 102, 3 pods 103          options of r2: 1 pod 101, 2 pods 102
    sums after r1:  0:0  1:101  2:102  3:103
    sums after r2:  0:0  1:101  2:102  3:103  4:204           four pods cost 204: 3 + 1 (2 + 2 costs the same)

An *option* is what a domain could hold (a count of each class), with the least cost of holding it. A host's
options are its largest packings; a domain's are the sums of its children's, cut to what the domain may hold.
Costs are whole numbers that add up, so the least cost of the whole gang is the true optimum. Sums from which
no placement within a ceiling can come are dropped (`bounds`, `joint_bounds`); of each count only the children
that offer it cheapest are kept; where nothing comes of a ceiling, a higher one is tried.

The placement is read off the sums backwards: from the last child to the first, each gets the smallest option
that is part of an optimum, so that ties fill earlier nodes (r1 gets three pods above).

The work is counted; past the budget `BudgetEnded` is raised. A search that is kept for later plans has a
budget for each piece of work, so that no answer depends on what an earlier plan left behind. A search with a
`beam` keeps only that many sums at each step: what it finds is valid, though perhaps not the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from typing import Literal, NamedTuple

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass
from planner.model.topology import ROOT
from planner.model.work_budget import BUDGET, BudgetEnded, WorkBudget
from planner.search.bounds import CostLimit, Peaks, cost_limits, fewest, single_peaks, steady, unlimited
from planner.search.capacity_classes import EMPTY, CapacityClass, CapacityClasses, Exclusivity
from planner.search.eligibility_map import EligibilityMap, inside
from planner.search.joint_bounds import Bounds, JointCostLimit, fewest_by_level, level_pair_bounds
from planner.search.mixtures.pooled_classes import PooledClasses
from planner.search.objective import Weights
from planner.search.pod_counts import (
    Allowed,
    CostBySum,
    CountAlgebra,
    Measure,
    Option,
    PodCount,
    SingleClassCounts,
)
from planner.search.result import PodsByNode

_BoundsOfGoal = Literal["unknown", "separate", "joint once", "joint"]
"""Which bounds served so many pods last: those of each level by itself, or those of `joint_bounds`.

The first change with few pods, so that most of what is worked out with them is still good in the next plan;
the second end searches that the first do not, but change with many a pod. So the first are tried first, with
few sums; where that does not do, the second serve; if another plan asks for as many pods, the first are tried
once more, with many sums. It is a matter of time alone: where the one kind does not end a search, the other
is tried.
"""


_SEPARATE_BOUNDS: dict[_BoundsOfGoal, int] = {"unknown": 30_000, "separate": 600_000, "joint once": 600_000}
"""Sums that are tried with the bounds of each level by itself. Between 1,000 and 30,000 the time of a first
plan of 1,024 whole nodes on 9,216 was the same. 144 of them, half of the racks in use, take some 300,000 sums
at first and few in later plans."""


_FITS_BUDGET, _FITS_BEAM = 100_000, 24
"""Sums to tell how many pods of several classes fit one domain, for a message; then a beam, with twice as
many, which may tell fewer. A thirtieth of a plan's budget: a refusal names one such domain a level."""


_MOST_PARTS = 48
"""Parts of wide domains whose sums are kept until they are filled. Of other domains those of the last one
alone are kept: most often it is the one that is filled next. The sums of a large domain take megabytes, and
what is not there is added up again."""


_MOST_WHOLE = 6
"""Classes up to which each set of whole classes is a goal of its own: two to the sixth are 64 goals a
domain."""


_Able = tuple[int, DomainCapacity, EligibilityMap, int]


class FrontierSearch(NamedTuple):
    """What each of several domains offers within a limit, and the least cost of each sum of the first 0, 1, …
    of them."""

    limit: CostLimit
    offers: list[list[Option]]
    stages: list[CostBySum]


class DomainPacking:
    """One gang's kinds in the domains of one topology. See the module's words.

    Without a budget each piece of work has its own, and what is found stays good for later plans.
    """

    def __init__(
        self,
        kinds: tuple[PodClass, ...],
        use: Exclusivity,
        weights: Weights,
        budget: WorkBudget | None = None,
        beam: int = 0,
        classes: CapacityClasses | PooledClasses | None = None,
    ) -> None:
        self._kinds, self._use = kinds, use
        self.weights = weights
        self.classes = CapacityClasses(kinds, use, weights) if classes is None else classes
        self.counts: CountAlgebra = self.classes.counts
        self._own_budgets, self._beam = budget is None, beam
        self._need = self.counts.measure(self.counts.full)
        self._budget = budget or WorkBudget()
        self._sums = Frontier(
            self.counts, self._budget, 1 if isinstance(self.counts, SingleClassCounts) else 2, beam
        )
        self._limits: dict[tuple[object, ...], CostLimit] = {}
        self._options: dict[tuple[int, CostLimit], list[Option]] = {}
        self._best: dict[tuple[int, PodCount], tuple[int | None, int | None]] = {}
        self._floors: dict[tuple[int, PodCount], int] = {}
        self._within: dict[tuple[int, PodCount], CostLimit] = {}
        self._frontiers: dict[tuple[int, PodCount], FrontierSearch] = {}
        self._parts: dict[tuple[int, CostLimit], FrontierSearch] = {}
        self._most: dict[int, int] = {EMPTY: 0}
        self._hard: set[object] = set()
        self._in_trial = False
        self._bounds_of_goal: dict[PodCount, _BoundsOfGoal] = {}
        self._covers: dict[tuple[DomainCapacity, EligibilityMap, PodCount], PodsByNode] = {}

    @property
    def size(self) -> int:
        """How much it remembers."""
        return len(self.classes) + len(self._covers) + len(self._options)

    def reach(self, content: DomainCapacity, match: EligibilityMap) -> PodCount:
        """At least as many of each kind as the domain can hold; exact for a single kind."""
        return self.classes.reach[self.classes.of(content, match)]

    def bound(self, content: DomainCapacity, match: EligibilityMap, level: int) -> Measure:
        """No domain of the level in here holds more of any kind than this; () where none holds anything."""
        return self.classes.peak(self.classes.of(content, match), level)

    def may_hold_all(self, content: DomainCapacity, match: EligibilityMap, level: int) -> bool:
        """Whether a domain of the level in here may hold the whole gang; cheap to tell."""
        peak = self.bound(content, match, level)
        return bool(peak) and all(map(int.__ge__, peak, self._need))

    def least_cost(self, content: DomainCapacity, match: EligibilityMap) -> int:
        """No placement of the whole gang in the domain costs less; cheap to tell."""
        known = self.classes.of(content, match)
        made, need = self.classes.made[known], self._need
        if made is None:
            return 0
        prices = self.weights.domains[made.level + 1 :]
        tops = self._peaks_inside(known, need)
        return made.own + sum(price * fewest(need, top) for price, top in zip(prices, tops, strict=True))

    def cost(self, content: DomainCapacity, match: EligibilityMap, ceiling: int | None = None) -> int | None:
        """The least cost of the whole gang inside the domain; None where it does not fit.

        With a ceiling (which a search that is kept leaves aside) also where it costs more than that.
        """
        known = self.classes.of(content, match)
        if self._own_budgets:
            ceiling = None
        return self._cost_of(known, self.counts.full, ceiling)

    def _cost_of(self, known: int, goal: PodCount, ceiling: int | None) -> int | None:
        cost, tried = self._best.get((known, goal), (None, -1))
        if cost is None and tried is not None and (ceiling is None or ceiling > tried):
            with self._one("cost", known, goal):
                cost = self._least(known, goal, ceiling)
            self._best[known, goal] = (cost, ceiling)
        return cost

    def fits(self, content: DomainCapacity, match: EligibilityMap) -> int:
        """The most pods of the gang that the domain can hold at once."""
        known = self.classes.of(content, match)
        if known not in self._most:
            self._most[known] = self._most_of(known)
        return self._most[known]

    def _most_of(self, known: int) -> int:
        """By a search of its own; where that is too long, by one with a beam, which may find fewer."""
        for beam in (0, _FITS_BEAM):
            budget = WorkBudget(_FITS_BUDGET << bool(beam))
            search = DomainPacking(self._kinds, self._use, self.weights, budget, beam, self.classes)
            with suppress(BudgetEnded):
                options = search._options_of(known, search._limit(known, self.counts.full, None))
                return max((self.counts.size(counts) for counts, _ in options), default=0)
        return 0

    def place(self, content: DomainCapacity, match: EligibilityMap) -> PodsByNode:
        """The cheapest placement inside a domain that holds the gang; ties fill earlier nodes."""
        cost = self.cost(content, match)
        assert cost is not None, "only a domain that holds the gang is asked for its placement"
        return self._cover(content, match, self.counts.full, cost)

    @contextmanager
    def _one(self, *work: object) -> Iterator[None]:
        """One piece of work, with a budget of its own where the search has none; too hard once is so ever."""
        if not self._own_budgets or self._in_trial:
            yield
            return
        if work in self._hard:
            raise BudgetEnded
        outer, self._budget.left = self._budget.left, BUDGET
        try:
            yield
        except BudgetEnded:
            self._hard.add(work)
            raise
        finally:
            self._budget.left = outer

    # -- options -------------------------------------------------------------------------------------------

    def _limit(
        self, known: int, goal: PodCount, ceiling: int | None, pairs: Bounds | None = None
    ) -> CostLimit:
        """The limit to reach a goal inside a domain of this class within a ceiling, None for none; the
        class's own cost aside."""
        made = self.classes.made[known]
        first = made.level + 1 if made else len(self.weights.domains) - 1
        prices = self.weights.domains[first:]
        tops = self._peaks_inside(known, self.counts.measure(goal), exact=pairs is not None)
        most = unlimited(prices) if ceiling is None else ceiling
        key = (goal, first, tops, most, pairs)
        found = self._limits.get(key)
        if found is None:
            if pairs is None:
                found = CostLimit(self.counts, goal, first, prices, tops, most)
            else:
                found = JointCostLimit(self.counts, goal, first, prices, tops, most, pairs)
            self._limits[key] = found
        return found

    def _peaks_inside(self, known: int, need: Measure, *, exact: bool = False) -> tuple[Peaks, ...]:
        """The tops of the levels inside a class's domain, or of a host alone."""
        if self._own_budgets and not exact and isinstance(self.classes, CapacityClasses):
            peaks = self.classes.peaks[known][self.classes.made[known] is not None :]
            return tuple([single_peaks(steady(peak, need)) for peak in peaks])
        return self.classes.highest.inside(self.classes, known) or (single_peaks(self.classes.held(known)),)

    def _options_of(self, known: int, limit: CostLimit) -> list[Option]:
        """The options of a class that the limit has use for."""
        options = self._options.get((known, limit))
        if options is None:
            made = self.classes.made[known]
            if made is None:
                options = self.classes.options[known]
                level = len(self.weights.domains) - 1
            else:
                with self._one("options", known, limit):
                    options = self._sums_of(made, known, limit)
                level = made.level + made.part
            if level >= limit.first:
                allowed = limit.allowed(level)
                least, goal = self.counts.least, limit.goal
                options = [(one, cost) for one, cost in options if cost <= allowed[least(one, goal)]]
            self._options[known, limit] = options
        return options

    def _sums_of(self, made: CapacityClass, known: int, limit: CostLimit) -> list[Option]:
        """What the children of a domain hold together; `start` is what touching the domain itself breaks."""
        if not made.part and self._wholes(made.level):
            return self._whole_options(known, limit.goal)
        if made.part:
            stage = self._in_part(known, limit).stages[-1]
            return sorted((counts, cost) for counts, cost in stage.items() if counts != self.counts.zero)
        price = self.weights.domains[made.level] if made.level >= limit.first else made.own
        stage = self._freely(made.children, limit, made.level + 1, made.own - price).stages[-1]
        kept: CostBySum = {}
        for counts, cost in stage.items():
            for one in self.classes.each_kept(made.level, counts, named=made.named, caps=made.caps):
                if one != self.counts.zero and cost + price < kept.get(one, cost + price + 1):
                    kept[one] = cost + price
        return sorted(self.counts.undominated(kept).items())

    def _in_part(self, known: int, limit: CostLimit) -> FrontierSearch:
        """What the children of a part come to, for they are asked for again when the part is filled."""
        found = self._parts.pop((known, limit), None)
        if found is None:
            made = self.classes.made[known]
            assert made is not None, "a part is no host"
            found = self._freely(made.children, limit, made.level + 1)
        self._parts[known, limit] = found
        if len(self._parts) > _MOST_PARTS:
            del self._parts[next(iter(self._parts))]
        return found

    def _wholes(self, level: int) -> bool:
        """Whether in a domain of the level several kinds are each wholly or not at all."""
        return 1 < len(self._kinds) <= _MOST_WHOLE and all(
            kind.count == 1 or kind.required >= level > ROOT for kind in self._kinds
        )

    def _whole_options(self, known: int, goal: PodCount) -> list[Option]:
        """The options of whole kinds, each set of them a goal of its own."""
        made = self.classes.made[known]
        assert made is not None, "hosts have their options"
        found: CostBySum = {}
        each = [
            n if n == kind.count else 0 for n, kind in zip(self.counts.each(goal), self._kinds, strict=True)
        ]
        for taken in product(*((0, n) if n else (0,) for n in each)):
            part = self.counts.pack(taken)
            kept = self.classes.each_kept(made.level, part, named=made.named, caps=made.caps)
            if part and kept == (part,):
                cost = self._cost_of(known, part, None)
                if cost is not None:
                    found[part] = cost
        return sorted(self.counts.undominated(found).items())

    def _least(self, known: int, goal: PodCount, ceiling: int | None) -> int | None:
        need = self.counts.measure(goal)
        if known == EMPTY or any(map(int.__lt__, self.classes.held(known), need)):
            return None
        made = self.classes.made[known]
        if made is None:
            options = self.classes.options[known]
            return min((cost for counts, cost in options if self.counts.covers(counts, goal)), default=None)
        if self._beam or not self._joint_bounds_hold(made):
            return self._least_within(known, goal, ceiling)
        state = self._bounds_of_goal.get(goal, "unknown")
        if state != "joint":
            with suppress(BudgetEnded), self._trial(_SEPARATE_BOUNDS[state]):
                cost = self._least_within(known, goal, ceiling)
                if state == "joint once":
                    self._bounds_of_goal[goal] = "separate"
                return cost
        self._bounds_of_goal[goal] = "joint once" if state == "unknown" else "joint"
        assert isinstance(self.classes, CapacityClasses), "pools have no joint bounds"
        pairs = level_pair_bounds(self.classes, known)
        with suppress(BudgetEnded), self._trial(BUDGET // 2):
            return self._least_within(known, goal, ceiling, pairs)
        return self._least_within(known, goal, ceiling)

    def _joint_bounds_hold(self, made: CapacityClass) -> bool:
        """Whether `joint_bounds` can serve: one class of pods, and two levels or more, all with a price."""
        prices = self.weights.domains[made.level + 1 :]
        one_class = len(self._kinds) == 1 and isinstance(self.classes, CapacityClasses)
        return one_class and len(prices) > 1 and all(prices)

    @contextmanager
    def _trial(self, work: int) -> Iterator[None]:
        """Work that takes so much of the budget at the most, with all that is worked out for it."""
        left, own_budget = self._budget.left, self._own_budgets
        part = self._budget.left = work if own_budget else min(left, work)
        self._in_trial = True
        try:
            yield
        finally:
            self._in_trial = False
            self._budget.left = left if own_budget else self._budget.left + left - part

    def _least_within(
        self, known: int, goal: PodCount, ceiling: int | None, pairs: Bounds | None = None
    ) -> int | None:
        """The least cost by trying one ceiling after another; with `pairs` by the bounds over two levels."""
        made, need = self.classes.made[known], self.counts.measure(goal)
        assert made is not None, "a host has its options"
        prices, tops = (
            self.weights.domains[made.level + 1 :],
            self._peaks_inside(known, need, exact=pairs is not None),
        )
        above = None if ceiling is None else ceiling - made.own
        floor = max(0, self._floors.get((known, goal), 0) - made.own)
        tried = floor - 1
        needed = [fewest(need, top) for top in tops] if pairs is None else fewest_by_level(goal, tops, pairs)
        attempts = cost_limits(needed, prices, self.counts.size(goal), floor)
        for most in [unlimited(prices)] if self._beam else attempts:
            if most <= tried:
                continue
            tried, limit = most, self._limit(known, goal, most, pairs)
            reached = self._towards(made.children, limit, made.level + 1, above)
            inner = reached.stages[-1].get(goal)
            if inner is not None:
                self._within[known, goal] = limit
                self._frontiers.clear()
                self._frontiers[known, goal] = reached
                return inner + made.own
            if above is not None and most >= above:
                return None
        return None

    def _towards(
        self, children: Sequence[int], limit: CostLimit, level: int, ceiling: int | None
    ) -> FrontierSearch:
        """What these domains of the level do for the goal, and what they come to one after another."""
        offers = self._offers(children, limit, level, 0)
        reaches = [self.classes.reach[child] for child in children]
        return FrontierSearch(limit, offers, self._sums.stages(offers, reaches, limit, level, ceiling))

    def _freely(
        self, children: Sequence[int], limit: CostLimit, level: int, start: int = 0
    ) -> FrontierSearch:
        """The same, whether or not these domains lead to the goal by themselves."""
        offers = self._offers(children, limit, level, start)
        stages: list[CostBySum] = [{self.counts.zero: start}]
        for options in offers:
            stages.append(self._sums.extended(stages[-1], options, limit, level) if options else stages[-1])
        return FrontierSearch(limit, offers, stages)

    def _offers(
        self, children: Sequence[int], limit: CostLimit, level: int, start: int
    ) -> list[list[Option]]:
        """What these domains of the level offer inside one that costs `start` by itself."""
        return cheapest(children, partial(self._options_of, limit=limit), limit.copies(level, start))

    # -- the placement -------------------------------------------------------------------------------------

    def _cover(
        self, content: DomainCapacity, match: EligibilityMap, target: PodCount, cost: int
    ) -> PodsByNode:
        if not content.children:
            return [(0, self.counts.each(target))]
        placed = self._covers.get((content, match, target))
        if placed is None:
            with self._one("cover", content, match, target):
                placed = self._covers[content, match, target] = self._covered(content, match, target, cost)
        return placed

    def _covered(
        self, content: DomainCapacity, match: EligibilityMap, target: PodCount, cost: int
    ) -> PodsByNode:
        known = self.classes.of(content, match)
        made = self.classes.made[known]
        assert made is not None, "hosts are covered by themselves"
        able = self._able(content, match)
        reached = self._reached(known, made, target, cost - made.own, [one for *_, one in able])
        if target not in reached.stages[-1]:  # only a beam loses what its own options promised
            raise BudgetEnded
        return self._dealt(able, reached, target, reached.stages[-1][target])

    def _able(self, content: DomainCapacity, match: EligibilityMap) -> list[_Able]:
        """The children or parts that can hold something: where their nodes start, and their class."""
        able: list[_Able] = []
        start = 0
        for _, child, its in inside(content, match):
            if known := self.classes.of(child, its):
                able.append((start, child, its, known))
            start += child.size
        return able

    def _dealt(
        self, able: Sequence[_Able], reached: FrontierSearch, target: PodCount, cost: int
    ) -> PodsByNode:
        """Where the pods of `target` go among these children, at this cost: by walking the sums backwards.

        From the last child to the first, each gets the smallest option that still is part of a placement of
        that cost, and the children before it hold the rest.
        """
        placed: list[PodsByNode] = []
        for place in range(len(able) - 1, -1, -1):
            start, child, its, part = able[place]
            price, rest = self._step(reached.stages[place], reached.offers[place], target, cost)
            given = self.counts.minus(target, rest)
            if given != self.counts.zero:
                if child.is_chunk:
                    freely = self._in_part(part, reached.limit)
                    some = self._dealt(self._able(child, its), freely, given, price)
                else:
                    some = self._cover(child, its, given, price)
                placed.append([(start + at, counts) for at, counts in some])
            target, cost = rest, cost - price
        return [one for some in reversed(placed) for one in some]

    def _reached(
        self, known: int, made: CapacityClass, target: PodCount, cost: int, children: Sequence[int]
    ) -> FrontierSearch:
        """What these children of a domain come to, in this order, at the cost that the target has."""
        if made.ordered and (known, target) in self._frontiers:
            return self._frontiers[known, target]
        limit = self._within.get((known, target))
        if limit is None:
            limit = self._limit(known, target, None if self._beam else cost)
        return self._towards(children, limit, made.level + 1, None if self._beam else cost)

    def _step(
        self, before: CostBySum, options: Sequence[Option], target: PodCount, cost: int
    ) -> tuple[int, PodCount]:
        """The price of the last child's option and what the former children hold: as much as they can."""
        for counts, price in [(self.counts.zero, 0), *options]:
            rests = [
                self.counts.least(held, target)
                for held, paid in before.items()
                if paid + price == cost and self.counts.covers(self.counts.add(held, counts), target)
            ]
            if rests:
                return price, max(rests)
        raise AssertionError("a sum was reached by no option")


class Frontier:
    """Sums of options by one algebra; `effort` is what trying one sum counts against the budget."""

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
        stages: list[CostBySum] = [{counts.zero: start}]
        allowed = limit.allowed(level)
        for place, options in enumerate(offers):
            stage = stages[-1]
            if options:
                stage = counts.sums(stage, options, goal, allowed)
                self._budget.spend(len(stages[-1]) * (len(options) + 1) * self._effort)
            ahead = rest[place + 1]
            if ahead != counts.full:
                stage = {s: c for s, c in stage.items() if counts.covers(counts.add(s, ahead), goal)}
            stages.append(self.narrowed(stage, allowed) if options else stage)
        return [{s: c - start for s, c in stage.items()} for stage in stages] if start else stages

    def extended(
        self, stage: CostBySum, options: Sequence[Option], limit: CostLimit, level: int
    ) -> CostBySum:
        """The sums with one more domain's options."""
        self._budget.spend(len(stage) * (len(options) + 1) * self._effort)
        allowed = limit.allowed(level)
        return self.narrowed(self._counts.sums(stage, options, limit.goal, allowed), allowed)

    def narrowed(self, stage: CostBySum, allowed: Allowed) -> CostBySum:
        """The sums that no larger sum costs as little as; at most the beam's number of them.

        Half of a beam are the largest, half those that leave most room below what they may cost.
        """
        kept = self._counts.undominated(stage)
        self._budget.spend(len(stage))
        if not self._beam or len(kept) <= self._beam:
            return kept
        size = self._counts.size
        largest = sorted(kept, key=lambda one: (-size(one), kept[one], one))[: self._beam // 2]
        roomiest = sorted(kept, key=lambda one: (kept[one] - allowed[one], -size(one), one))[: self._beam]
        chosen = list(dict.fromkeys([*largest, *roomiest]))[: self._beam]
        return {one: kept[one] for one in chosen}


def cheapest(
    classes: Sequence[int], options: Callable[[int], list[Option]], copies: int
) -> list[list[Option]]:
    """The options of domains of these classes, without those that so many others offer at less, or as cheap
    and earlier.

    Where a placement uses no more than so many domains, one of the others is free to stand in: so the best
    placement, and the first of equal ones, is among what is left.
    """
    if copies >= len(classes):
        return [options(one) for one in classes]
    seen: dict[int, int] = {}
    tables: list[list[Option]] = []
    for one in classes:
        before = seen[one] = seen.get(one, -1) + 1
        tables.append(options(one) if before < copies else [])
    offers = sorted([(*option, place) for place, table in enumerate(tables) for option in table])
    kept: list[list[Option]] = [[] for _ in tables]
    last, left = -1, copies
    for counts, cost, place in offers:
        if counts != last:
            last, left = counts, copies
        if left:
            left -= 1
            kept[place].append((counts, cost))
    return kept
