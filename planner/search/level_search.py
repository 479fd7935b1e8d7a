"""The finest level that has a domain for the whole gang, and the best domain of that level.

    b1: r1 ...  r2 ...        a dot is a free node; six pods of a node each
    b2: r3 .... r4 ..

Host: the best takes one of six. Rack: r3 takes four of six. Block: b1 and b2 take six: the search ends here,
and `DomainRanking` says which. A domain of a finer level is always fewer domains than several, so the first
level with a domain for all pods is where the optimum lies.

In mode `domain` a domain must be clear of other gangs to be held; above the reservable level only hosts whose
reservable domain is clear may be used. Where the budget ends, the search is made again with a beam: what
that finds is a valid placement, not proved best.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from planner.cluster.plan_cache import CacheSection
from planner.cluster.tree import Subtree
from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass
from planner.model.podgroup import ReserveMode
from planner.model.topology import ROOT
from planner.model.work_budget import BudgetEnded, WorkBudget
from planner.request.relaxation import relaxations
from planner.request.topology_request import TopologyRequest
from planner.search.capacity_classes import CapacityClasses, Exclusivity
from planner.search.domain_packing import DomainPacking
from planner.search.domain_ranking import Candidate, ChildPath, DomainRanking
from planner.search.eligibility_map import EligibilityMap
from planner.search.mixtures.equivalent_classes import merged
from planner.search.mixtures.several_classes import SeveralClassesPacking
from planner.search.objective import Weights
from planner.search.result import Placement
from planner.search.space import SearchSpace

CLASSES: CacheSection[tuple[Hashable, Exclusivity, Weights], CapacityClasses] = CacheSection(
    "capacity classes", results=len
)
"""By the pod classes, which nodes they may use, and the weights. Never stale: what is remembered follows from
a domain's capacity. It grows by a result for each capacity that is new."""

RANKINGS: CacheSection[tuple[Hashable, int, Exclusivity, Weights], DomainRanking] = CacheSection(
    "domain rankings", results=lambda ranking: ranking.size
)
"""By the pod class, the required level, which nodes it may use, and the weights. Never stale, and grows, as
`CLASSES`. Only of a single pod class: a ranking of several may end in the budget, and would remember that."""


_BEAMS = (24, 6)
"""Sums that a search with a beam keeps at each step, where the whole search did not end: a wide one, then,
where even that does not end, a narrow one."""


_BEAM_BUDGET = 2_000_000
"""Sums of each of these; a whole search has 3,000,000."""


