"""The search for several classes of pods: every mixture, and where these are too many, pooled.

    prefill: 4 pods of 4 GPUs    decode: 8 pods of 1 GPU      24 GPUs together: six nodes of 4 at the least
    pooled: the six cheapest nodes by GPUs; dealt: four take a prefill pod, two take four decode pods: proved

A piece of work that has tried many sums is looked at pooled (``pooled_classes``): the cheapest hosts that
have enough of the direction that lacks most, then of the next one in which they turn out short, until the
pods can be dealt to just these hosts. What that costs is the optimum. Where they cannot be dealt although
nothing is short, every mixture is tried as before.

A place that was found pooled is looked for once more by trying mixtures, now that its cost is known, so that
the first of equal ones is the answer; only where that has no end are the pods where they were dealt.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass
from planner.model.work_budget import BUDGET, BudgetEnded, WorkBudget
from planner.search.capacity_classes import CapacityClass, CapacityClasses, Exclusivity
from planner.search.domain_packing import DomainPacking, FrontierSearch
from planner.search.eligibility_map import EligibilityMap
from planner.search.mixtures.host_assignment import ChosenDomain, HostAssignment, PodsByHost
from planner.search.mixtures.pooled_classes import Direction, PooledClasses, directions, weight
from planner.search.objective import Weights
from planner.search.pod_counts import PodCount
from planner.search.result import PodsByNode

_FIRST = 150_000
"""Sums of mixtures that a piece of work tries before it is looked at pooled: a twentieth of a plan's
budget, within which most mixtures are done."""


_FINE = 1 << 20
"""Ratios are compared as whole numbers of this many parts."""


_MOST_ALONG = 5
"""Directions of one pool: with more, its sums are as many as those of the mixtures."""


class _PooledPacking(DomainPacking):
    """The search for the cheapest hosts that have enough in some directions."""

    classes: PooledClasses

    def __init__(
        self, pooled: PooledClasses, use: Exclusivity, weights: Weights, budget: WorkBudget | None
    ) -> None:
        super().__init__((), use, weights, budget, classes=pooled)

    def cheapest(
        self, known: int, goal: PodCount, floor: int, ceiling: int | None
    ) -> tuple[int, ChosenDomain] | None:
        """The least cost of enough for the goal in a domain of the class, with the hosts; None where there is
        none or it is above the ceiling. It is known not to be below the floor."""
        self._floors[known, self.classes.goal(goal)] = floor
        cost = self._cost_of(known, self.classes.goal(goal), ceiling)
        if cost is None or (ceiling is not None and cost > ceiling):
            return None
        return cost, self._chosen(known, self.classes.goal(goal), cost)

    def _chosen(self, known: int, target: PodCount, cost: int) -> ChosenDomain:
        made = self.classes.made[known]
        if made is None:
            return ChosenDomain(known)
        reached = self._frontiers.get((known, target))
        if reached is None:
            reached = self._reached(known, made, target, cost - made.own, made.children)
        return self._chosen_of(known, made, reached, target, reached.stages[-1][target])

    def _chosen_of(
        self, known: int, made: CapacityClass, reached: FrontierSearch, target: PodCount, cost: int
    ) -> ChosenDomain:
        """Which children of a domain or part are to hold the target, as `_dealt` has it."""
        found: list[tuple[int, ChosenDomain]] = []
        for place in range(len(made.children) - 1, -1, -1):
            child = made.children[place]
            price, rest = self._step(reached.stages[place], reached.offers[place], target, cost)
            given = self.counts.minus(target, rest)
            if given != self.counts.zero:
                part = self.classes.made[child]
                if part and part.part:
                    freely = self._in_part(child, reached.limit)
                    found.append((place, self._chosen_of(child, part, freely, given, price)))
                else:
                    found.append((place, self._chosen(child, given, price)))
            target, cost = rest, cost - price
        return ChosenDomain(known, tuple(reversed(found)))


class SeveralClassesPacking(DomainPacking):
    """One gang's several kinds of pods; see the module's words."""

    classes: CapacityClasses

    def __init__(
        self,
        kinds: tuple[PodClass, ...],
        use: Exclusivity,
        weights: Weights,
        budget: WorkBudget,
        spare: WorkBudget,
        beam: int = 0,
        classes: CapacityClasses | None = None,
    ) -> None:
        super().__init__(kinds, use, weights, budget, beam, classes)
        self._spare = spare
        self._pools: dict[tuple[Direction, ...], _PooledPacking] = {}
        self._along: dict[tuple[Direction, ...], tuple[Direction, ...]] = {}
        self._scales: dict[tuple[Direction, ...], PooledClasses] = {}
        self._spread: dict[tuple[int, PodCount], PodsByHost] = {}
        self._undecided: set[tuple[int, PodCount]] = set()

    def _least(self, known: int, goal: PodCount, ceiling: int | None) -> int | None:
        if self._beam or (known, goal) in self._undecided or self.classes.made[known] is None:
            return super()._least(known, goal, ceiling)
        with suppress(BudgetEnded), self._at_most(_FIRST):
            return super()._least(known, goal, ceiling)
        try:
            return self._least_pooled(known, goal, ceiling)
        except BudgetEnded:
            self._undecided.add((known, goal))
        return super()._least(known, goal, ceiling)

    @contextmanager
    def _at_most(self, work: int) -> Iterator[None]:
        """Work that takes so much of the budget at the most."""
        left = self._budget.left
        part = self._budget.left = min(left, work)
        try:
            yield
        finally:
            self._budget.left += left - part

    def _least_pooled(self, known: int, goal: PodCount, ceiling: int | None) -> int | None:
        """The same by pools. Raises `BudgetEnded` where they do not decide it."""
        among = directions(self._kinds, self.counts.each(goal))
        scarcest = self._scarcest(known, goal, among)
        if scarcest is None:
            return None
        deal = HostAssignment(self.classes, among, self._spare)
        along = list(self._along.get(among, (scarcest,)))
        cost = 0
        while len(along) <= _MOST_ALONG:
            found = self._pool(tuple(along)).cheapest(known, goal, cost, ceiling)
            if found is None:
                return None
            cost, chosen = found
            dealt = deal.dealt(chosen, goal)
            if dealt is not None:
                self._spread[known, goal], self._along[among] = dealt, tuple(along)
                return cost
            short = [one for one in deal.short(chosen, goal) if one not in along]
            if not short:
                break
            along.append(short[0])
        raise BudgetEnded

    def _scarcest(self, known: int, goal: PodCount, among: tuple[Direction, ...]) -> Direction | None:
        """The direction of which the domain has least for the need; None where that is too little."""
        if among not in self._scales:
            self._scales[among] = PooledClasses(self.classes, among)
        held, each = self._scales[among].sums(known), self.counts.each(goal)
        needs = [weight(one, each) for one in among]
        if any(map(int.__lt__, held, needs)):
            return None
        return min(zip(held, needs, among, strict=True), key=lambda one: one[0] * _FINE // one[1])[2]

    def _pool(self, along: tuple[Direction, ...]) -> _PooledPacking:
        if along not in self._pools:
            pooled = PooledClasses(self.classes, along)
            budget = self._spare if len(along) > 1 or self._spare.hard else None
            self._pools[along] = _PooledPacking(pooled, self._use, self.weights, budget)
        return self._pools[along]

    # -- the placement -------------------------------------------------------------------------------------

    def place(self, content: DomainCapacity, match: EligibilityMap) -> PodsByNode:
        """See `DomainPacking`; what other domains have cost is no reason to have no placement in the best
        one."""
        if not self._budget.hard:
            self._budget.left = max(self._budget.left, BUDGET)
        return super().place(content, match)

    def _covered(
        self, content: DomainCapacity, match: EligibilityMap, target: PodCount, cost: int
    ) -> PodsByNode:
        known = self.classes.of(content, match)
        dealt = self._spread.get((known, target))
        if dealt is None:
            return super()._covered(content, match, target, cost)
        with suppress(BudgetEnded):
            return super()._covered(content, match, target, cost)
        return self._as_dealt(content, match, dealt)

    def _as_dealt(self, content: DomainCapacity, match: EligibilityMap, dealt: PodsByHost) -> PodsByNode:
        """The pods where they were dealt: children of a class stand for one another, in their order."""
        if not content.children:
            return [(0, self.counts.each(dealt[()]))]
        made = self.classes.made[self.classes.of(content, match)]
        assert made is not None, "only hosts have no children"
        places: dict[int, list[int]] = {}
        for place, known in enumerate(made.children):
            places.setdefault(known, []).append(place)
        placed: PodsByNode = []
        for start, child, its, known in self._able(content, match):
            place = places[known].pop(0)
            inside = {way[1:]: counts for way, counts in dealt.items() if way[0] == place}
            if inside:
                placed += [(start + at, counts) for at, counts in self._as_dealt(child, its, inside)]
        return placed
