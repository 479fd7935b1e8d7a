"""The options of domains: how many pods each domain could hold, and at what lowest cost, from the hosts up.

    rack r1: nodes n1 and n2, both free; a pod takes a node; a rack costs 100, a node 1

    options of n1: 1 pod 1        of n2: 1 pod 1        their sums: 1 pod 1, 2 pods 2
    options of r1: 1 pod 101, 2 pods 102

The options of a host are its largest packings. The options of a domain are the sums of its children's
options, reduced to what the rules of the level allow. If a domain must have all pods of each class or none,
each set of classes is a goal of its own, and an option if it fits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, product

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass
from planner.model.topology import ROOT
from planner.search.eligibility_map import EligibilityMap, matched_children
from planner.search.objective import Weights
from planner.search.packing.bounds import CostLimit
from planner.search.packing.capacity_classes import CapacityClass, DomainClasses
from planner.search.packing.frontier import Frontier, FrontierSearch, cheapest
from planner.search.packing.work_pieces import WorkPieces
from planner.search.pod_counts import (
    Allowed,
    CostBySum,
    CountAlgebra,
    Option,
    PodCount,
    SingleClassCounts,
)

_MAX_CHUNKS = 48
"""Maximum number of chunks of wide domains whose sums are cached until the placement is read from them. Of
other domains only the sums of the last one are cached, because the placement is usually read from it next.
The sums of a large domain take megabytes; those that were dropped are computed again."""


_MAX_WHOLE = 6
"""Maximum number of pod classes for which each set of complete classes is a goal of its own: six classes make
64 goals for each domain."""


AbleChild = tuple[int, DomainCapacity, EligibilityMap, int]
"""A child or chunk that can hold a pod: the index of its first node, its capacity, eligibility and class."""


class DomainOptions(ABC):
    """The options of a gang's pod classes, by capacity class of a domain, and their sums within a limit.

    `DomainPacking` inherits from this class instead of having it as a field: the two objects would refer to
    each other, and packings must have no reference cycles (webhook/server/garbage_collection.py). `beam`: how
    many sums are kept at each step; 0 for all of them, which makes the search exact.
    """

    def __init__(
        self,
        pod_classes: tuple[PodClass, ...],
        weights: Weights,
        classes: DomainClasses,
        work: WorkPieces,
        beam: int,
    ) -> None:
        self._pod_classes, self.weights, self._work = pod_classes, weights, work
        self._host_level = len(weights.domains) - 1
        self.classes = classes
        self.counts: CountAlgebra = classes.counts
        # A sum of several classes counts as two steps of the work budget.
        effort = 1 if isinstance(self.counts, SingleClassCounts) else 2
        self._beam = beam
        self._sums = Frontier(self.counts, work.budget, effort, beam)
        self._options: dict[tuple[int, CostLimit], list[Option]] = {}
        self._of_hosts: dict[int, list[list[Option]]] = {}
        self._of_able: dict[tuple[tuple[int, ...], CostLimit], CostBySum] = {}
        self._chunks: dict[tuple[int, CostLimit], FrontierSearch] = {}

    @abstractmethod
    def _cost_of(self, class_id: int, goal: PodCount, ceiling: int | None) -> int | None:
        """Returns the lowest cost of the goal in a domain of the class; None if the goal does not fit there,
        or only above the ceiling.
        """

    def _able(self, capacity: DomainCapacity, match: EligibilityMap) -> list[AbleChild]:
        """Returns the children or chunks of a domain that can hold a pod."""
        able: list[AbleChild] = []
        start = 0
        for _, child, child_match in matched_children(capacity, match):
            if class_id := self.classes.of(child, child_match):
                able.append((start, child, child_match, class_id))
            start += child.size
        return able

    def _options_of(self, class_id: int, limit: CostLimit) -> list[Option]:
        """Returns the options of a domain class that cost no more than the limit allows."""
        options = self._options.get((class_id, limit))
        if options is None:
            domain_class = self.classes.domain_classes[class_id]
            level = self._host_level
            if domain_class:  # the options of a chunk are sums over domains of the next level
                level = domain_class.level + 1 if domain_class.is_chunk else domain_class.level
            # A limit is for the levels inside one domain, from `first` on, and not for that domain itself.
            allowed = limit.allowed(level) if level >= limit.first else None
            if domain_class is None:
                options = self.classes.options[class_id]
            elif allowed and self._too_dear(class_id, domain_class, limit.goal, allowed):
                options = []
            else:
                with self._work.piece("options", class_id, limit):
                    options = self._sums_of(domain_class, class_id, limit)
            if allowed and domain_class is None:  # a host may hold more than the goal, sums end there
                smaller, goal = self.counts.smaller, limit.goal
                options = [
                    (counts, cost) for counts, cost in options if cost <= allowed[smaller(counts, goal)]
                ]
            elif allowed:
                options = [(counts, cost) for counts, cost in options if cost <= allowed[counts]]
            self._options[class_id, limit] = options
        return options

    def _too_dear(self, class_id: int, domain_class: CapacityClass, goal: PodCount, allowed: Allowed) -> bool:
        """Reports whether the domain itself costs more than is allowed even for all pods that it can hold.

        For example, the nodes of a half-used rack are not examined if only empty racks are few enough.
        """
        if domain_class.is_chunk:
            return False
        reach = self.counts.smaller(self.classes.reach[class_id], goal)
        return domain_class.own_cost > allowed[reach]

    def _sums_of(self, domain_class: CapacityClass, class_id: int, limit: CostLimit) -> list[Option]:
        """Returns the options of a domain or chunk: the sums of its children's options, reduced to what the
        rules allow.
        """
        if not domain_class.is_chunk and self._all_or_nothing(domain_class.level):
            return self._whole_options(class_id, limit.goal)
        if domain_class.is_chunk:
            stage = self._in_chunk(class_id, limit).stages[-1]
            return sorted((counts, cost) for counts, cost in stage.items() if counts != self.counts.zero)
        # The limit of a level does not contain the prices of coarser domains, so the price of this domain is
        # added to the options at the end. The sums start with the rest of the domain's own cost.
        price = (
            self.weights.domains[domain_class.level]
            if domain_class.level >= limit.first
            else domain_class.own_cost
        )
        start = domain_class.own_cost - price
        stage = self._all_sums(domain_class.children, class_id, limit, domain_class.level + 1, start)
        if not self.classes.is_limited(domain_class):
            return sorted([(counts, cost + price) for counts, cost in stage.items() if counts])
        kept: CostBySum = {}
        for counts, cost in stage.items():
            for kept_counts in self.classes.each_kept(
                domain_class.level, counts, has_name=domain_class.has_name, caps=domain_class.caps
            ):
                if kept_counts != self.counts.zero and cost + price < kept.get(kept_counts, cost + price + 1):
                    kept[kept_counts] = cost + price
        return sorted(self.counts.undominated(kept).items())

    def _all_sums(
        self, children: Sequence[int], class_id: int, limit: CostLimit, level: int, start: int
    ) -> CostBySum:
        """Returns the sums over all these children: the last stage of `_all_stages`, for callers that do not
        need to know which child holds which pods. `start`: see `_offers`.
        """
        hosts = self.classes.domain_classes[children[0]] is None
        if hosts and isinstance(self.counts, SingleClassCounts):
            return self._added(self._hosts_alike(class_id, children), limit, level, start)
        if len(self._pod_classes) == 1 and not self._beam:
            return self._sums_of_able(children, limit, level, start)
        steps = self._steps(children, self._offers(children, limit, level, start), limit)
        return self._added(self._alike_together(steps, limit.goal), limit, level, start)

    def _sums_of_able(self, children: Sequence[int], limit: CostLimit, level: int, start: int) -> CostBySum:
        """Returns the same as `_all_sums`, cached by the children that have options within the limit. Of most
        blocks these are the pristine racks: their used racks differ, but belong to no placement.
        """
        able = tuple([child for child in children if self._options_of(child, limit)])
        stage = self._of_able.get((able, limit))
        if stage is None:
            steps = self._steps(able, self._offers(able, limit, level, 0), limit)
            stage = self._added(self._alike_together(steps, limit.goal), limit, level, 0)
            self._of_able[able, limit] = stage
        return {counts: cost + start for counts, cost in stage.items()}

    def _added(
        self, steps: Iterable[Sequence[Option]], limit: CostLimit, level: int, start: int
    ) -> CostBySum:
        """Returns the sums of these options of domains of the level, beginning with the cost `start`."""
        stage: CostBySum = {self.counts.zero: start}
        for options in steps:
            stage = self._sums.extended(stage, options, limit, level)
        return stage

    def _hosts_alike(self, class_id: int, hosts: Sequence[int]) -> list[list[Option]]:
        """Returns the lists of options of the hosts in a domain for a single pod class, with those of equal
        hosts joined (`_alike_together`). They are cached by the domain's class, for every limit."""
        steps = self._of_hosts.get(class_id)
        if steps is None:
            offers = [self.classes.options[host] for host in hosts]
            steps = self._of_hosts[class_id] = self._alike_together(offers, self.counts.full)
        return steps

    def _alike_together(self, offers: Iterable[list[Option]], goal: PodCount) -> list[list[Option]]:
        """Returns the lists of options to add up, one for each domain. Domains that have a single option with
        the same count, like most nodes of a rack, share one list: one of them, two, …, the cheapest first.

        Adding this list takes 18 sums for 18 nodes, instead of one sum per node and number of pods.
        """
        steps: list[list[Option]] = []
        costs_by_counts: dict[PodCount, list[int]] = {}
        for options in offers:
            if len(options) == 1:
                ((counts, cost),) = options
                costs_by_counts.setdefault(counts, []).append(cost)
            elif options:
                steps.append(options)
        alike = [self._cheapest_first(counts, costs, goal) for counts, costs in costs_by_counts.items()]
        return steps + alike

    def _cheapest_first(self, counts: PodCount, costs: Iterable[int], goal: PodCount) -> list[Option]:
        """Returns the options of one, two, … domains with this count each, up to the goal."""
        options: list[Option] = []
        held = self.counts.zero
        for cost in accumulate(sorted(costs)):
            held = self.counts.add(held, counts)
            options.append((held, cost))
            if self.counts.covers(held, goal):
                break
        return options

    def _in_chunk(self, class_id: int, limit: CostLimit) -> FrontierSearch:
        """Returns the sums over a chunk's children. They are cached, because the placement in the chunk is
        read from them.
        """
        frontier = self._chunks.pop((class_id, limit), None)
        if frontier is None:
            domain_class = self.classes.domain_classes[class_id]
            assert domain_class is not None, "a chunk is no host"
            frontier = self._all_stages(domain_class.children, limit, domain_class.level + 1)
        self._chunks[class_id, limit] = frontier
        if len(self._chunks) > _MAX_CHUNKS:
            del self._chunks[next(iter(self._chunks))]
        return frontier

    def _all_or_nothing(self, level: int) -> bool:
        """Reports whether there are two to `_MAX_WHOLE` pod classes, and a domain of the level must have all
        pods of each class or none of them."""
        return 1 < len(self._pod_classes) <= _MAX_WHOLE and all(
            pod_class.count == 1 or pod_class.required >= level > ROOT for pod_class in self._pod_classes
        )

    def _whole_options(self, class_id: int, goal: PodCount) -> list[Option]:
        """Returns the options of a domain that must have all pods of each class or none: the sets of complete
        classes that fit, each searched as a goal."""
        domain_class = self.classes.domain_classes[class_id]
        assert domain_class is not None, "_options_of takes the options of a host from its class"
        costs: CostBySum = {}
        wanted = [
            n if n == pod_class.count else 0
            for n, pod_class in zip(self.counts.each(goal), self._pod_classes, strict=True)
        ]
        for chosen in product(*((0, n) if n else (0,) for n in wanted)):
            part = self.counts.pack(chosen)
            kept = self.classes.each_kept(
                domain_class.level, part, has_name=domain_class.has_name, caps=domain_class.caps
            )
            if part and kept == (part,):
                cost = self._cost_of(class_id, part, None)
                if cost is not None:
                    costs[part] = cost
        return sorted(self.counts.undominated(costs).items())

    def _stages_to_goal(
        self, children: Sequence[int], limit: CostLimit, level: int, ceiling: int | None
    ) -> FrontierSearch:
        """Returns the options of these domains of the level, and the sums with which the goal can be reached
        inside them.
        """
        offers = self._offers(children, limit, level, 0)
        reaches = [self.classes.reach[child] for child in children]
        steps = self._steps(children, offers, limit)
        return FrontierSearch(limit, offers, self._sums.stages(steps, reaches, limit, level, ceiling))

    def _all_stages(self, children: Sequence[int], limit: CostLimit, level: int) -> FrontierSearch:
        """Returns the options of these domains and all their sums, because other domains may hold the rest
        of the goal.
        """
        offers = self._offers(children, limit, level, 0)
        stages: list[CostBySum] = [{self.counts.zero: 0}]
        for options in self._steps(children, offers, limit):
            stages.append(self._sums.extended(stages[-1], options, limit, level) if options else stages[-1])
        return FrontierSearch(limit, offers, stages)

    def _offers(
        self, children: Sequence[int], limit: CostLimit, level: int, start: int
    ) -> list[list[Option]]:
        """Returns the options of these children of a domain, without superfluous ones (`cheapest`). `start`:
        the cost of the domain itself that the sums over its children begin with.
        """
        return cheapest(children, partial(self._options_of, limit=limit), limit.copies(level, start))

    def _steps(
        self, children: Sequence[int], offers: Sequence[list[Option]], limit: CostLimit
    ) -> list[list[Option]]:
        """Returns, for each of these domains, the options that have to be added to the sums over the domains
        before it.

        If several equal domains are uniform inside, as pristine racks are, all but one of them may be full or
        empty: two partly used ones can be changed into a full one and a smaller one at no higher cost. So the
        first has all its options, and each further one only the largest. All sums with which the goal can be
        reached stay the same, and a further block of 144 nodes adds one step instead of 144. With several pod
        classes no domain is uniform.
        """
        if len(self._pod_classes) > 1:
            return list(offers)
        begun: set[int] = set()
        steps: list[list[Option]] = []
        for class_id, options in zip(children, offers, strict=True):
            whole = len(options) > 1 and len(options) == len(self._options_of(class_id, limit))
            if whole and (class_id in begun or self.classes.uniform(class_id)):
                steps.append(options[-1:] if class_id in begun else options)
                begun.add(class_id)
            else:
                steps.append(options)
        return steps
