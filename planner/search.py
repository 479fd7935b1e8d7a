"""Finding the cheapest way to place every pod of a gang inside one domain: exact, from the host up.

For each domain the search keeps its *options*: what it could hold (counts of each kind) and the least cost
of holding it. A host's options are its largest packings; a domain's are the sums of its children's, kept
to what the domain may hold (a kind that must be together is there wholly or not at all). Costs are whole
numbers that add up, so the least cost of covering the gang is the true optimum, not a greedy one. Domains
whose contents come to the same are of one class and share their options, so the work follows the number of
classes; and since classes hang on contents alone, a search serves every snapshot and gets faster with use.

The work is counted; past the budget `BudgetEnded` is raised. So that the end of a budget does not hang on
what an earlier plan left behind, a search that is kept for later plans has a budget for each class instead.
A search with a `beam` keeps only that many sums at each step: what it finds is a valid placement, though
perhaps not the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from planner.content import Content
from planner.cost import Weights
from planner.counts import Algebra, Counts, One, algebra, projections
from planner.match import condition_obstacle
from planner.matching import Match
from planner.packing import HostFit, most
from planner.request import Kind

BUDGET = 1_000_000
"""Sums of one kind of pods that one plan may try, about a third of a second; sums of several count more."""

Use = Literal["shared", "clear", "apart"]
"""Which nodes may be used: those that no gang holds whole; those that no gang touches; or of these only those
whose reservable domain no gang touches either, for it will be held."""

Option = tuple[Counts, int]
Stage = dict[Counts, int]
Placed = list[tuple[int, tuple[int, ...]]]
"""Nodes (by their place in the domain) with the number of pods of each kind."""

EMPTY = 0
"""The class of a domain that can hold nothing."""


class BudgetEnded(Exception):  # noqa: N818
    """The search was stopped before it was complete."""


@dataclass(slots=True)
class Budget:
    """Work left, shared by every search for one gang."""

    left: int = BUDGET

    def spend(self, work: int) -> None:
        """Take some; raises `BudgetEnded` when there is none left."""
        self.left -= work
        if self.left < 0:
            raise BudgetEnded


@dataclass(frozen=True, slots=True)
class _Class:
    """What domains of equal contents have in common: level, children's classes, own cost."""

    level: int
    named: bool
    children: tuple[int, ...]
    own: int


@dataclass(frozen=True, slots=True)
class _Bound:
    """Pruning: for each level from the children's down the cost of one more domain and the most of each kind
    in one, and the most to pay. Of several kinds only the children's level is looked at."""

    levels: tuple[tuple[int, tuple[int, ...]], ...]
    ceiling: int