@dataclass(slots=True)
class LevelSearch:
    """The climbs of one gang over one view. `attempts` tells what was tried, fine to coarse."""

    view: SearchSpace
    asked: TopologyRequest
    mode: ReserveMode
    budget: WorkBudget
    attempts: list[LevelAttempt]
    complete: bool = True
    spare: WorkBudget = field(init=False)
    """For what is looked at pooled."""

    def __post_init__(self) -> None:
        self.spare = self.budget if self.budget.hard else replace(self.budget)

    def in_space(self, space: SearchSpace, budget: WorkBudget) -> LevelSearch:
        """A search for the same gang in another view, with attempts of its own."""
        return LevelSearch(space, self.asked, self.mode, budget, [])

    def climb(self, kinds: tuple[PodClass, ...], required: int) -> Placement | None:
        """The best placement with these kinds inside one domain of the `required` level (ROOT: anywhere)."""
        return self.view.base.plan_cache.exclusively(lambda: self._climb_within(kinds, required))

    def anywhere(self, kinds: tuple[PodClass, ...]) -> Placement | None:
        """A placement of these kinds over the whole topology, in domains that can be held; it may lie in one.
        None also where the search ends first."""
        return self.view.base.plan_cache.exclusively(lambda: self._anywhere(kinds))

    def _anywhere(self, kinds: tuple[PodClass, ...]) -> Placement | None:
        with suppress(BudgetEnded):
            match, use = self.view.match(kinds), self._use(ROOT)
            rank = self._rank(kinds, ROOT, use, self.view.weights(kinds), 0)
            best = rank.best(self.view.content, match, ROOT, clear=False)
            return self._found(rank, match, best, kinds, exact=False) if best else None
        return None

    def fits_at(self, level: int) -> LevelAttempt:
        """How many pods the best domain of just this level holds, preferred levels given up."""
        return self.view.base.plan_cache.exclusively(lambda: self._fits_at(level))

    def _fits_at(self, level: int) -> LevelAttempt:
        kinds = relaxations(self.asked)[-1]
        self.attempts.clear()
        try:
            self._look_at(kinds, level)
        except BudgetEnded:
            wanted = sum(kind.count for kind in kinds)
            self.attempts.append(LevelAttempt(self._key_of(level), (), 0, wanted, "the search ended first"))
        return self.attempts[-1]

    def packing(self, kinds: tuple[PodClass, ...]) -> DomainPacking:
        """What domains of the view hold of these kinds, where the gang may be in any of them."""
        return self._rank(kinds, ROOT, self._use(ROOT), self.view.weights(kinds), 0).search

    def _look_at(self, kinds: tuple[PodClass, ...], level: int) -> None:
        kinds = merged(self.view, kinds)
        use, match = self._use(level), self.view.match(kinds)
        rank, clear = self._rank(kinds, level, use, self.view.weights(kinds), 0), use == "clear"
        best = rank.best(self.view.content, match, level, clear=clear)
        if best is None:
            self._note_failure(rank, match, level, kinds, clear=clear)
        else:
            self._note(level, self.view.at(best.way)[0], sum(kind.count for kind in kinds), kinds)

    def _climb_within(self, kinds: tuple[PodClass, ...], required: int) -> Placement | None:
        try:
            return self._climb(kinds, required, 0)
        except BudgetEnded:
            self.complete = False
        for beam in () if self.budget.hard else _BEAMS:
            self.budget.left = _BEAM_BUDGET
            with suppress(BudgetEnded):
                return self._climb(kinds, required, beam)
        return None

    def _climb(self, kinds: tuple[PodClass, ...], required: int, beam: int) -> Placement | None:
        self.attempts.clear()
        kinds = merged(self.view, kinds)
        content, match = self.view.content, self.view.match(kinds)
        weights = self.view.weights(kinds)
        ranks: dict[Exclusivity, DomainRanking] = {}
        for level in range(self.view.tree.topology.host_index, required - 1, -1):
            if level in self.view.extra and level != required:
                continue
            use = self._use(level)
            if use not in ranks:
                ranks[use] = self._rank(kinds, required, use, weights, beam)
            rank, clear = ranks[use], use == "clear"
            best = rank.best(content, match, level, clear=clear)
            if best is not None:
                return self._found(rank, match, best, kinds, exact=self.complete)
            self._note_failure(rank, match, level, kinds, clear=clear)
        return None

    def _use(self, level: int) -> Exclusivity:
        """In mode `domain` a domain is held whole, or each reservable domain inside it that is used."""
        if self.mode != "domain":
            return "shared"
        return "clear" if level >= self.view.tree.topology.reservable_index else "apart"

    def _rank(
        self, kinds: tuple[PodClass, ...], required: int, use: Exclusivity, weights: Weights, beam: int
    ) -> DomainRanking:
        """A rank for these; that of one kind of pods is kept for later plans, for its work has an end. Of
        several kinds only the classes are."""
        bare = tuple(replace(kind, parts=()) for kind in kinds)
        cache = self.view.base.plan_cache
        if beam or len(kinds) > 1:
            asked = tuple([(_key(kind), kind.names, kind.anti_affinity_with) for kind in bare])
            classes = cache.entry(CLASSES, (asked, use, weights), lambda: CapacityClasses(bare, use, weights))
            several = SeveralClassesPacking(bare, use, weights, self.budget, self.spare, beam, classes)
            return DomainRanking(several, bare, required)
        if self.view.caps:  # of one gang alone
            return DomainRanking(DomainPacking(bare, use, weights, self.budget), bare, required)
        return cache.entry(
            RANKINGS,
            (_key(bare[0]), required, use, weights),
            lambda: DomainRanking(DomainPacking(bare, use, weights), bare, required),
        )

    def _found(
        self,
        rank: DomainRanking,
        match: EligibilityMap,
        best: Candidate,
        kinds: tuple[PodClass, ...],
        *,
        exact: bool,
    ) -> Placement:
        branch, content = self.view.at(best.way)
        match = _down(self.view, match, best.way)
        start = self.view.start(best.way)
        placed = [(start + at, counts) for at, counts in rank.search.place(content, match)]
        self._note(branch.level, branch, rank.search.counts.size(rank.search.counts.full), kinds)
        return Placement(branch, kinds, placed, best.key[0], exact)

    def _note(self, level: int, branch: Subtree, fits: int, kinds: Sequence[PodClass]) -> None:
        wanted = sum(kind.count for kind in kinds)
        self.attempts.append(LevelAttempt(self._key_of(level), branch.path, fits, wanted))

    def _key_of(self, level: int) -> str:
        return self.view.tree.topology.levels[level] if level > ROOT else ""

    def _note_failure(
        self,
        rank: DomainRanking,
        match: EligibilityMap,
        level: int,
        kinds: tuple[PodClass, ...],
        *,
        clear: bool,
    ) -> None:
        """Record how many pods the level's best domain holds."""
        nearest = rank.nearest(self.view.content, match, level, clear=clear)
        if nearest is None:
            wanted = sum(kind.count for kind in kinds)
            self.attempts.append(LevelAttempt(self._key_of(level), (), 0, wanted, "no domain is free"))
            return
        branch, content = self.view.at(nearest.way)
        match = _down(self.view, match, nearest.way)
        fits = nearest.fits if len(kinds) == 1 else rank.search.fits(content, match)
        self._note(level, branch, fits, kinds)


def _down(view: SearchSpace, match: EligibilityMap, way: ChildPath) -> EligibilityMap:
    """The match of the domain that a way leads to."""
    branch = view.tree.root
    for place in way:
        match, branch = match.inside(len(branch.children))[place], branch.children[place]
    return match


def _key(kind: PodClass) -> Hashable:
    """All that a search looks at in a kind of pods; labels are the match's affair."""
    shape = kind.shape
    requests = tuple(sorted(shape.requests.items()))
    levels = (
        kind.required,
        kind.preferred,
        kind.slice_level,
        kind.slice_size,
        kind.anti_affinity_levels,
        kind.co_located_at,
    )
    aligned = shape.alignment and shape.alignment.key
    devices = (shape.claim_specs, shape.extended_claims, shape.nvlink_group)
    return (kind.count, requests, shape.tolerations, levels, aligned, devices)
