"""Finds the cheapest way to place every pod of a gang inside one domain: exact, from the hosts up.

    rack r1: 3 free nodes     rack r2: 2 free nodes     four whole-node pods; a rack costs 100, a node 1

    options of r1: 1 pod 101, 2 pods 102, 3 pods 103          options of r2: 1 pod 101, 2 pods 102
    sums after r1:  0:0  1:101  2:102  3:103
    sums after r2:  0:0  1:101  2:102  3:103  4:204           four pods cost 204: 3 + 1 (2 + 2 costs the same)

An *option* is a number of pods of each class that a domain could hold, with its lowest cost. The options of a
host are its largest packings. The options of a domain are the sums of its children's options, reduced to what
its rules allow. Costs are integers that add up, so the lowest cost of the whole gang is the true optimum.

To keep the sums few, the search drops sums with which no placement within a ceiling is possible (`bounds`,
`joint_bounds`), and for each count keeps only the children that offer it at the lowest cost. If there is
no placement within a ceiling, the search is repeated with a higher one.

The placement is read from the sums backwards: from the last child to the first, each child gets its smallest
option that is part of an optimum. So of equal placements the one that fills earlier nodes is chosen (r1 gets
three pods in the example).

The search counts its steps, and raises `BudgetEnded` after its budget. A packing that is cached for later
plans has a budget for each piece of work, so that no answer depends on how much an earlier plan has spent. A
search with a `beam` keeps only that many sums at each step: its placement is valid, but not proved best.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from planner.cluster.capacity import DomainCapacity
from planner.model.effort.work_budget import BUDGET, BudgetEnded, WorkBudget
from planner.model.pod_class import PodClass
from planner.search.eligibility_map import EligibilityMap
from planner.search.objective import Weights
from planner.search.packing.bounds import CostLimit, cost_limits, unlimited
from planner.search.packing.capacity_classes import EMPTY, CapacityClass, CapacityClasses, Exclusivity
from planner.search.packing.domain_options import AbleChild, DomainOptions
from planner.search.packing.frontier import FrontierSearch
from planner.search.packing.joint_bounds import LevelBounds, LimitsByClass
from planner.search.packing.largest_domains import LargestDomains
from planner.search.packing.least_cost import least_cost
from planner.search.packing.pooled_classes import PooledClasses
from planner.search.packing.work_pieces import WorkPieces
from planner.search.pod_counts import Measure, PodCount
from planner.search.result import PodsByNode

_BoundsOfGoal = Literal["unknown", "separate", "joint once", "joint"]
"""Which bounds finished the last search for a goal: `separate` ones, or those by all domains, `joint`.

