"""The placement that satisfies every rule over labels: anti-affinity, affinity and topology spread.

    spread, maxSkew 1, three rows, 7 pods
    minimum 2 per row -> caps of 3 -> best placement 3 3 1: the third row is below the minimum
    split the pods: two for each row, and one more -> 3 2 2, which can be bound pod by pod

For each possible minimum (number of pods in the emptiest domain), the best placement under caps is searched.
If it leaves a domain below the minimum, each pod class is split into pieces: pods that fill up domains to the
minimum, and the others. The cheapest of all these placements is returned.

For one pod class, `room_of_domains` may prove that there is no placement, before the first one that breaks a
constraint is repaired. `spread_of_one_class` gives it a placement if the effort ends without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from planner.model.answer import LevelAttempt
from planner.model.cached_property import cached_property
from planner.model.effort.deadline import poll
from planner.model.pod_class import PodClass, PodClasses
from planner.model.resolved import ANTI_AFFINITY_CAUSE, SPREAD_CAUSE
from planner.model.topology import ROOT
from planner.search.result import Attempts, LevelSearchResult, Placement, rejoined
from planner.search.rules.anti_affinity_over_labels import LabelRuleSearch, max_pods_of
from planner.search.rules.bindable_placement import bindable
from planner.search.rules.room_of_domains import RoomOfDomains, room_by_value, rooms_of
from planner.search.rules.search_effort import SearchEffort
from planner.search.rules.spread_of_one_class import is_decided, placement_in_cells, placements
from planner.search.rules.spread_over_labels import (
    SpreadVariant,
    away_from_counted,
    capped,
    cut,
    numbers,
    rules_of,
)
from planner.search.rules.tree_search import TreeSearch

_PART = 8
"""The bisection for the number of pods that fit gives each step an eighth of a plan's effort, because a gang
of 256 pods takes eight steps.
"""


def has_rules(pod_classes: Sequence[PodClass]) -> bool:
    """Reports whether any pod class has a rule over a label that is not a level, or a spread constraint."""
    return any(
        pod_class.anti_affinity_over or pod_class.co_located_over or pod_class.shape.spread_states
        for pod_class in pod_classes
    )


def place_by_rules(level_search: TreeSearch, pod_classes: PodClasses, required: int) -> LevelSearchResult:
    """Returns the best placement inside one domain of the required level that satisfies every rule.

    Without a placement, and unless the budget is hard, the last attempt has the number of pods that would fit
    under the rules (0 for several pod classes). It is computed when the attempt is read.
    """
    result = _RuleSearch(
        level_search,
        pod_classes,
        required,
        SearchEffort(len(level_search.space.tree.nodes), level_search.budget),
    ).result()
    if result.placement is not None:
        return result
    if not result.attempts:
        ignoring_rules = level_search.search(pod_classes, required)
        complete = result.complete and ignoring_rules.complete
        result = LevelSearchResult(None, ignoring_rules.attempts, complete)
    if level_search.budget.hard:
        return result
    attempts = result.attempts
    under_rules = partial(_with_pods_that_fit, level_search, pod_classes, required, attempts)
    earlier = [partial(attempts.__getitem__, place) for place in range(len(attempts) - 1)]
    return replace(result, attempts=Attempts([*earlier, under_rules]))


class _RuleSearch:
    """Searches for the best placement; with spread constraints, over all possible minimums."""

    def __init__(
        self, level_search: TreeSearch, pod_classes: PodClasses, required: int, effort: SearchEffort
    ) -> None:
        self._level_search, self._pod_classes, self._required, self._effort = (
            level_search,
            pod_classes,
            required,
            effort,
        )
        self._rules = rules_of(pod_classes)
        self._attempts: Sequence[LevelAttempt] = ()
        self._complete = True
        self._refuted = False

    def result(self) -> LevelSearchResult:
        """Returns the best placement that satisfies every rule, and the attempts at each level."""
        if not self._rules:
            return LabelRuleSearch(
                self._level_search, self._pod_classes, self._required, (), self._effort
            ).best()
        best = self._best_spread()
        if best is None and not self._complete:
            best = self._spread_in_one_class()
        elif best is not None:
            best = replace(best, exact=best.exact and self._complete)
        return LevelSearchResult(best, self._attempts, self._complete)

    def _best_spread(self) -> Placement | None:
        best: Placement | None = None
        attempts: Sequence[LevelAttempt] = ()
        combinations, self._complete = numbers(self._pod_classes, self._rules)
        for index, fewest in enumerate(combinations):
            if index and self._effort.is_used_up:
                self._complete = False
                break
            for placement in self._with_minimum(fewest, best):
                if best is None or _order(self._level_search, placement) < _order(self._level_search, best):
                    best, attempts = placement, self._attempts
            if self._refuted:
                break
        if best is not None:
            self._attempts = attempts
        return best

    def _spread_in_one_class(self) -> Placement | None:
        """Returns the best valid placement that `spread_of_one_class` finds, or None.

        Called if the search ended incomplete and without a placement. If it is then proved that there is no
        placement, the search counts as complete.
        """
        if self._has_no_place():
            self._complete = True
        if self._refuted:
            return None
        search, pod_classes, rules = self._level_search, self._pod_classes, self._rules
        if not is_decided(search, pod_classes, rules, self._required):
            return None
        pod_class, placed = pod_classes[0], list[Placement]()
        if len(rules) > 1:
            room_of = partial(room_by_value, search, pod_class, placement_level=ROOT)
            in_cells = placement_in_cells(search, pod_class, rules, room_of)
            placed += [] if in_cells is None else [in_cells]
        elif (room := RoomOfDomains(search, pod_class, rules[0], ROOT)).is_known:
            placed += placements(search, pod_class, rules[0], room.minimums(pod_class.count))
        bindable = map(self._bindable, placed)
        valid = [placement for placement in bindable if placement is not None]
        return min(valid, key=lambda placement: _order(self._level_search, placement), default=None)

    def _with_minimum(self, fewest: Sequence[int], best: Placement | None) -> Iterator[Placement]:
        """Yields valid placements for one minimum of each rule (`fewest`); none if the best placement under
        the caps for these minimums is not better than `best`.
        """
        level_search, pod_classes, rules = self._level_search, self._pod_classes, self._rules
        placement = self._placed(capped(pod_classes, rules, fewest))
        if placement is None or (
            best is not None and _order(level_search, best) <= _order(level_search, placement)
        ):
            return
        kept = self._bindable(placement)
        if kept is not None:
            yield kept
            return
        away = (
            self._placed(away_from_counted(pod_classes, rules, fewest))
            if any(rule.nodes for rule in rules)
            else None
        )
        kept = None if away is None else self._bindable(replace(away, pod_classes=pod_classes))
        if away is not None and kept is not None:
            yield kept
            if _order(level_search, away) == _order(level_search, placement):
                return  # no placement with this minimum is better than the best one under its caps
        variants, all_ways = cut(pod_classes, rules, fewest)
        self._complete = self._complete and all_ways
        for index, variant in enumerate(variants):
            if index and self._effort.is_used_up:
                self._complete = False
                break
            placement = self._placed(variant)
            if placement is not None:
                placement = rejoined(placement, pod_classes, variant.cut_from)
                kept = self._bindable(placement)
                if kept is not None:
                    yield kept
                else:
                    self._complete = False

    def _placed(self, variant: SpreadVariant) -> Placement | None:
        poll("search")
        search = LabelRuleSearch(
            self._level_search,
            variant.pod_classes,
            self._required,
            variant.limits,
            self._effort,
            self._has_no_place,
        )
        result = search.best(self._attempts)
        self._attempts = result.attempts
        self._complete = self._complete and result.complete
        return result.placement

    @cached_property
    def _rooms(self) -> list[RoomOfDomains]:
        return rooms_of(self._level_search, self._pod_classes, self._rules)

    def _has_no_place(self) -> bool:
        """Whether it is proved that there is no placement for any minimum."""
        self._refuted = any(room.refutes(self._pod_classes[0].count) for room in self._rooms)
        return self._refuted

    def _bindable(self, placement: Placement) -> Placement | None:
        return bindable(self._level_search, self._rules, placement)


def _order(level_search: TreeSearch, placement: Placement) -> tuple[int, int]:
    """Returns the sort key of a placement, the best first: in the finest domain, then at the lowest cost."""
    return (level_search.space.tree.topology.host_index - placement.branch.level, placement.cost)


def _with_pods_that_fit(
    level_search: TreeSearch, pod_classes: PodClasses, required: int, attempts: Sequence[LevelAttempt]
) -> LevelAttempt:
    """Returns the last attempt with the largest number of pods for which a search found a placement under the
    rules, and a note with the cause. The number is found by bisection over one pod class; it is 0 for several
    pod classes.
    """
    attempt = attempts[-1]
    min_pods, max_pods = 0, attempt.fits if len(pod_classes) == 1 else 0
    max_pods = min(
        max_pods,
        attempt.wanted - 1,
        *(max_pods_of(level_search, pod_class) for pod_class in pod_classes),
    )
    for room in rooms_of(level_search, pod_classes, rules_of(pod_classes)):
        max_pods = room.largest_count(max_pods)
    middle = max_pods  # begins with the upper bound, the most likely result
    while min_pods < max_pods:
        fewer = replace(pod_classes[0], count=middle, parts=((pod_classes[0].parts[0][0], middle),))
        search = _RuleSearch(
            level_search,
            (fewer,),
            required,
            SearchEffort(len(level_search.space.tree.nodes), level_search.budget, _PART),
        )
        if search.result().placement is None:
            max_pods = middle - 1
        else:
            min_pods = middle
        middle = (min_pods + max_pods + 1) // 2
    note = (
        SPREAD_CAUSE
        if any(pod_class.shape.spread_states for pod_class in pod_classes)
        else ANTI_AFFINITY_CAUSE
    )
    return replace(attempt, fits=min_pods, note=note)
