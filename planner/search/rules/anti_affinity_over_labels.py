"""Affinity and anti-affinity over labels that are not levels, by branch and bound over level searches.

    racks r1: a1 b1    r2: a2 b2        row a: a1 a2    row b: b1 b2        two pods, anti-affinity over rows

The rows cut across the racks, so the tree enforces the rule only inside each rack. The placement a1, b1 in
one rack satisfies it. If b1 is in use, the search may return a1 and a2, which break the rule in row a. Every
placement that satisfies the rule has no pod of row a in r1, or none in r2. Each of these two conditions gives
a variant of the request. Both are searched, and the one with the cheaper placement is followed first.

The tree is refined by the labels of the rules (`label_levels`), so a search satisfies every rule inside each
domain directly above the label's level. Only a rule over a recurring label (with a value under several such
parents) can be broken, by pods under different parents. If the best placement breaks a rule, every placement
that satisfies the rule is covered by one of a few variants of the request, which exclude nodes or cap
domains. The variants are followed in order of cost. Exclusions and caps never make a placement cheaper, so
the first placement that breaks no rule is the best.

Before branching, all broken rules are repaired at once, starting from the best placement (`_repaired`). If
the effort is used up, the repaired placement is returned, and the answer says that it was not proved best.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from planner.model.answer import LevelAttempt
from planner.model.pod_class import PodClass, PodClasses
from planner.model.topology import ROOT
from planner.search.domain_caps import DomainCap
from planner.search.mixtures.equivalent_classes import merged
from planner.search.result import LevelSearchResult, Placement
from planner.search.rules.label_levels import refined, under_values, values_of
from planner.search.rules.rule_repairs import LabelRules, Variant
from planner.search.rules.search_effort import SearchEffort
from planner.search.rules.spread_over_labels import LabelCap
from planner.search.rules.tree_search import TreeSearch

MAX_REPAIRS = 32
"""Maximum number of attempts to repair all broken rules at once before branching; each is a search."""


class _PlacedVariant(NamedTuple):
    """The best placement of a variant, and the attempts of its search at each level.

    `order`: the sort key in the heap: the finest domain first, then the lowest cost, the most repairs, the
    first found. No two orders are equal, so the heap never compares the other fields.
    """

    order: tuple[int, int, int, int]
    placement: Placement
    attempts: Sequence[LevelAttempt]
    variant: Variant


def max_pods_of(level_search: TreeSearch, pod_class: PodClass) -> int:
    """Returns the maximum number of the class's pods that its anti-affinity over labels allows: the number of
    domains of the label with the fewest domains, but at most the number of pods in the class.
    """
    fewest = pod_class.count
    for key in pod_class.anti_affinity_labels:
        values = [node.labels.get(key, "") for node in level_search.space.tree.nodes]
        if all(values):  # a node without the label takes any number of pods
            fewest = min(fewest, len(set(values)))
    return fewest


class LabelRuleSearch:
    """Searches for the cheapest placement that satisfies the rules over labels and the `limits`, the caps of
    spread constraints."""

    def __init__(
        self,
        level_search: TreeSearch,
        pod_classes: PodClasses,
        required: int,
        limits: Sequence[LabelCap],
        effort: SearchEffort,
        has_no_place: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_no_place`: whether it is proved that no placement satisfies all rules; asked if the first one
        breaks a rule.
        """
        self._level_search, self._has_no_place = level_search, has_no_place
        self._attempts: Sequence[LevelAttempt] = ()
        self._complete = True
        self._pod_classes = pod_classes if limits else merged(level_search.space, pod_classes)
        self._effort = effort
        self._serial = 0
        keys = {key for pod_class in pod_classes for key in _keys(pod_class)} | {
            limit.key for limit in limits
        }
        self._refined_tree = refined(
            level_search.space, keys, {limit.key: limit.drawn for limit in limits if limit.drawn is not None}
        )
        self._space, self._required = (
            self._refined_tree.space(level_search.space),
            self._refined_tree.level(required),
        )
        self._levels = {key: self._refined_tree.level_of(key) for key in keys}
        self._recurring = {key for key in keys if self._refined_tree.recurs(key)}
        self._put_values_above()
        self._caps = tuple(
            DomainCap(self._levels[limit.key], limit.keepers, limit.counted, limit.values, limit.default_cap)
            for limit in limits
        )
        over = [cap for cap, limit in zip(self._caps, limits, strict=True) if limit.key in self._recurring]
        nodes = level_search.space.tree.nodes
        self._rules = LabelRules(self._space, self._levels, self._recurring, over, nodes)

    def _put_values_above(self) -> None:
        """Makes the domains of a label the coarsest level of the search space, if all pods must be in one of
        these domains and the label is recurring. The search then visits each of these domains.
        """
        all_names = {name for pod_class in self._pod_classes for name, _ in pod_class.parts}
        rules = sorted({rule for pod_class in self._pod_classes for rule in pod_class.co_located_over})
        self._common_label = next(
            (r for r in rules if r[0] in self._recurring and set(r[1]) == all_names), None
        )
        if self._common_label is not None:
            key = self._common_label[0]
            self._space = under_values(
                self._level_search.space.base.capacities, self._space, key, values_of(self._space.tree, key)
            )
            self._required += 1
            self._levels = {key: level + 1 for key, level in self._levels.items()}

    def best(self, attempts: Sequence[LevelAttempt] = ()) -> LevelSearchResult:
        """Returns the cheapest placement that breaks no rule.

        `attempts`: the attempts of earlier searches for the gang, returned if this search has none.
        """
        self._attempts = attempts
        placement = self._best()
        return LevelSearchResult(placement, self._attempts, self._complete)

    def _best(self) -> Placement | None:
        start = Variant(tuple(map(self._in_the_tree, self._pod_classes)), self._caps)
        too_many = any(
            pod_class.count > max_pods_of(self._level_search, pod_class) for pod_class in self._pod_classes
        )
        waiting = [] if too_many else self._searched([start], 0, first=True)
        if not waiting:
            return None
        first = waiting[0]
        if self._rules.repairs(first.placement, first.variant) is not None and self._has_no_place():
            self._attempts = first.attempts
            return None
        repaired = self._repaired(first)
        while waiting and not self._effort.is_used_up:
            candidate = heapq.heappop(waiting)
            # The candidate is the cheapest that is left: if it is not better than `repaired`, none is.
            if repaired is not None and repaired.order[:2] <= candidate.order[:2]:
                return self._in_plain_tree(repaired)
            repairs = self._repairs(candidate)
            if repairs is None:
                return self._in_plain_tree(candidate)
            for successor in self._searched(repairs, -candidate.order[2] + 1):
                heapq.heappush(waiting, successor)
        if waiting:
            self._complete = False
        if repaired is not None:
            return replace(self._in_plain_tree(repaired), exact=not waiting)
        self._attempts = first.attempts
        return None

    def _in_the_tree(self, pod_class: PodClass) -> PodClass:
        """Returns the pod class with its levels and rules in terms of the refined tree's levels.

        Rules over recurring labels, which a search of the tree enforces only in part, also stay rules over
        labels.
        """
        deeper = 0 if self._common_label is None else 1
        level_in_fine, label_levels = self._refined_tree.level, self._levels
        level = {ROOT: ROOT} | {
            plain_level: level_in_fine(plain_level) + deeper
            for plain_level in range(len(self._refined_tree.levels))
        }
        over = tuple((label_levels[key], name) for key, name in pod_class.anti_affinity_over)
        rules = [rule for rule in pod_class.co_located_over if rule != self._common_label]
        return replace(
            pod_class,
            required=level[pod_class.required],
            slice_level=level[pod_class.slice_level],
            anti_affinity_levels=(
                *(level[plain_level] for plain_level in pod_class.anti_affinity_levels),
                *(label_levels[key] for key in pod_class.anti_affinity_labels),
            ),
            anti_affinity_with=(
                *((level[plain_level], name) for plain_level, name in pod_class.anti_affinity_with),
                *over,
            ),
            anti_affinity_over=tuple(
                rule for rule in pod_class.anti_affinity_over if rule[0] in self._recurring
            ),
            co_located_over=tuple(rule for rule in rules if rule[0] in self._recurring),
            co_located_at=(
                *((level[plain_level], names) for plain_level, names in pod_class.co_located_at),
                *((label_levels[key], names) for key, names in rules if key not in self._recurring),
            ),
        )

    def _in_plain_tree(self, candidate: _PlacedVariant) -> Placement:
        """Returns the candidate's placement in terms of the plain tree's nodes and domains, and makes the
        candidate's attempts those of this search.
        """
        self._attempts = candidate.attempts
        placement = candidate.placement
        pods_by_node = sorted(
            (self._refined_tree.place(self._space.tree.root.leaf(index).node), counts)
            for index, counts in placement.pods_by_node
        )
        return replace(
            placement,
            branch=self._refined_tree.plain_domain_of(self._space, placement.branch),
            pods_by_node=pods_by_node,
        )

    def _repaired(self, first: _PlacedVariant) -> _PlacedVariant | None:
        """Returns a placement that breaks no rule, or None if none is found.

        Repeatedly caps the domains in which the previous placement broke a rule, and searches again.
        """
        candidate = first
        for _ in range(MAX_REPAIRS):
            if self._effort.is_used_up:
                return None
            repairs = self._repairs(candidate)
            if repairs is None:
                return candidate
            # The first variant excludes the first of two classes with anti-affinity from their common domain,
            # and requires co-located classes to be in the first domain that they use.
            variant = self._rules.capped_as_placed(
                candidate.placement, repairs[0].pod_classes, candidate.variant.caps
            )
            candidates = self._searched([variant], 0, first=True)
            if not candidates:
                return None
            candidate = candidates[0]
        return None

    def _repairs(self, candidate: _PlacedVariant) -> list[Variant] | None:
        """Returns variants that avoid the first break of a rule by the candidate; None if it breaks none."""
        repairs = self._rules.repairs(candidate.placement, candidate.variant)
        if repairs is None:
            return None
        self._complete = self._complete and repairs.complete
        return repairs.variants

    def _searched(
        self, variants: Sequence[Variant], depth: int, *, first: bool = False
    ) -> list[_PlacedVariant]:
        """Returns the best placement of each variant that has one. `depth`: the number of repairs in the
        variants. `first`: whether the search may continue with a beam (see `SearchEffort.budget`).
        """
        candidates: list[_PlacedVariant] = []
        host = self._space.tree.topology.host_index
        outer = self._level_search
        for variant in variants:
            self._serial += 1
            budget = self._effort.budget(first=first)
            before = budget.left
            inner = outer.in_space(replace(self._space, caps=variant.caps), budget)
            result = inner.search(variant.pod_classes, self._required)
            placement = result.placement
            self._effort.spend(before, budget, ended=not result.complete)
            self._complete = self._complete and result.complete
            attempts = self._in_topology(result.attempts)
            if placement is None and not self._attempts:
                self._attempts = attempts
            if placement is not None:
                order = (host - placement.branch.level, placement.cost, -depth, self._serial)
                candidates.append(_PlacedVariant(order, placement, attempts, variant))
        return candidates

    def _in_topology(self, attempts: Sequence[LevelAttempt]) -> Sequence[LevelAttempt]:
        """Returns the attempts, without level and domain where these are no part of the topology."""
        if self._common_label is None:
            return attempts
        return tuple([_plain(attempt) for attempt in attempts])


def _keys(pod_class: PodClass) -> set[str]:
    return {key for key, _ in (*pod_class.anti_affinity_over, *pod_class.co_located_over)}


def _plain(attempt: LevelAttempt) -> LevelAttempt:
    """Returns the attempt unchanged, or without level and domain if it is at the level that was inserted
    above all others, because that level is not part of the topology.
    """
    return replace(attempt, level="", domain=()) if attempt.level.endswith("\0") else attempt
