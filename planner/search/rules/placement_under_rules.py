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
from planner.model.resolved import SPREAD_CAUSE
from planner.search.binding_order import BindingOrderCheck, Seat
from planner.search.result import Placement
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
from planner.search.rules.tree_search import TreeSearch

_PART = 8
"""Each step of the search for the number of pods that have a place takes an eighth of a plan's effort at
most: it halves the range, so that a gang of 256 pods takes eight steps."""


def has_rules(kinds: Sequence[PodClass]) -> bool:
    """Whether any kind has a rule over a label that is no level, or is to be spread."""
    return any(kind.anti_affinity_over or kind.co_located_over or kind.shape.spread_states for kind in kinds)


def place_by_rules(climb: TreeSearch, kinds: Kinds, required: int) -> Placement | None:
    """The best placement of these kinds inside one domain of the required level that keeps every rule."""
    found = _best(climb, kinds, required, SearchEffort(len(climb.view.tree.nodes), climb.budget))
    if found is None and not climb.attempts:
        climb.climb(kinds, required)
    if found is None and not climb.budget.hard:
        _say_how_close(climb, kinds, required)
    return found


def _best(climb: TreeSearch, kinds: Kinds, required: int, effort: SearchEffort) -> Placement | None:
    """The best placement; where pods are to be spread, of all the ways to."""
    rules = rules_of(kinds)
    if not rules:
        return LabelRuleSearch(climb, kinds, required, (), effort).best()
    best: Placement | None = None
    attempts: list[LevelAttempt] = []
    least, every = numbers(kinds, rules)
    complete = climb.complete and every
    for at, one in enumerate(least):
        if at and effort.over:
            complete = False
            break
        for found in _evenly(climb, kinds, rules, one, required, effort, best):
            if best is None or _order(climb, found) < _order(climb, best):
                best, attempts = found, list(climb.attempts)
    climb.complete = climb.complete and complete
    if best is None and not climb.complete:
        return _spread_in_one_class(climb, kinds, rules, required)
    if best is None:
        return None
    climb.attempts[:] = attempts
    return replace(best, exact=best.exact and climb.complete)


def _spread_in_one_class(
    climb: TreeSearch, kinds: Kinds, rules: Sequence[SpreadRule], required: int
) -> Placement | None:
    """Where the search ended without a place: one that is valid, or the proof that there is none."""
    outcome = spread_one_class(climb, kinds, rules, required)
    kept = [placement for placement in outcome.placements if _keeps(climb, rules, placement)]
    if outcome.decided:
        climb.complete = True
    return min(kept, key=lambda placement: _order(climb, placement), default=None)


def _evenly(
    climb: TreeSearch,
    kinds: Kinds,
    rules: Sequence[SpreadRule],
    least: Sequence[int],
    required: int,
    effort: SearchEffort,
    best: Placement | None,
) -> Iterator[Placement]:
    """The best placement that leaves each rule's emptiest domain at this number, if better than `best`."""

    def placed(way: SpreadVariant) -> Placement | None:
        return LabelRuleSearch(climb, way.kinds, required, way.limits, effort).best()

    found = placed(capped(kinds, rules, least))
    if found is None or (best is not None and _order(climb, best) <= _order(climb, found)):
        return
    if _keeps(climb, rules, found):
        yield found
        return
    clear = placed(clear_of(kinds, rules, least)) if any(rule.nodes for rule in rules) else None
    if clear is not None and _keeps(climb, rules, clear):
        yield replace(clear, kinds=kinds)
        if _order(climb, clear) == _order(climb, found):
            return
    ways, every = cut(kinds, rules, least)
    climb.complete = climb.complete and every
    for at, way in enumerate(ways):
        if at and effort.over:
            climb.complete = False
            break
        found = placed(way)
        if found is not None:
            found = _rejoined(found, kinds, way.whose)
            if _keeps(climb, rules, found):
                yield found
            else:
                climb.complete = False


def _order(climb: TreeSearch, found: Placement) -> tuple[int, int]:
    """The finest domain, then the least cost."""
    return (climb.view.tree.topology.host_index - found.branch.level, found.cost)


def _keeps(climb: TreeSearch, rules: Sequence[SpreadRule], found: Placement) -> bool:
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


def _pinned(climb: TreeSearch, found: Placement, seats: Sequence[Seat]) -> dict[int, frozenset[str]]:
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


def _say_how_close(climb: TreeSearch, kinds: Kinds, required: int) -> None:
    """The last attempt with the number of pods that keep the rules; of several kinds none is told."""
    attempts, complete = list(climb.attempts), climb.complete
    least, most = 0, attempts[-1].fits if len(kinds) == 1 else 0
    most = min(most, attempts[-1].wanted - 1, *(values_of(climb, kind) for kind in kinds))
    middle = most  # as many as there are values, which is the likeliest
    while least < most:
        fewer = replace(kinds[0], count=middle, parts=((kinds[0].parts[0][0], middle),))
        effort = SearchEffort(len(climb.view.tree.nodes), climb.budget, _PART)
        if _best(climb, (fewer,), required, effort) is None:
            most = middle - 1
        else:
            least = middle
        middle = (least + most + 1) // 2
    climb.complete = complete
    note = SPREAD_CAUSE if any(kind.shape.spread_states for kind in kinds) else CAUSE
    climb.attempts[:] = [*attempts[:-1], replace(attempts[-1], fits=least, note=note)]
