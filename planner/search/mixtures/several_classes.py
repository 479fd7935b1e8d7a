"""The search for several pod classes: by every mixture of them, or pooled if there are too many mixtures.

    prefill: 4 pods of 4 GPUs    decode: 8 pods of 1 GPU      24 GPUs together: at least six nodes of 4
    pooled: the six cheapest nodes by GPUs; assigned: four take a prefill pod each, two take four decode pods
    each: the placement is proved best

A search with too many mixtures switches to pools (``pooled_classes``). The pooled search finds the cheapest
hosts that have enough weight in the scarcest direction. If the pods can be assigned to these hosts, the cost
of the hosts is the optimum. If they cannot, the direction in which the hosts lack most weight is added, and
the pooled search is repeated. If the hosts lack weight in no direction and the pods still cannot be assigned
to them, every mixture is searched after all.

Once the pools give the optimal cost, the mixtures are searched again within that cost, so that among equal
placements the first one is the answer. If this search runs out of budget, the assignment of the pools is
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod

from planner.cluster.capacity import DomainCapacity
from planner.model.effort.work_budget import BUDGET, BudgetEnded, WorkBudget
from planner.model.pod_class import PodClass
from planner.search.eligibility_map import EligibilityMap
from planner.search.mixtures.host_assignment import ChosenDomain, HostAssignment, PodsByHost
from planner.search.mixtures.remaining_costs import AllowedCosts, MixtureWeights
from planner.search.objective import Weights
from planner.search.packing.capacity_classes import CapacityClass, CapacityClasses, Exclusivity
from planner.search.packing.domain_packing import DomainPacking
from planner.search.packing.frontier import FrontierSearch
from planner.search.packing.pooled_classes import Direction, PooledClasses, directions, weight
from planner.search.pod_counts import CostBySum, PodCount
from planner.search.result import PodsByNode

_FIRST = 150_000
"""Steps of the budget (two for each sum) that a search of mixtures may take before it switches to pools: a
twentieth of a plan's budget, enough to finish most such searches."""


_MAX_MIXTURES = 150
"""Goals with more mixtures, counting only those with a pod of each class (3 + 70 pods: 210 mixtures), go to
the pools at once. On 9,216 nodes, half used, 16 + 16 pods take 0.07 s in pools and 0.65 s in mixtures, 3 + 70
pods 0.1 and 1.0 s. Up to this number mixtures are often faster (a launcher without GPUs and 143 workers: 0.03
s, in pools 0.06), but not always (1 + 149 pods with GPUs: 1 s, in pools 0.2).
"""


_FINE = 1 << 20
"""Ratios are compared as integers, in units of 1 / `_FINE`."""


_MAX_DIRECTIONS = 5
"""The most directions of one pool: with more, a pool has as many sums as the mixtures."""


class _PooledPacking(DomainPacking):
    """Searches for the cheapest hosts that have enough weight in the directions of `pooled`."""

    classes: PooledClasses

    def __init__(
        self, pooled: PooledClasses, use: Exclusivity, weights: Weights, budget: WorkBudget | None
    ) -> None:
        super().__init__((), use, weights, budget, classes=pooled)

    def cheapest(
        self, class_id: int, goal: PodCount, floor: int, ceiling: int | None
    ) -> tuple[int, ChosenDomain] | None:
        """Returns the lowest cost of hosts, in a domain of the class, that have enough weight for the goal,
        and these hosts; None if there are none, or if the cost is above the ceiling.

        `floor`: a lower bound of the cost.
        """
        self._floors[class_id, self.classes.goal(goal)] = floor
        cost = self._cost_of(class_id, self.classes.goal(goal), ceiling)
        if cost is None or (ceiling is not None and cost > ceiling):
            return None
        return cost, self._chosen(class_id, self.classes.goal(goal), cost)

    def sums_within(
        self, class_id: int, goal: PodCount, cost: int, children: Sequence[int]
    ) -> list[CostBySum]:
        """Returns the sums over the first 0, 1, … of a domain's `children`, with which the goal can be
        reached at this cost.
        """
        domain_class = self.classes.domain_classes[class_id]
        assert domain_class is not None, "a host has no children"
        limit = self.limits.limit(class_id, goal, cost)
        return self._stages_to_goal(children, limit, domain_class.level + 1, cost).stages

    def _chosen(self, class_id: int, target: PodCount, cost: int) -> ChosenDomain:
        domain_class = self.classes.domain_classes[class_id]
        if domain_class is None:
            return ChosenDomain(class_id)
        frontier = self._frontiers.get((class_id, target))
        if frontier is None:
            frontier = self._reached(
                class_id, domain_class, target, cost - domain_class.own_cost, domain_class.children
            )
        return self._chosen_of(class_id, domain_class, frontier, target, frontier.stages[-1][target])

    def _chosen_of(
        self,
        class_id: int,
        domain_class: CapacityClass,
        frontier: FrontierSearch,
        target: PodCount,
        cost: int,
    ) -> ChosenDomain:
        """Returns the children of a domain or chunk that hold the target at this cost, as a `ChosenDomain`,
        by reading the sums backwards."""
        children: list[tuple[int, ChosenDomain]] = []
        for index, share, price in frontier.shares(self.counts, target, cost):
            child = domain_class.children[index]
            chunk = self.classes.domain_classes[child]
            if chunk and chunk.is_chunk:
                in_chunk = self._in_chunk(child, frontier.limit)
                children.append((index, self._chosen_of(child, chunk, in_chunk, share, price)))
            else:
                children.append((index, self._chosen(child, share, price)))
        return ChosenDomain(class_id, tuple(reversed(children)))