Separate bounds (for few domains with those by the largest domains) rarely change when a pod comes or goes, so
the next plan can reuse most results. Joint bounds finish searches that separate bounds do not, but take
milliseconds after each change. The first search for a goal (`unknown`) tries separate bounds with few sums
(none, if joint bounds prove that more domains are needed), then joint bounds. After that (`joint once`), the
next search tries separate bounds once more, with many sums. The choice affects only the time: if one kind
does not finish a search, the other is tried.
"""


_SEPARATE_BOUNDS: dict[_BoundsOfGoal, int] = {"unknown": 8_000, "separate": 600_000, "joint once": 600_000}
"""Maximum number of sums with separate bounds. With 2,000 to 8,000 for `unknown`, the first plan of 1,024
whole nodes on 9,216 took the same time, so the number matters little."""


_JOINT_BOUNDS = 2 * BUDGET
"""Maximum number of sums with joint bounds if each piece of work has its own budget: 1,031 whole nodes on
9,216, of which a few have pods, take 3,600,000. That took half as long as separate bounds and a beam, whose
placement was not proved best."""


_FEW_DOMAINS = 16
"""If this many domains of each level may be enough, separate bounds get half of the budget. On 100,000 nodes
with half of the racks in use, 144 whole nodes need eight racks: the first plan takes more than 600,000 sums,
later plans few. With joint bounds each of the later plans took 67 ms instead of 2."""


_FITS_BUDGET, _FITS_BEAM = 100_000, 24
"""To say in a refusal how many pods of several classes fit in a domain, a search may take this many steps, a
thirtieth of a plan's budget, because a refusal names one such domain for each level. If they are not enough,
a search with this beam and twice the steps follows, which may count too few pods."""


class DomainPacking(DomainOptions):
    """The lowest cost of a gang's pod classes in domains of one topology, and the placement of that cost.

    Without a `budget` each piece of work has its own, and later plans can use the results.
    """

    classes: CapacityClasses | PooledClasses

    def __init__(
        self,
        pod_classes: tuple[PodClass, ...],
        use: Exclusivity,
        weights: Weights,
        budget: WorkBudget | None = None,
        beam: int = 0,
        classes: CapacityClasses | PooledClasses | None = None,
    ) -> None:
        super().__init__(
            pod_classes,
            weights,
            CapacityClasses(pod_classes, use, weights) if classes is None else classes,
            WorkPieces(budget),
            beam,
        )
        self._use = use
        self._need = self.counts.measure(self.counts.full)
        self.limits = LimitsByClass(self.classes, weights, rounded=budget is None)
        self._largest = LargestDomains(self.classes) if isinstance(self.classes, CapacityClasses) else None
        self._best: dict[tuple[int, PodCount], tuple[int | None, int | None]] = {}
        self._floors: dict[tuple[int, PodCount], int] = {}
        self._least_costs: dict[int, int] = {}
        # The limit within which the lowest cost was found, and the sums of the last such search: `place`
        # reads the placement from them.
        self._within: dict[tuple[int, PodCount], CostLimit] = {}
        self._frontiers: dict[tuple[int, PodCount], FrontierSearch] = {}
        self._max_pods: dict[int, int] = {EMPTY: 0}
        self._bounds_of_goal: dict[PodCount, _BoundsOfGoal] = {}
        self._covers: dict[tuple[DomainCapacity, EligibilityMap, PodCount], PodsByNode] = {}

    @property
    def size(self) -> int:
        """The number of cached results."""
        options = len(self._options) + len(self._of_able)
        return len(self.classes) + len(self._covers) + options + len(self._largest or ())

    def reach(self, capacity: DomainCapacity, match: EligibilityMap) -> PodCount:
        """Returns the maximum count in the domain: exact for a single pod class, else an upper bound."""
        return self.classes.reach[self.classes.of(capacity, match)]

    def bound(self, capacity: DomainCapacity, match: EligibilityMap, level: int) -> Measure:
        """Returns the maximum of each measure that one domain of the level, inside this domain, holds; () if
        no pod fits.
        """
        return self.classes.peak(self.classes.of(capacity, match), level)

    def may_hold_all(self, capacity: DomainCapacity, match: EligibilityMap, level: int) -> bool:
        """Reports, by a cheap check, whether a domain of the level inside this one may hold all pods."""
        peak = self.bound(capacity, match, level)
        return bool(peak) and all(map(int.__ge__, peak, self._need))

    def least_cost(self, capacity: DomainCapacity, match: EligibilityMap) -> int:
        """Returns, by a cheap computation, a lower bound of the cost of the whole gang in the domain."""
        class_id = self.classes.of(capacity, match)
        if self.classes.domain_classes[class_id] is None:
            return 0
        if class_id not in self._least_costs:
            peaks = self.limits.separate(class_id, self._need).peaks
            self._least_costs[class_id] = least_cost(self.classes, class_id, self._need, self.weights, peaks)
        return self._least_costs[class_id]

    def cost(self, capacity: DomainCapacity, match: EligibilityMap, ceiling: int | None = None) -> int | None:
        """Returns the lowest cost of the whole gang inside the domain; None if the gang does not fit.

        None also if the cost is above the ceiling, which a packing that is cached for later plans ignores.
        """
        class_id = self.classes.of(capacity, match)
        if self._work.own_budgets:
            ceiling = None
        elif ceiling is not None and self.least_cost(capacity, match) > ceiling:
            return None
        return self._cost_of(class_id, self.counts.full, ceiling)

    def _cost_of(self, class_id: int, goal: PodCount, ceiling: int | None) -> int | None:
        # If `cost` is None, none is within `tried_ceiling` (None: no ceiling was set; -1: not searched yet).
        cost, tried_ceiling = self._best.get((class_id, goal), (None, -1))
        if cost is None and tried_ceiling is not None and (ceiling is None or ceiling > tried_ceiling):
            with self._work.piece("cost", class_id, goal):
                cost = self._min_cost(class_id, goal, ceiling)
            self._best[class_id, goal] = (cost, ceiling)
        return cost

    def fits(self, capacity: DomainCapacity, match: EligibilityMap) -> int:
        """Returns how many pods of the gang fit in the domain together; too few if the budget ends."""
        class_id = self.classes.of(capacity, match)
        if class_id not in self._max_pods:
            self._max_pods[class_id] = self._max_pods_of(class_id)
        return self._max_pods[class_id]

    def _max_pods_of(self, class_id: int) -> int:
        """Returns the same as `fits`, by a search of its own; if its budget ends, by a beam search, which may
        find fewer pods."""
        for beam in (0, _FITS_BEAM):
            budget = WorkBudget(_FITS_BUDGET << bool(beam))
            search = DomainPacking(self._pod_classes, self._use, self.weights, budget, beam, self.classes)
            with suppress(BudgetEnded):
                options = search._options_of(class_id, search.limits.limit(class_id, self.counts.full, None))
                return max((self.counts.size(counts) for counts, _ in options), default=0)
        return 0

    def place(self, capacity: DomainCapacity, match: EligibilityMap) -> PodsByNode:
        """Returns the cheapest placement inside a domain that holds the gang; of equal ones, the one that
        fills earlier nodes."""
        cost = self.cost(capacity, match)
        assert cost is not None, "only a domain that holds the gang is asked for its placement"
        return self._cover(capacity, match, self.counts.full, cost)

    # -- costs ---------------------------------------------------------------------------------------------

    def _min_cost(self, class_id: int, goal: PodCount, ceiling: int | None) -> int | None:
        """Returns the same as `_cost_of`, without its cache; chooses the bounds (see `_BoundsOfGoal`)."""
        need = self.counts.measure(goal)
        if class_id == EMPTY or any(map(int.__lt__, self.classes.maximum(class_id), need)):
            return None
        domain_class = self.classes.domain_classes[class_id]
        if domain_class is None:
            options = self.classes.options[class_id]
            return min((cost for counts, cost in options if self.counts.covers(counts, goal)), default=None)
        if self._beam or not self._joint_bounds_hold(domain_class):
            return self._min_cost_within(class_id, goal, ceiling)
        state = self._bounds_of_goal.get(goal, "unknown")
        few = self._may_do_with_few_domains(class_id, need)
        if state != "joint" and (
            few or state != "unknown" or not self._joint_bounds_tell_more(class_id, need)
        ):
            with suppress(BudgetEnded), self._work.trial(BUDGET // 2 if few else _SEPARATE_BOUNDS[state]):
                bounds = self._by_largest_domains(class_id, need) if few else None
                cost = self._min_cost_within(class_id, goal, ceiling, bounds)
                if state == "joint once":
                    self._bounds_of_goal[goal] = "separate"
                return cost
        self._bounds_of_goal[goal] = "joint once" if state == "unknown" else "joint"
        with (
            suppress(BudgetEnded),
            self._work.trial(_JOINT_BOUNDS if self._work.own_budgets else BUDGET // 2),
        ):
            return self._min_cost_within(class_id, goal, ceiling, self.limits.joint(class_id, need))
        return self._min_cost_within(class_id, goal, ceiling)

    def _by_largest_domains(self, class_id: int, need: Measure) -> LevelBounds:
        assert self._largest is not None, "pools have no bounds of two levels"
        return self.limits.by_largest_domains(class_id, need, self._largest.held(class_id))

    def _joint_bounds_tell_more(self, class_id: int, need: Measure) -> bool:
        """Reports whether joint bounds require more domains than separate bounds do."""
        separate = self.limits.separate(class_id, need)
        return self.limits.joint(class_id, need).fewest(need) != separate.fewest(need)

    def _may_do_with_few_domains(self, class_id: int, need: Measure) -> bool:
        """Reports whether, by the peaks, `_FEW_DOMAINS` domains of each level but the hosts may be enough."""
        *above, _ = self.limits.separate(class_id, need).fewest(need)
        return all(domains <= _FEW_DOMAINS for domains in above)

    def _joint_bounds_hold(self, domain_class: CapacityClass) -> bool:
        """Reports whether `joint_bounds` are valid: for a single pod class and at least two levels inside the
        domain, all of which have a cost.
        """
        prices = self.weights.domains[domain_class.level + 1 :]
        one_class = len(self._pod_classes) == 1 and isinstance(self.classes, CapacityClasses)
        return one_class and len(prices) > 1 and all(prices)

    def _min_cost_within(
        self, class_id: int, goal: PodCount, ceiling: int | None, bounds: LevelBounds | None = None
    ) -> int | None:
        """Returns the lowest cost, by searches with higher and higher ceilings until one has a placement.

        `bounds`: None for separate bounds.
        """
        domain_class, need = self.classes.domain_classes[class_id], self.counts.measure(goal)
        assert domain_class is not None, "_min_cost takes the cost of a host from its options"
        level = domain_class.level + 1
        prices = self.weights.domains[level:]
        bounds = bounds or self.limits.separate(class_id, need)
        ceiling_inside = None if ceiling is None else ceiling - domain_class.own_cost
        floor = max(0, self._floors.get((class_id, goal), 0) - domain_class.own_cost)
        tried_cost, needed = floor - 1, bounds.fewest(need)
        attempts = cost_limits(needed, prices, self.counts.size(goal), floor)
        for max_cost in [unlimited(prices)] if self._beam else attempts:
            if max_cost <= tried_cost:
                continue
            tried_cost, limit = max_cost, self.limits.limit(class_id, goal, max_cost, bounds)
            frontier = self._stages_to_goal(domain_class.children, limit, level, ceiling_inside)
            inner = frontier.stages[-1].get(goal)
            if inner is not None:
                self._within[class_id, goal] = limit
                self._frontiers.clear()
                self._frontiers[class_id, goal] = frontier
                return inner + domain_class.own_cost
            if ceiling_inside is not None and max_cost >= ceiling_inside:
                return None
        return None

    # -- the placement -------------------------------------------------------------------------------------

    def _cover(
        self, capacity: DomainCapacity, match: EligibilityMap, target: PodCount, cost: int
    ) -> PodsByNode:
        if not capacity.children:
            return [(0, self.counts.each(target))]
        pods_by_node = self._covers.get((capacity, match, target))
        if pods_by_node is None:
            with self._work.piece("cover", capacity, match, target):
                pods_by_node = self._covers[capacity, match, target] = self._covered(
                    capacity, match, target, cost
                )
        return pods_by_node

    def _covered(
        self, capacity: DomainCapacity, match: EligibilityMap, target: PodCount, cost: int
    ) -> PodsByNode:
        class_id = self.classes.of(capacity, match)
        domain_class = self.classes.domain_classes[class_id]
        assert domain_class is not None, "_cover returns the pods of a host"
        able = self._able(capacity, match)
        if self._fills_hosts(able, target):
            return [(start, (self.classes.reach[child_id],)) for start, *_, child_id in able]
        frontier = self._reached(
            class_id, domain_class, target, cost - domain_class.own_cost, [child_id for *_, child_id in able]
        )
        if target not in frontier.stages[-1]:  # possible only with a beam, which drops sums
            raise BudgetEnded
        return self._split_among(able, frontier, target, frontier.stages[-1][target])

    def _fills_hosts(self, able: Sequence[AbleChild], target: PodCount) -> bool:
        """Reports whether the children are hosts and the target, of a single pod class, is all that they
        hold, as in most racks of a large gang.
        """
        if len(self._pod_classes) != 1 or able[0][1].children:
            return False
        return target == sum([self.classes.reach[child_id] for *_, child_id in able])

    def _split_among(
        self, able: Sequence[AbleChild], frontier: FrontierSearch, target: PodCount, cost: int
    ) -> PodsByNode:
        """Returns the pods of `target` on each node inside these children, at this cost, by reading the sums
        backwards.
        """
        by_child: list[PodsByNode] = []
        for place, share, price in frontier.shares(self.counts, target, cost):
            start, child, child_match, child_id = able[place]
            if child.is_chunk:
                in_chunk = self._in_chunk(child_id, frontier.limit)
                child_pods = self._split_among(self._able(child, child_match), in_chunk, share, price)
            else:
                child_pods = self._cover(child, child_match, share, price)
            by_child.append([(start + index, counts) for index, counts in child_pods])
        return [pods for child_pods in reversed(by_child) for pods in child_pods]

    def _reached(
        self, class_id: int, domain_class: CapacityClass, target: PodCount, cost: int, children: Sequence[int]
    ) -> FrontierSearch:
        """Returns the sums over these children of a domain, in this order, within the target's cost."""
        if domain_class.ordered and (class_id, target) in self._frontiers:
            return self._frontiers[class_id, target]
        ceiling = None if self._beam else cost
        limit = self._within.get((class_id, target)) or self.limits.limit(class_id, target, ceiling)
        return self._stages_to_goal(children, limit, domain_class.level + 1, ceiling)
