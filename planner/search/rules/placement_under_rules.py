"""The placement that keeps every rule over labels: those of pods apart and together, and of pods spread.

    spread, maxSkew 1, 3 rows, 7 pods:   fewest 2 in a row -> caps of 3 -> the best placement: 3 3 1
    the third row has too few -> cut: six pods, two for each row, and one more -> 3 2 2, which is bound in
    order

For each number that the emptiest domain may have: the best placement under caps; where it leaves a domain too
few, the pods are cut in two. Of all these the cheapest counts. Where the effort ends without a place,
`spread_of_one_class` tells what it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass
from planner.request.topology_spread import CAUSE as SPREAD
from planner.search.binding_order import BindingOrderCheck, Seat
from planner.search.level_search import LevelSearch
from planner.search.result import LevelSearchResult, Placement
from planner.search.rules.anti_affinity_over_labels import CAUSE, Kinds, LabelRuleSearch, values_of
from planner.search.rules.search_effort import SearchEffort
from planner.search.rules.spread_of_one_class import spread_one_class
from planner.search.rules.spread_over_labels import (
    SpreadRule,
    SpreadVariant,
    capped,
    clear_of,
    cut,
    numbers,
    rules_of,
)

_PART = 8
"""Each step of the search for the number of pods that have a place takes an eighth of a plan's effort at
most: it halves the range, so that a gang of 256 pods takes eight steps."""


def has_rules(kinds: Sequence[PodClass]) -> bool:
    """Whether any kind has a rule over a label that is no level, or is to be spread."""
    return any(kind.anti_affinity_over or kind.co_located_over or kind.shape.spread_states for kind in kinds)


def place_by_rules(climb: LevelSearch, kinds: Kinds, required: int) -> LevelSearchResult:
    """The best placement of these kinds inside one domain of the required level that keeps every rule."""
    result = _RuleSearch(climb, kinds, required, SearchEffort(climb)).result()
    if result.placement is not None:
        return result
    if not result.attempts:
        ignoring_rules = climb.search(kinds, required)
        complete = result.complete and ignoring_rules.complete
        result = LevelSearchResult(None, ignoring_rules.attempts, complete)
    if climb.budget.hard:
        return result
    return replace(result, attempts=_with_pods_that_fit(climb, kinds, required, result.attempts))


class _RuleSearch:
    """One search for the best placement; where pods are to be spread, over all the ways to."""

    def __init__(self, climb: LevelSearch, kinds: Kinds, required: int, effort: SearchEffort) -> None:
        self._climb, self._kinds, self._required, self._effort = climb, kinds, required, effort
        self._rules = rules_of(kinds)
        self._attempts: tuple[LevelAttempt, ...] = ()
        self._complete = True

    def result(self) -> LevelSearchResult:
        """The best placement that keeps every rule, and what was tried."""
        if not self._rules:
            return LabelRuleSearch(self._climb, self._kinds, self._required, (), self._effort).best()
        best = self._best_spread()
        if best is None and not self._complete:
            best = self._spread_in_one_class()
        elif best is not None:
            best = replace(best, exact=best.exact and self._complete)
        return LevelSearchResult(best, self._attempts, self._complete)

    def _best_spread(self) -> Placement | None:
        best: Placement | None = None
        attempts: tuple[LevelAttempt, ...] = ()
        combinations, self._complete = numbers(self._kinds, self._rules)
        for place, fewest in enumerate(combinations):
            if place and self._effort.over:
                self._complete = False
                break
            for placement in self._evenly(fewest, best):
                if best is None or _order(self._climb, placement) < _order(self._climb, best):
                    best, attempts = placement, self._attempts
        if best is not None:
            self._attempts = attempts
        return best

    def _spread_in_one_class(self) -> Placement | None:
        """Where the search ended without a place: one that is valid, or the proof that there is none."""
        outcome = spread_one_class(self._climb, self._kinds, self._rules, self._required)
        if outcome.decided:
            self._complete = True
        kept = [placement for placement in outcome.placements if self._keeps(placement)]
        return min(kept, key=lambda placement: _order(self._climb, placement), default=None)

    def _evenly(self, fewest: Sequence[int], best: Placement | None) -> Iterator[Placement]:
        """Placements better than `best` that leave the emptiest domain of each rule at its number."""
        climb, kinds, rules = self._climb, self._kinds, self._rules
        placement = self._placed(capped(kinds, rules, fewest))
        if placement is None or (best is not None and _order(climb, best) <= _order(climb, placement)):
            return
        if self._keeps(placement):
            yield placement
            return
        clear = self._placed(clear_of(kinds, rules, fewest)) if any(rule.nodes for rule in rules) else None
        if clear is not None and self._keeps(clear):
            yield replace(clear, kinds=kinds)
            if _order(climb, clear) == _order(climb, placement):
                return
        variants, every = cut(kinds, rules, fewest)
        self._complete = self._complete and every
        for place, variant in enumerate(variants):
            if place and self._effort.over:
                self._complete = False
                break
            placement = self._placed(variant)
            if placement is not None:
                placement = _rejoined(placement, kinds, variant.whose)
                if self._keeps(placement):
                    yield placement
                else:
                    self._complete = False

    def _placed(self, variant: SpreadVariant) -> Placement | None:
        search = LabelRuleSearch(self._climb, variant.kinds, self._required, variant.limits, self._effort)
        result = search.best(self._attempts)
        self._attempts = result.attempts
        self._complete = self._complete and result.complete
        return result.placement

    def _keeps(self, placement: Placement) -> bool:
        return _keeps(self._climb, self._rules, placement)


def _order(climb: LevelSearch, found: Placement) -> tuple[int, int]:
    """The finest domain, then the least cost."""
    return (climb.view.tree.topology.host_index - found.branch.level, found.cost)


def _keeps(climb: LevelSearch, rules: Sequence[SpreadRule], found: Placement) -> bool:
    """Whether a placement keeps every constraint in the end, and its pods can be bound one by one."""
    tree = climb.view.tree
    seats: list[Seat] = []
    counts: list[dict[str, tuple[int, ...]]] = [{} for _ in rules]
    for place, each in found.placed:
        name = tree.root.leaf(place).node
        values = tuple(rule.values.get(name, "") for rule in rules)
        seats += [Seat(kind, name, n, values) for kind, n in enumerate(each) if n]
        for value, one in zip(values, counts, strict=True):
            one[value] = tuple(map(int.__add__, one.get(value, (0,) * len(each)), each))
    if not all(rule.holds(one) for rule, one in zip(rules, counts, strict=True)):
        return False
    plain = len(rules) == 1 and rules[0].keepers == rules[0].counted
    if plain and not any(rules[0].there.values()):
        return True
    if not BindingOrderCheck(rules, seats, None).ends():
        return False
    return climb.mode == "none" or BindingOrderCheck(rules, seats, _pinned(climb, found, seats)).ends()


def _pinned(climb: LevelSearch, found: Placement, seats: Sequence[Seat]) -> dict[int, frozenset[str]]:
    """The nodes that the plan pins each kind to: its hosts, or the domains that the gang holds whole."""
    tree = climb.view.tree
    pinned: dict[int, set[str]] = {kind: set() for kind in range(len(found.kinds))}
    level = max(found.branch.level, tree.topology.reservable_index)
    for seat in seats:
        if climb.mode == "nodes":
            pinned[seat.kind].add(seat.node)
        elif seat.node not in pinned[seat.kind]:
            domain = tree.ancestor(seat.node, level)
            pinned[seat.kind].update(tree.names(domain) if domain.named else [seat.node])
    return {kind: frozenset(nodes) for kind, nodes in pinned.items()}


def _rejoined(found: Placement, kinds: Kinds, whose: Sequence[int]) -> Placement:
    """The placement of the kinds as they were before they were cut."""
    placed = [
        (
            place,
            tuple(
                sum(n for n, at in zip(each, whose, strict=True) if at == one) for one in range(len(kinds))
            ),
        )
        for place, each in found.placed
    ]
    return replace(found, kinds=kinds, placed=placed)


def _with_pods_that_fit(
    climb: LevelSearch, kinds: Kinds, required: int, attempts: Sequence[LevelAttempt]
) -> tuple[LevelAttempt, ...]:
    """The last attempt with the number of pods that keep the rules; of several kinds none is told."""
    least, most = 0, attempts[-1].fits if len(kinds) == 1 else 0
    most = min(most, attempts[-1].wanted - 1, *(values_of(climb, kind) for kind in kinds))
    middle = most  # as many as there are values, which is the likeliest
    while least < most:
        fewer = replace(kinds[0], count=middle, parts=((kinds[0].parts[0][0], middle),))
        search = _RuleSearch(climb, (fewer,), required, SearchEffort(climb, _PART))
        if search.result().placement is None:
            most = middle - 1
        else:
            least = middle
        middle = (least + most + 1) // 2
    note = SPREAD if any(kind.shape.spread_states for kind in kinds) else CAUSE
    return (*attempts[:-1], replace(attempts[-1], fits=least, note=note))