class SeveralClassesPacking(DomainPacking):
    """The packing of several pod classes: by every mixture, or pooled (see the module). `spare`: the budget
    for assigning pods to hosts, and for pools with several directions."""

    classes: CapacityClasses

    def __init__(
        self,
        pod_classes: tuple[PodClass, ...],
        use: Exclusivity,
        weights: Weights,
        budget: WorkBudget,
        spare: WorkBudget,
        beam: int = 0,
        classes: CapacityClasses | None = None,
    ) -> None:
        super().__init__(pod_classes, use, weights, budget, beam, classes)
        self._spare = spare
        self._pools: dict[tuple[Direction, ...], _PooledPacking] = {}
        self._along: dict[tuple[Direction, ...], tuple[Direction, ...]] = {}
        self._scales: dict[tuple[Direction, ...], PooledClasses] = {}
        self._spread: dict[tuple[int, PodCount], PodsByHost] = {}
        self._pools_first: set[PodCount] = set()
        self._tight: Direction | None = None  # the last direction of the pool that gave the latest assignment
        self._undecided: set[tuple[int, PodCount]] = set()

    def _min_cost(self, class_id: int, goal: PodCount, ceiling: int | None) -> int | None:
        if self._beam or (class_id, goal) in self._undecided or self.classes.domain_classes[class_id] is None:
            return super()._min_cost(class_id, goal, ceiling)
        if goal not in self._pools_first and prod(self.counts.each(goal)) <= _MAX_MIXTURES:
            with suppress(BudgetEnded), self._work.trial(_FIRST):
                return super()._min_cost(class_id, goal, ceiling)
            self._pools_first.add(goal)  # the next domain would need as many sums
        try:
            return self._min_cost_pooled(class_id, goal, ceiling)
        except BudgetEnded:
            self._undecided.add((class_id, goal))
        return super()._min_cost(class_id, goal, ceiling)

    def _min_cost_pooled(self, class_id: int, goal: PodCount, ceiling: int | None) -> int | None:
        """Returns the lowest cost of `goal` in a domain of the class, found with pooled classes; None if the
        domain cannot hold the goal or the cost is above `ceiling`.

        Raises `BudgetEnded` if the budget ends, or if the pods cannot be assigned to the cheapest hosts that
        the pools find.
        """
        among = directions(self._pod_classes, self.counts.each(goal))
        scarcest = self._scarcest(class_id, goal, among)
        if scarcest is None:
            return None
        assignment = HostAssignment(self.classes, among, self._spare)
        along = list(self._along.get(among, (scarcest,)))
        cost = 0
        while len(along) <= _MAX_DIRECTIONS:
            cheapest = self._pool(tuple(along)).cheapest(class_id, goal, cost, ceiling)
            if cheapest is None:
                return None
            cost, chosen = cheapest
            pods_by_host = assignment.pods_by_host(chosen, goal)
            if pods_by_host is not None:
                # Later searches begin with the last direction, which is often enough alone: for example, the
                # number of whole nodes (40) did not decide, but the number of GPUs (240) does. If a later
                # search has to add directions again, the searches after it begin with all of these.
                remembered = along if among in self._along else along[-1:]
                self._spread[class_id, goal], self._along[among] = pods_by_host, tuple(remembered)
                self._tight = along[-1]
                return cost
            lacking = [
                direction
                for direction in assignment.lacking_directions(chosen, goal)
                if direction not in along
            ]
            if not lacking:
                break
            along.append(lacking[0])
        raise BudgetEnded

    def _scarcest(self, class_id: int, goal: PodCount, among: tuple[Direction, ...]) -> Direction | None:
        """Returns the direction in which the domain can hold the least weight relative to that of the goal;
        None if it can hold too little in any direction.
        """
        if among not in self._scales:
            self._scales[among] = PooledClasses(self.classes, among)
        held, each = self._scales[among].sums(class_id), self.counts.each(goal)
        needs = [weight(direction, each) for direction in among]
        if any(map(int.__lt__, held, needs)):
            return None
        return min(zip(held, needs, among, strict=True), key=lambda row: row[0] * _FINE // row[1])[2]

    def _pool(self, along: tuple[Direction, ...]) -> _PooledPacking:
        if along not in self._pools:
            pooled = PooledClasses(self.classes, along)
            budget = self._spare if len(along) > 1 or self._spare.hard else None
            self._pools[along] = _PooledPacking(pooled, self._use, self.weights, budget)
        return self._pools[along]

    # -- the placement -------------------------------------------------------------------------------------

    def place(self, capacity: DomainCapacity, match: EligibilityMap) -> PodsByNode:
        """See `DomainPacking`. Unless the budget is hard, a full budget is available for the best domain,
        whatever the search of the other domains has used.
        """
        budget = self._work.budget
        if not budget.hard:
            budget.left = max(budget.left, BUDGET)
        return super().place(capacity, match)

    def _covered(
        self, capacity: DomainCapacity, match: EligibilityMap, target: PodCount, cost: int
    ) -> PodsByNode:
        class_id = self.classes.of(capacity, match)
        pods_by_host = self._spread.get((class_id, target))
        if pods_by_host is None:
            return super()._covered(capacity, match, target, cost)
        with suppress(BudgetEnded):
            return super()._covered(capacity, match, target, cost)
        return self._as_dealt(capacity, match, pods_by_host)

    def _reached(
        self, class_id: int, domain_class: CapacityClass, target: PodCount, cost: int, children: Sequence[int]
    ) -> FrontierSearch:
        """See `DomainPacking`. Once pools have decided a cost, mixtures after which the remaining pods would
        cost too much are dropped (`remaining_costs`).

        This is not done if the children are hosts: a rack has few mixtures, so the pool would take longer
        than it saves.
        """
        if self._tight is None or self.classes.domain_classes[children[0]] is None:
            return super()._reached(class_id, domain_class, target, cost, children)
        pool, level = self._pool((self._tight,)), domain_class.level + 1
        goal, weights = pool.classes.goal(target), MixtureWeights(self._tight, self.counts)
        limit = self.limits.limit(class_id, target, cost)
        offers = self._offers(children, limit, level, 0)
        # Summed from the last child to the first: for each child, the weights of the children after it.
        _, *ahead = reversed(pool.sums_within(class_id, goal, cost, children[::-1]))
        stages: list[CostBySum] = [{self.counts.zero: 0}]
        for options, rest in zip(offers, ahead, strict=True):
            allowed = AllowedCosts(weights, rest, goal, cost)
            self._work.budget.spend(2 * len(stages[-1]) * (len(options) + 1))
            stage = self.counts.sums(stages[-1], options, target, allowed)
            stage = {counts: paid for counts, paid in stage.items() if paid <= allowed[counts]}
            stages.append(self._sums.narrowed(stage, allowed))
        return FrontierSearch(limit, offers, stages)

    def _as_dealt(
        self, capacity: DomainCapacity, match: EligibilityMap, pods_by_host: PodsByHost
    ) -> PodsByNode:
        """Returns the placement in a domain of pods that were assigned to hosts by `CapacityClass.children`.
        The domain may have these children in another order: its next child of the same class takes the pods.
        """
        if not capacity.children:
            return [(0, self.counts.each(pods_by_host[()]))]
        domain_class = self.classes.domain_classes[self.classes.of(capacity, match)]
        assert domain_class is not None, "only hosts have no children"
        places: dict[int, list[int]] = {}
        for place, class_id in enumerate(domain_class.children):
            places.setdefault(class_id, []).append(place)
        pods_by_node: PodsByNode = []
        for start, child, child_match, class_id in self._able(capacity, match):
            place = places[class_id].pop(0)
            inside = {path[1:]: counts for path, counts in pods_by_host.items() if path[0] == place}
            if inside:
                pods_by_node += [
                    (start + index, counts) for index, counts in self._as_dealt(child, child_match, inside)
                ]
        return pods_by_node
