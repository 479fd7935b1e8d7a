"""Finding the cheapest way to place every pod of a gang inside one domain: exact, from the host up.

For each domain the search keeps its *options*: what it could hold (counts of each kind) and the least cost
of holding it. A host's options are its largest packings; a domain's are the sums of its children's, kept
to what the domain may hold (a kind that must be together is there wholly or not at all). Costs are whole
numbers that add up, so the least cost of covering the gang is the true optimum, not a greedy one. Domains
with equal contents are of one class and share their options, so the work follows the number of classes.

The work is counted; past the budget `BudgetEnded` is raised. A search with a `beam` keeps only that many
sums at each step: what it finds is a valid placement, though perhaps not the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planner.cost import weights
from planner.counts import Algebra, Counts, One, algebra, projections
from planner.request import Kind
from planner.tree import Branch
from planner.view import HostFit, View, matches, most, penalty

BUDGET = 1_000_000
"""Sums of one kind of pods that one plan may try, about a third of a second; sums of several count more."""

Option = tuple[Counts, int]
Stage = dict[Counts, int]
Placed = list[tuple[int, tuple[int, ...]]]
"""Nodes (by their place in the tree) with the number of pods of each kind."""

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
    """Pruning: most of each kind in one child, the cost of using one more child, the most to pay."""

    most_pods: tuple[int, ...]
    per_domain: int
    ceiling: int


class Search:
    """One gang's kinds in one view; `usable` says which hosts may be used. See the module's words."""

    def __init__(
        self, view: View, kinds: tuple[Kind, ...], usable: Sequence[bool], budget: Budget, beam: int = 0
    ) -> None:
        self._view, self._kinds, self._budget, self._beam = view, kinds, budget, beam
        topology = view.tree.topology
        self.counts: Algebra = algebra(kinds)
        self._effort = 1 if len(kinds) == 1 else 4 + len(kinds)
        self._project = projections(kinds, self.counts, len(topology.levels))
        worst = sum(weight for kind in kinds for weight, _ in kind.shape.preferences)
        self.weights = weights(view, worst)
        self._classes: list[_Class | None] = [None]
        self._options: list[list[Option] | None] = [[]]
        self._reach: list[Counts] = [self.counts.zero]
        self._known: dict[object, int] = {}
        self._of: dict[Branch, int] = {}
        self._best: dict[int, int | None] = {}
        self._packings = packings(view, kinds, usable)

    def reach(self, branch: Branch) -> Counts:
        """At least as many of each kind as the branch can hold; exact for a single kind."""
        return self._reach[self.class_of(branch)]

    def cost(self, branch: Branch, ceiling: int | None = None) -> int | None:
        """The least cost of the whole gang inside the branch; None where it does not fit.

        With a ceiling (which must not rise from one call to the next) also where it costs more than that.
        """
        known = self.class_of(branch)
        if known not in self._best:
            self._best[known] = self._least(known, ceiling)
        return self._best[known]

    def fits(self, branch: Branch) -> int:
        """The most pods of the gang that the branch can hold at once."""
        sizes = (self.counts.size(counts) for counts, _ in self._options_of(self.class_of(branch)))
        return max(sizes, default=0)

    def place(self, branch: Branch) -> Placed:
        """The cheapest placement inside a branch that holds the gang; ties fill earlier nodes."""
        return self._cover(branch, self.counts.full)

    # -- classes -------------------------------------------------------------------------------------------

    def class_of(self, branch: Branch) -> int:
        """The branch's class; `EMPTY` where it can hold nothing."""
        known = self._of.get(branch)
        if known is None:
            host = branch.level == len(self._project) - 1
            known = self._of[branch] = self._host_class(branch) if host else self._domain_class(branch)
        return known

    def _host_class(self, branch: Branch) -> int:
        best = self._packings[branch.start]
        project = self._project[branch.level]
        if project:
            kept = (project(counts, True) for counts in best)
            best = tuple(dict.fromkeys(counts for counts in kept if counts != self.counts.zero))
        if not best:
            return EMPTY
        own = self._own(branch)
        if any(kind.shape.preferences for kind in self._kinds):
            own += self.weights.penalty * penalty(self._kinds, self._view.tree.nodes[branch.start])
        known = self._known.get((best, own))
        if known is None:
            each = [self.counts.each(counts) for counts in best]
            reach = self.counts.pack([max(column) for column in zip(*each, strict=True)])
            known = self._new((best, own), None, [(counts, own) for counts in best], reach)
        return known

    def _domain_class(self, branch: Branch) -> int:
        children = tuple(sorted(filter(None, map(self.class_of, branch.children))))
        if not children:
            return EMPTY
        key = _Class(branch.level, branch.named, children, self._own(branch) if branch.level >= 0 else 0)
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
        self._known[key] = len(self._classes) - 1
        return self._known[key]

    def _own(self, branch: Branch) -> int:
        level, view = branch.level, self._view
        opened = self.weights.opened[level] if view.pristine(branch) else 0
        return self.weights.domains[level] + opened + self.weights.free[level] * view.measure(branch)

    def _kept(self, made: _Class, counts: Counts) -> Counts:
        project = self._project[made.level] if made.level >= 0 else None
        return project(counts, made.named) if project else counts

    # -- options -------------------------------------------------------------------------------------------

    def _options_of(self, known: int) -> list[Option]:
        options = self._options[known]
        if options is None:
            made = self._classes[known]
            assert made is not None, "only a domain's options are worked out later"
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
        children = [made.children[place] for place in self._enough(made.children, bound)]
        inner = self._stages(children, full, bound)[-1].get(full)
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

    def _bound(self, children: Sequence[int], goal: Counts, ceiling: int | None) -> _Bound | None:
        """What prunes sums on the way to a goal; None where not even the largest-first way reaches it."""
        tables = [self._options_of(child) for child in children]
        largest = self._greedy(tables, goal)
        if largest is None and ceiling is None:
            return None
        ceilings = [cost for cost in (largest, ceiling) if cost is not None]
        every = [self.counts.each(counts) for options in tables for counts, _ in options]
        made = self._classes[children[0]]
        level = made.level if made else len(self._project) - 1
        most_pods = tuple(max(column) for column in zip(*every, strict=True))
        return _Bound(most_pods, self.weights.domains[level], min(ceilings))

    def _enough(self, children: Sequence[int], bound: _Bound | None) -> list[int]:
        """The places of the children that a search needs: of equal ones no more than it could pay for."""
        if bound is None:
            return list(range(len(children)))
        copies = bound.ceiling // bound.per_domain
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
            needed = (
                -(-left // most_pods)
                for left, most_pods in zip(each(minus(goal, counts)), bound.most_pods, strict=True)
                if left
            )
            if cost + max(needed, default=0) * bound.per_domain <= bound.ceiling:
                kept[counts] = cost
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

    def _cover(self, branch: Branch, target: Counts) -> Placed:
        if not branch.children:
            return [(branch.start, self.counts.each(target))]
        able = [child for child in branch.children if self.class_of(child)]
        bound = self._bound([self.class_of(child) for child in able], target, None)
        first = self._enough([self.class_of(child) for child in able], bound)
        children = [able[place] for place in first]
        classes = [self.class_of(child) for child in children]
        stages = self._stages(classes, target, bound)
        placed: Placed = []
        cost = stages[-1].get(target)
        if cost is None:  # only a beam loses what its own options promised
            raise BudgetEnded
        for place in range(len(children) - 1, -1, -1):
            before = stages[place]
            price, rest = self._step(before, self._options_of(classes[place]), target, cost)
            given = self.counts.minus(target, rest)
            if given != self.counts.zero:
                placed = [*self._cover(children[place], given), *placed]
            target, cost = rest, cost - price
        return placed

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


def packings(view: View, kinds: tuple[Kind, ...], usable: Sequence[bool]) -> list[tuple[Counts, ...]]:
    """What each node could hold of the kinds, empty where it is not usable or nothing fits.

    Nodes that give the same and of which nothing is used are looked at once.
    """
    host = view.tree.topology.host_index
    one, fit = kinds[0], HostFit(kinds, host)
    cap = 1 if host in one.apart else one.count
    known: dict[tuple[int, tuple[bool, ...]], tuple[Counts, ...]] = {}
    found: list[tuple[Counts, ...]] = []
    for index, node in enumerate(view.tree.nodes):
        allowed = matches(kinds, node, now=view.now) if usable[index] else ()
        if not any(allowed):
            found.append(())
            continue
        free = view.free(index)
        key = (id(free), allowed) if free is node.allocatable else None
        best = known.get(key) if key else None
        if best is None:
            if len(kinds) == 1:
                room = min(cap, most(free, one.shape))
                best = (room,) if room else ()
            else:
                best = fit.best(free, allowed)
            if key:
                known[key] = best
        found.append(best)
    return found