class Search:
    """One gang's kinds in the domains of one topology of so many levels. See the module's words.

    Without a budget each class has its own, and what is found stays good for later plans.
    """

    def __init__(
        self,
        kinds: tuple[Kind, ...],
        use: Use,
        weights: Weights,
        budget: Budget | None = None,
        beam: int = 0,
    ) -> None:
        self._kinds, self._use, self._beam = kinds, use, beam
        self.weights = weights
        self._own_budgets = budget is None
        self._budget = budget or Budget()
        self._levels = len(weights.domains)
        self.counts: Algebra = algebra(kinds)
        self._effort = 1 if len(kinds) == 1 else 4 + len(kinds)
        self._project = projections(kinds, self.counts, self._levels)
        self._classes: list[_Class | None] = [None]
        self._options: list[list[Option] | None] = [[]]
        self._reach: list[Counts] = [self.counts.zero]
        self._peaks: list[tuple[int, ...]] = [()]
        self._known: dict[object, int] = {}
        self._of: dict[tuple[Content, Match], int] = {}
        self._best: dict[int, tuple[int | None, int | None]] = {}
        self._hard: set[object] = set()
        self._covers: dict[tuple[Content, Match, Counts], Placed] = {}
        self._fit = HostFit(kinds, self._levels - 1)

    @property
    def size(self) -> int:
        """How much it remembers."""
        return len(self._of) + len(self._covers)

    def reach(self, content: Content, match: Match) -> Counts:
        """At least as many of each kind as the domain can hold; exact for a single kind."""
        return self._reach[self.class_of(content, match)]

    def holds_all(self, content: Content, match: Match) -> bool:
        """Whether the domain's reach is the whole gang: where not, neither it nor what is inside serves."""
        return self.counts.covers(self._reach[self.class_of(content, match)], self.counts.full)

    def least_cost(self, content: Content, match: Match) -> int:
        """No placement of the whole gang in the domain costs less; cheap to tell."""
        made = self._classes[self.class_of(content, match)]
        if made is None or self._own_budgets is False:
            return 0
        each = max(self.counts.size(self._reach[child]) for child in made.children)
        fewest = -(-self.counts.size(self.counts.full) // each) if each else 0
        below = made.level + 1
        return made.own + fewest * (self.weights.domains[below] if below < self._levels else 0)

    def cost(self, content: Content, match: Match, ceiling: int | None = None) -> int | None:
        """The least cost of the whole gang inside the domain; None where it does not fit.

        With a ceiling (which a search that is kept leaves aside) also where it costs more than that.
        """
        known = self.class_of(content, match)
        if self._own_budgets:
            ceiling = None
        cost, tried = self._best.get(known, (None, -1))
        if cost is None and tried is not None and (ceiling is None or ceiling > tried):
            with self._one("cost", known):
                cost = self._least(known, ceiling)
            self._best[known] = (cost, ceiling)
        return cost

    def fits(self, content: Content, match: Match) -> int:
        """The most pods of the gang that the domain can hold at once."""
        sizes = (self.counts.size(counts) for counts, _ in self._options_of(self.class_of(content, match)))
        return max(sizes, default=0)

    def place(self, content: Content, match: Match) -> Placed:
        """The cheapest placement inside a domain that holds the gang; ties fill earlier nodes."""
        return self._cover(content, match, self.counts.full)

    @contextmanager
    def _one(self, *work: object) -> Iterator[None]:
        """One piece of work, with a budget of its own where the search has none; too hard once is so ever."""
        if not self._own_budgets:
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

    # -- classes -------------------------------------------------------------------------------------------

    def class_of(self, content: Content, match: Match) -> int:
        """The class of a domain; `EMPTY` where it can hold nothing."""
        known = self._of.get((content, match))
        if known is None:
            made = self._host_class if content.free is not None else self._domain_class
            known = self._of[content, match] = made(content, match)
        return known

    def _usable(self, content: Content) -> bool:
        if self._use == "shared":
            return not content.held
        return not content.gang

    def _host_class(self, content: Content, match: Match) -> int:
        best = self._packings(content, match) if self._usable(content) else ()
        project = self._project[content.level]
        if project:
            kept = (project(counts, content.named) for counts in best)
            best = tuple(dict.fromkeys(counts for counts in kept if counts != self.counts.zero))
        if not best:
            return EMPTY
        own = self.weights.own(content) + self.weights.penalty * match.penalty
        known = self._known.get((best, own))
        if known is None:
            each = [self.counts.each(counts) for counts in best]
            reach = self.counts.pack([max(column) for column in zip(*each, strict=True)])
            known = self._new((best, own), None, [(counts, own) for counts in best], reach)
        return known

    def _packings(self, content: Content, match: Match) -> tuple[Counts, ...]:
        """What the host could hold of the kinds, empty where nothing fits."""
        allowed = tuple(
            not why
            and not condition_obstacle(
                kind.shape, ready=content.ready, cordoned=content.cordoned, taints=content.taints
            )
            for kind, why in zip(self._kinds, match.why, strict=True)
        )
        if not any(allowed):
            return ()
        assert content.free is not None, "only hosts are packed"
        if len(self._kinds) > 1:
            return self._fit.best(content.free, allowed, content.gpus)
        kind = self._kinds[0]
        wanted = 1 if self._levels - 1 in kind.apart else kind.count
        room = min(wanted, most(content.free, kind.shape, content.gpus, wanted))
        return (room,) if room else ()

    def _domain_class(self, content: Content, match: Match) -> int:
        held = content.level == self.weights.reservable and content.named and content.gang
        if held and self._use == "apart":
            return EMPTY
        inside = match.inside(len(content.children))
        classes = [self.class_of(c, m) for c, m in zip(content.children, inside, strict=True)]
        children = tuple(sorted([one for one in classes if one]))
        if not children:
            return EMPTY
        own = self.weights.own(content) if content.level >= 0 else 0
        key = _Class(content.level, content.named, children, own)
        known = self._known.get(key)
        if known is None:
            reach = self.counts.zero
            for child in children:
                reach = self.counts.add(reach, self._reach[child])
            reach = self._kept(key, reach)
            known = EMPTY if reach == self.counts.zero else self._new(key, key, None, reach)
        return known

    def _new(self, key: object, made: _Class | None, options: list[Option] | None, reach: Counts) -> int:
        self._classes.append(made)
        self._options.append(options)
        self._reach.append(reach)
        self._peaks.append((self.counts.size(reach), *self._peaks_of(made)))
        self._known[key] = len(self._classes) - 1
        return self._known[key]

    def _peaks_of(self, made: _Class | None) -> tuple[int, ...]:
        """The most pods in one domain of each level below the class's own."""
        inside = [self._peaks[child] for child in set(made.children)] if made else []
        return tuple(map(max, zip(*inside, strict=True)))

    def _kept(self, made: _Class, counts: Counts) -> Counts:
        project = self._project[made.level] if made.level >= 0 else None
        return project(counts, made.named) if project else counts

    # -- options -------------------------------------------------------------------------------------------

    def _options_of(self, known: int) -> list[Option]:
        options = self._options[known]
        if options is None:
            made = self._classes[known]
            assert made is not None, "only a domain's options are worked out later"
            with self._one("options", known):
                stage = self._stages(made.children, None)[-1]
            kept: Stage = {}
            for counts, cost in stage.items():
                allowed = self._kept(made, counts)
                if allowed != self.counts.zero and cost + made.own < kept.get(allowed, cost + made.own + 1):
                    kept[allowed] = cost + made.own
            options = self._options[known] = sorted(self._undominated(kept).items())
        return options

    def _least(self, known: int, ceiling: int | None) -> int | None:
        full = self.counts.full
        if not self.counts.covers(self._reach[known], full):
            return None
        made = self._classes[known]
        if made is None:
            return min((cost for counts, cost in self._options_of(known) if counts == full), default=None)
        bound = self._bound(made.children, full, None if ceiling is None else ceiling - made.own)
        _, stages = self._reaching(made.children, full, bound)
        inner = stages[-1].get(full)
        return None if inner is None else inner + made.own

    def _stages(
        self, children: Sequence[int], target: Counts | None, bound: _Bound | None = None
    ) -> list[Stage]:
        """The least cost of each sum of the first 0, 1, … children's options.

        With a target, sums stop at it, and those that cannot reach it any more or pass the bound are dropped.
        """
        counts = self.counts
        goal = counts.full if target is None else target
        rest = [counts.zero]
        for child in reversed(children):
            rest.append(counts.add(rest[-1], self._reach[child]))
        rest.reverse()
        stages: list[Stage] = [{counts.zero: 0}]
        for place, child in enumerate(children):
            stage = self._sums(stages[-1], self._options_of(child), goal)
            if target is not None:
                ahead = rest[place + 1]
                stage = {s: c for s, c in stage.items() if counts.covers(counts.add(s, ahead), goal)}
            if bound is not None:
                stage = self._within(stage, goal, bound)
            stages.append(self._undominated(stage))
        return stages

    def _sums(self, before: Stage, options: Sequence[Option], goal: Counts) -> Stage:
        self._budget.spend(len(before) * (len(options) + 1) * self._effort)
        add, least = self.counts.add, self.counts.least
        after = dict(before)
        for counts, cost in before.items():
            if counts == goal:
                continue
            for more, price in options:
                total = least(add(counts, more), goal)
                if cost + price < after.get(total, cost + price + 1):
                    after[total] = cost + price
        return after

    def _reaching(
        self, children: Sequence[int], target: Counts, bound: _Bound | None
    ) -> tuple[list[int], list[Stage]]:
        """The stages up to the target over the children that it takes, and these children's places.

        First with as few domains as there can be: what is found so has no better, and little is looked at.
        """
        tightest = self._tightest(bound, target)
        for limit in (bound,) if tightest is None else (tightest, bound):
            places = self._enough(children, limit)
            stages = self._stages([children[place] for place in places], target, limit)
            if target in stages[-1]:
                break
        return places, stages

    def _tightest(self, bound: _Bound | None, target: Counts) -> _Bound | None:
        """The bound for the fewest domains of each level that could hold the target; one kind only."""
        if bound is None or not isinstance(self.counts, One):
            return None
        fewest = sum(price * -(-target // peak) for price, (peak,) in bound.levels)
        ceiling = fewest + self.weights.domains[-1] - 1
        return _Bound(bound.levels, ceiling) if ceiling < bound.ceiling else None

    def _bound(self, children: Sequence[int], goal: Counts, ceiling: int | None) -> _Bound | None:
        """What prunes sums on the way to a goal; None where not even the largest-first way reaches it."""
        tables = [self._options_of(child) for child in children]
        largest = self._greedy(tables, goal)
        if largest is None and ceiling is None:
            return None
        ceilings = [cost for cost in (largest, ceiling) if cost is not None]
        made = self._classes[children[0]]
        level = made.level if made else self._levels - 1
        domains = self.weights.domains[level:]
        if isinstance(self.counts, One):
            peaks = map(max, zip(*(self._peaks[child] for child in set(children)), strict=True))
            return _Bound(tuple((c, (most,)) for c, most in zip(domains, peaks, strict=True)), min(ceilings))
        every = [self.counts.each(counts) for one in set(children) for counts, _ in self._options_of(one)]
        most_pods = tuple(max(column) for column in zip(*every, strict=True))
        return _Bound(((domains[0], most_pods),), min(ceilings))

    def _enough(self, children: Sequence[int], bound: _Bound | None) -> list[int]:
        """The places of the children that a search needs: of equal ones no more than it could pay for."""
        if bound is None:
            return list(range(len(children)))
        copies = bound.ceiling // bound.levels[0][0]
        seen: Counter[int] = Counter()
        found: list[int] = []
        for place, child in enumerate(children):
            seen[child] += 1
            if seen[child] <= copies:
                found.append(place)
        return found

    def _greedy(self, tables: list[list[Option]], goal: Counts) -> int | None:
        """The cost of covering the goal by the largest options first, the last one as cheap as serves."""
        counts, need, cost = self.counts, goal, 0
        largest = sorted(tables, key=lambda options: max(counts.size(c) for c, _ in options), reverse=True)
        for options in largest:
            enough = [price for more, price in options if counts.covers(more, need)]
            if enough:
                return cost + min(enough)
            more, price = max(options, key=lambda o: (counts.size(counts.least(o[0], need)), -o[1]))
            if counts.least(more, need) != counts.zero:
                need, cost = counts.minus(need, more), cost + price
        return None

    def _within(self, stage: Stage, goal: Counts, bound: _Bound) -> Stage:
        """The sums that a placement no dearer than the one already known may still go through."""
        each, minus = self.counts.each, self.counts.minus
        kept: Stage = {}
        for counts, cost in stage.items():
            left = each(minus(goal, counts))
            for price, peak in bound.levels:
                cost += price * max((-(-n // m) for n, m in zip(left, peak, strict=True) if n), default=0)
            if cost <= bound.ceiling:
                kept[counts] = stage[counts]
        return kept

    def _undominated(self, stage: Stage) -> Stage:
        """The sums that no larger sum costs as little as; at most the beam's number of them."""
        if isinstance(self.counts, One):
            kept: Stage = {}
            cheapest: int | None = None
            for counts in sorted(stage, reverse=True):
                if cheapest is None or stage[counts] < cheapest:
                    kept[counts] = cheapest = stage[counts]
        else:
            kept = self._undominated_many(stage)
        if self._beam and len(kept) > self._beam:
            largest = sorted(kept.items(), key=lambda item: (-self.counts.size(item[0]), item[1], item[0]))
            kept = dict(largest[: self._beam])
        return kept

    def _undominated_many(self, stage: Stage) -> Stage:
        if self._beam and len(stage) > 3 * self._beam:
            largest = sorted(stage.items(), key=lambda item: (-self.counts.size(item[0]), item[1], item[0]))
            stage = dict(largest[: 3 * self._beam])
        if len(stage) > _MOST_COMPARED:
            return stage
        kept: list[Option] = []
        for counts, cost in sorted(stage.items(), key=lambda item: (item[1], -self.counts.size(item[0]))):
            if not any(self.counts.covers(other, counts) for other, _ in kept):
                kept.append((counts, cost))
        self._budget.spend(len(stage) * len(kept))
        return dict(kept)

    # -- the placement -------------------------------------------------------------------------------------

    def _cover(self, content: Content, match: Match, target: Counts) -> Placed:
        if not content.children:
            return [(0, self.counts.each(target))]
        placed = self._covers.get((content, match, target))
        if placed is None:
            with self._one("cover", content, match, target):
                placed = self._covers[content, match, target] = self._covered(content, match, target)
        return placed

    def _covered(self, content: Content, match: Match, target: Counts) -> Placed:
        inside = match.inside(len(content.children))
        able: list[tuple[int, Content, Match, int]] = []
        start = 0
        for child, its in zip(content.children, inside, strict=True):
            if known := self.class_of(child, its):
                able.append((start, child, its, known))
            start += child.size
        every = [known for *_, known in able]
        places, stages = self._reaching(every, target, self._bound(every, target, None))
        children = [able[place] for place in places]
        parts: list[Placed] = []
        cost = stages[-1].get(target)
        if cost is None:  # only a beam loses what its own options promised
            raise BudgetEnded
        for place in range(len(children) - 1, -1, -1):
            start, child, its, known = children[place]
            price, rest = self._step(stages[place], self._options_of(known), target, cost)
            given = self.counts.minus(target, rest)
            if given != self.counts.zero:
                parts.append([(start + at, counts) for at, counts in self._cover(child, its, given)])
            target, cost = rest, cost - price
        return [one for part in reversed(parts) for one in part]

    def _step(
        self, before: Stage, options: Sequence[Option], target: Counts, cost: int
    ) -> tuple[int, Counts]:
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


_MOST_COMPARED = 256
