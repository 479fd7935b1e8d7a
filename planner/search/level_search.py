"""Finds the finest level with a domain that holds the whole gang, and the best domain of that level.

    b1: r1 ...  r2 ...        a dot is a free node; six pods that use a whole node each
    b2: r3 .... r4 ..

Host: the best host takes one of six pods. Rack: r3 takes four. Block: b1 and b2 both take six, so the search
ends here, and `DomainRanking` chooses between them. One domain of a finer level always costs less than
several domains, so the first level with a domain for all pods contains the optimum.

In reserve mode `domain` no other gang may use a domain that the gang will hold. A gang whose placement spans
several domains of the reservable level (the coarsest that is held whole) holds each of them, so it may use
only hosts in domains of that level that no other gang uses.

If the budget ends, the search runs again as a beam search, which keeps only a few sums (numbers of pods for
some of a domain's children) at each step: its placement is valid but not proved best.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from planner.cluster.plan_cache import CacheSection
from planner.cluster.trees.subtree import Subtree
from planner.model.answer import LevelAttempt
from planner.model.effort.work_budget import BudgetEnded, WorkBudget
from planner.model.pod_class import PodClass
from planner.model.podgroup import ReserveMode
from planner.model.topology import ROOT
from planner.request.relaxation import relaxations
from planner.request.topology_request import TopologyRequest
from planner.search.domain_ranking import Candidate, ChildPath, DomainRanking
from planner.search.eligibility_map import EligibilityMap
from planner.search.mixtures.equivalent_classes import merged
from planner.search.mixtures.several_classes import SeveralClassesPacking
from planner.search.objective import Weights
from planner.search.packing.capacity_classes import CapacityClasses, Exclusivity
from planner.search.packing.domain_packing import DomainPacking
from planner.search.result import Attempts, LevelSearchResult, Placement
from planner.search.space import SearchSpace

CLASSES: CacheSection[tuple[Hashable, Exclusivity, Weights], CapacityClasses] = CacheSection(
    "capacity classes", results=len
)
"""The capacity classes, by the pod classes, the nodes that these may use (`Exclusivity`), and the weights.
Entries never become stale: each result depends only on a domain's capacity. Each new capacity adds a result.
"""

RANKINGS: CacheSection[tuple[Hashable, int, Exclusivity, Weights], DomainRanking] = CacheSection(
    "domain rankings", results=lambda ranking: ranking.size
)
"""The rankings of domains for a single pod class, by this class, the required level, the nodes that the class
may use, and the weights. Entries never become stale and grow like those of `CLASSES`. With several classes a
ranking is not kept: its packing uses the budget of one plan, so no later plan can use it.
"""


_BEAMS = (24, 6)
"""Numbers of sums that beam searches keep at each step. If the full search runs out of budget, a search with
the wide beam follows; if that also runs out, one with the narrow beam."""


_BEAM_BUDGET = 2_000_000
"""The budget of each beam search, in steps (`WorkBudget`); a full search has 3,000,000."""


@dataclass(slots=True)
class LevelSearch:
    """The searches for one gang in one search space. They share a budget."""

    space: SearchSpace
    request: TopologyRequest
    mode: ReserveMode
    budget: WorkBudget
    spare: WorkBudget = field(init=False)
    """A second budget, for searches over pooled classes; the same as `budget` if that is hard (no search may
    have a further budget)."""

    def __post_init__(self) -> None:
        self.spare = self.budget if self.budget.hard else replace(self.budget)

    def in_space(self, space: SearchSpace, budget: WorkBudget) -> LevelSearch:
        """Returns a search for the same gang in another space, within this budget."""
        return LevelSearch(space, self.request, self.mode, budget)

    def search(self, pod_classes: tuple[PodClass, ...], required: int) -> LevelSearchResult:
        """Returns the best placement of these pod classes inside one domain of the `required` level (ROOT:
        anywhere in the tree), if one is found, and the attempts at each level.
        """
        return self.space.base.plan_cache.exclusively(
            lambda: self._search_within_budget(pod_classes, required)
        )

    def anywhere(self, pod_classes: tuple[PodClass, ...]) -> Placement | None:
        """Returns the best placement of these pod classes as if they had to span the whole topology, without
        a search of finer levels; None if there is none or the budget ends first.

        The placement may still lie in a single domain."""
        return self.space.base.plan_cache.exclusively(lambda: self._anywhere(pod_classes))

    def _anywhere(self, pod_classes: tuple[PodClass, ...]) -> Placement | None:
        with suppress(BudgetEnded):
            match, use = self.space.match(pod_classes), self._use(ROOT)
            ranking = self._ranking(pod_classes, ROOT, use, self.space.weights(pod_classes), 0)
            best = ranking.best(self.space.capacity, match, ROOT, clear=False)
            return self._placement(ranking, match, best, pod_classes, exact=False) if best else None
        return None

    def fits_at(self, level: int) -> LevelAttempt:
        """Returns the best domain of exactly this level and the number of pods that it holds, with preferred
        levels ignored; no domain and 0 pods if the budget ends first.
        """
        pod_classes = relaxations(self.request)[-1]
        return self._unless_ended(lambda: self._attempt_at(pod_classes, level), level, pod_classes)

    def packing(self, pod_classes: tuple[PodClass, ...], level: int = ROOT) -> DomainPacking:
        """Returns the packing of these pod classes on the nodes that the gang may use if its placement is at
        this level; ROOT: if it spans the whole topology.
        """
        return self._ranking(pod_classes, ROOT, self._use(level), self.space.weights(pod_classes), 0).packing

    def _attempt_at(self, pod_classes: tuple[PodClass, ...], level: int) -> LevelAttempt:
        pod_classes = merged(self.space, pod_classes)
        use, match = self._use(level), self.space.match(pod_classes)
        ranking = self._ranking(pod_classes, level, use, self.space.weights(pod_classes), 0)
        clear = use == "clear"
        best = ranking.best(self.space.capacity, match, level, clear=clear)
        if best is None:
            return self._failure(ranking, match, level, pod_classes, clear=clear)
        fits = sum(pod_class.count for pod_class in pod_classes)
        return self._attempt(level, self.space.domain_at(best.path)[0], fits, pod_classes)

    def _search_within_budget(self, pod_classes: tuple[PodClass, ...], required: int) -> LevelSearchResult:
        attempts: list[Callable[[], LevelAttempt]] = []
        with suppress(BudgetEnded):
            placement = self._search(pod_classes, required, 0, attempts)
            return LevelSearchResult(placement, Attempts(attempts), complete=True)
        for beam in () if self.budget.hard else _BEAMS:
            self.budget.left = _BEAM_BUDGET
            attempts = []
            with suppress(BudgetEnded):
                placement = self._search(pod_classes, required, beam, attempts)
                return LevelSearchResult(placement, Attempts(attempts), complete=False)
        return LevelSearchResult(None, Attempts(attempts), complete=False)

    def _search(
        self,
        pod_classes: tuple[PodClass, ...],
        required: int,
        beam: int,
        attempts: list[Callable[[], LevelAttempt]],
    ) -> Placement | None:
        """Returns the best placement; with a beam (not 0) it is not proved best. None if there is none.

        Attempts are appended to `attempts`, so that the caller has them even if the budget ends.
        """
        pod_classes = merged(self.space, pod_classes)
        capacity, match = self.space.capacity, self.space.match(pod_classes)
        weights = self.space.weights(pod_classes)
        rankings: dict[Exclusivity, DomainRanking] = {}
        for level in range(self.space.tree.topology.host_index, required - 1, -1):
            if level in self.space.extra and level != required:  # exists only for a rule over a label
                continue
            use = self._use(level)
            if use not in rankings:
                rankings[use] = self._ranking(pod_classes, required, use, weights, beam)
            ranking, clear = rankings[use], use == "clear"
            best = ranking.best(capacity, match, level, clear=clear)
            if best is not None:
                placement = self._placement(ranking, match, best, pod_classes, exact=not beam)
                fits = sum(pod_class.count for pod_class in pod_classes)
                branch = placement.branch
                attempts.append(partial(self._attempt, branch.level, branch, fits, pod_classes))
                return placement
            failure = partial(self._failure, ranking, match, level, pod_classes, clear=clear)
            attempts.append(partial(self._unless_ended, failure, level, pod_classes))
        return None

    def _use(self, level: int) -> Exclusivity:
        """Returns which nodes the gang may use for a placement at this level (see `Exclusivity`).

        In mode `domain`, the gang must be able to hold its domains whole: "clear" if it will hold the domain
        of this level, "apart" if the level is above the reservable one, so that it will hold each domain of
        the reservable level that it uses. In other modes "shared".
        """
        if self.mode != "domain":
            return "shared"
        return "clear" if level >= self.space.tree.topology.reservable_index else "apart"

    def _ranking(
        self, pod_classes: tuple[PodClass, ...], required: int, use: Exclusivity, weights: Weights, beam: int
    ) -> DomainRanking:
        """Returns the ranking of domains for these pod classes.

        The ranking for a single pod class is cached for later plans: its packing has a budget for each piece
        of work. With several pod classes, which use this plan's budget, only the capacity classes are cached.
        """
        bare = _bare(pod_classes)
        if beam or len(pod_classes) > 1:
            classes = self._classes(bare, use, weights)
            several = SeveralClassesPacking(bare, use, weights, self.budget, self.spare, beam, classes)
            return DomainRanking(several, bare, required)
        if self.space.limited:  # caps belong to one gang, so no later plan can use the ranking
            packing = DomainPacking(
                bare, use, weights, self.budget, classes=self._classes(bare, use, weights)
            )
            return DomainRanking(packing, bare, required)
        return self.space.base.plan_cache.entry(
            RANKINGS,
            (_key(pod_classes[0]), required, use, weights),
            lambda: DomainRanking(DomainPacking(bare, use, weights), bare, required),
        )

    def _classes(self, bare: tuple[PodClass, ...], use: Exclusivity, weights: Weights) -> CapacityClasses:
        key = tuple([(_key(pod_class), pod_class.names, pod_class.anti_affinity_with) for pod_class in bare])
        return self.space.base.plan_cache.entry(
            CLASSES, (key, use, weights), lambda: CapacityClasses(bare, use, weights)
        )

    def _placement(
        self,
        ranking: DomainRanking,
        match: EligibilityMap,
        best: Candidate,
        pod_classes: tuple[PodClass, ...],
        *,
        exact: bool,
    ) -> Placement:
        branch, capacity = self.space.domain_at(best.path)
        match = _down(self.space, match, best.path)
        start = self.space.start(best.path)
        pods_by_node = [(start + index, counts) for index, counts in ranking.packing.place(capacity, match)]
        return Placement(branch, pod_classes, pods_by_node, best.key[0], exact)

    def _attempt(
        self, level: int, branch: Subtree, fits: int, pod_classes: Sequence[PodClass]
    ) -> LevelAttempt:
        wanted = sum(pod_class.count for pod_class in pod_classes)
        return LevelAttempt(self._key_of(level), branch.path, fits, wanted)

    def _key_of(self, level: int) -> str:
        return self.space.tree.topology.levels[level] if level > ROOT else ""

    def _unless_ended(
        self, attempt: Callable[[], LevelAttempt], level: int, pod_classes: Sequence[PodClass]
    ) -> LevelAttempt:
        """Returns the attempt, computed while no other search runs; no domain and 0 pods if the budget ends
        first.
        """

        def computed() -> LevelAttempt:
            try:
                return attempt()
            except BudgetEnded:
                return self._without_domain(level, pod_classes, "the search ended first")

        return self.space.base.plan_cache.exclusively(computed)

    def _without_domain(self, level: int, pod_classes: Sequence[PodClass], note: str) -> LevelAttempt:
        wanted = sum(pod_class.count for pod_class in pod_classes)
        return LevelAttempt(self._key_of(level), (), 0, wanted, note)

    def _failure(
        self,
        ranking: DomainRanking,
        match: EligibilityMap,
        level: int,
        pod_classes: tuple[PodClass, ...],
        *,
        clear: bool,
    ) -> LevelAttempt:
        """Returns the attempt at a level of which no domain holds the whole gang: it names the domain that
        holds the most pods, and their number; no domain and 0 pods if none is free.
        """
        nearest = ranking.nearest(self.space.capacity, match, level, clear=clear)
        if nearest is None:
            return self._without_domain(level, pod_classes, "no domain is free")
        branch, capacity = self.space.domain_at(nearest.path)
        match = _down(self.space, match, nearest.path)
        fits = nearest.fits if len(pod_classes) == 1 else ranking.packing.fits(capacity, match)
        return self._attempt(level, branch, fits, pod_classes)


def _down(space: SearchSpace, match: EligibilityMap, path: ChildPath) -> EligibilityMap:
    """Returns the eligibility map of the domain at this path; `match`: that of the root."""
    branch = space.tree.root
    for place in path:
        match, branch = match.of_children(len(branch.children))[place], branch.children[place]
    return match


def _bare(pod_classes: Sequence[PodClass]) -> tuple[PodClass, ...]:
    """Returns the pod classes without their `parts` (PodSets), so that other gangs can reuse the cached
    results.
    """
    return tuple([replace(pod_class, parts=()) for pod_class in pod_classes])


def _key(pod_class: PodClass) -> Hashable:
    """Returns a cache key of everything that a search reads from a pod class, except label constraints:
    cached results have the eligibility map, which contains these, as part of their own keys.
    """
    shape = pod_class.shape
    requests = tuple(sorted(shape.requests.items()))
    levels = (
        pod_class.required,
        pod_class.preferred,
        pod_class.slice_level,
        pod_class.slice_size,
        pod_class.anti_affinity_levels,
        pod_class.co_located_at,
    )
    alignment = shape.alignment and shape.alignment.key
    devices = (shape.claim_specs, shape.extended_claims, shape.nvlink_group)
    return (pod_class.count, requests, shape.tolerations, levels, alignment, devices)
