"""Pods apart, together or spread over a label that is no level: by branch and bound over level searches.

    racks r1: a1 b1    r2: a2 b2        row a: a1 a2    row b: b1 b2        two pods, apart over rows

The rows cut the racks, so the tree sees to the rule inside each rack only. Two pods on a1 and b1, in one
rack, keep it. Where b1 is in use, the search may return a1 and a2, which break it in row a. Every placement
that keeps it has no pod of row a in r1, or none in r2: both are searched, the cheaper one first.

The tree is made finer by the rules' labels (`label_levels`), so a search keeps every rule inside a domain of
the parent level. Only a label whose values recur under several parents can be broken across them. Where the
best placement breaks a rule so, every placement that keeps it is in one of a few ways of barring nodes or of
capping domains, each of which is searched in turn, the cheapest first; the first that breaks nothing is the
best, for neither ever makes a gang cheaper.

Before that, a placement is sought by mending every broken rule at once, as its pods lie. Searches are
counted: past their number that placement serves, and the answer says that it was not proved best.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from planner.cluster.tree import Subtree
from planner.model.answer import LevelAttempt
from planner.model.labels import NODE_NAME_FIELD
from planner.model.natural_order import natural
from planner.model.pod_class import PodClass
from planner.model.resolved import NodeExclusion
from planner.model.topology import ROOT
from planner.search.domain_caps import DomainCap, value_of
from planner.search.mixtures.equivalent_classes import merged
from planner.search.result import LevelSearchResult, Placement
from planner.search.rules.label_levels import refined, under_values
from planner.search.rules.search_effort import SearchEffort
from planner.search.rules.spread_over_labels import LabelCap
from planner.search.rules.tree_search import TreeSearch
from planner.search.space import SearchSpace

MAX_MENDS = 32
"""Times that all broken rules are mended at once before branching begins; each mend is a search of its
own."""


_MAX_VALUES = 48
"""Values that are tried for pods which belong in one domain of a label."""


CAUSE = "pod anti-affinity"


PodClasses = tuple[PodClass, ...]


@dataclass(frozen=True, slots=True)
class _Variant:
    """One way to keep the rules: the pod classes with what bars them, and how many pods domains may hold."""

    pod_classes: PodClasses
    caps: tuple[DomainCap, ...] = ()


class _Candidate(NamedTuple):
    """The best placement of a variant. `order`: finest domain, least cost, deepest, first found; no two are
    equal, so a heap compares nothing else."""

    order: tuple[int, int, int, int]
    placement: Placement
    attempts: tuple[LevelAttempt, ...]
    variant: _Variant


def values_of(level_search: TreeSearch, pod_class: PodClass) -> int:
    """The domains over which the pod class's pods must differ, of the label with the fewest; at most its
    pods."""
    fewest = pod_class.count
    for key in pod_class.anti_affinity_labels:
        values = [node.labels.get(key, "") for node in level_search.space.tree.nodes]
        if all(values):  # without the label, a node takes any number
            fewest = min(fewest, len(set(values)))
    return fewest


class LabelRuleSearch:
    """One search for the cheapest placement that keeps the rules over labels."""

    def __init__(
        self,
        level_search: TreeSearch,
        pod_classes: PodClasses,
        required: int,
        limits: Sequence[LabelCap],
        effort: SearchEffort,
    ) -> None:
        self._level_search = level_search
        self._attempts: tuple[LevelAttempt, ...] = ()
        self._complete = True
        self._pod_classes = pod_classes if limits else merged(level_search.space, pod_classes)
        self._effort = effort
        self._serial = 0
        keys = {key for pod_class in pod_classes for key in _keys(pod_class)} | {
            limit.key for limit in limits
        }
        self._finer = refined(
            level_search.space, keys, {limit.key: limit.drawn for limit in limits if limit.drawn is not None}
        )
        self._space, self._required = self._finer.space(level_search.space), self._finer.level(required)
        self._levels = {key: self._finer.level_of(key) for key in keys}
        self._recurring = {key for key in keys if self._finer.recurs(key)}
        self._put_values_above()
        self._caps = tuple(
            DomainCap(self._levels[limit.key], limit.keepers, limit.counted, limit.values, limit.other)
            for limit in limits
        )
        self._over = [
            cap for cap, limit in zip(self._caps, limits, strict=True) if limit.key in self._recurring
        ]

    def _put_values_above(self) -> None:
        """Where all pods belong in one domain of a label that recurs, each such domain is looked at."""
        all_names = {name for pod_class in self._pod_classes for name, _ in pod_class.parts}
        rules = sorted({rule for pod_class in self._pod_classes for rule in pod_class.co_located_over})
        self._common_label = next(
            (r for r in rules if r[0] in self._recurring and set(r[1]) == all_names), None
        )
        if self._common_label is not None:
            self._space = under_values(
                self._level_search.space.base.capacities, self._space, self._common_label[0]
            )
            self._required += 1
            self._levels = {key: level + 1 for key, level in self._levels.items()}

    def best(self, attempts: tuple[LevelAttempt, ...] = ()) -> LevelSearchResult:
        """The cheapest placement that breaks no rule.

        `attempts`: those of former searches for the gang; where this one has no placement they are told.
        """
        self._attempts = attempts
        placement = self._best()
        return LevelSearchResult(placement, self._attempts, self._complete)

    def _best(self) -> Placement | None:
        start = _Variant(tuple(map(self._in_the_tree, self._pod_classes)), self._caps)
        too_many = any(
            pod_class.count > values_of(self._level_search, pod_class) for pod_class in self._pod_classes
        )
        waiting = [] if too_many else self._searched([start], 0, first=True)
        if not waiting:
            return None
        first = waiting[0]
        mended = self._mended(first)
        while waiting and not self._effort.over:
            candidate = heapq.heappop(waiting)
            if mended is not None and mended.order[:2] <= candidate.order[:2]:
                return self._in_plain_tree(mended)
            variants = self._ways_out(candidate.placement, candidate.variant)
            if variants is None:
                return self._in_plain_tree(candidate)
            for successor in self._searched(variants, -candidate.order[2] + 1):
                heapq.heappush(waiting, successor)
        if waiting:
            self._complete = False
        if mended is not None:
            return replace(self._in_plain_tree(mended), exact=not waiting)
        self._attempts = first.attempts
        return None

    def _in_the_tree(self, pod_class: PodClass) -> PodClass:
        """The pod class with its rules as levels of the finer tree. Over labels those rules are left that the
        tree does not keep by itself."""
        deeper = 0 if self._common_label is None else 1
        level_in_fine, label_levels = self._finer.level, self._levels
        level = {ROOT: ROOT} | {
            plain_level: level_in_fine(plain_level) + deeper for plain_level in range(len(self._finer.levels))
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

    def _in_plain_tree(self, candidate: _Candidate) -> Placement:
        """The candidate's placement by the plain tree's nodes and domains; its attempts are to be told."""
        self._attempts = candidate.attempts
        placement = candidate.placement
        pods_by_node = sorted(
            (self._finer.place(self._name(place)), counts) for place, counts in placement.pods_by_node
        )
        return replace(
            placement, branch=self._finer.around(self._space, placement.branch), pods_by_node=pods_by_node
        )

    def _mended(self, first: _Candidate) -> _Candidate | None:
        """A placement that breaks no rule, by capping what the former one broke, again and again; None for
        none."""
        candidate = first
        for _ in range(MAX_MENDS):
            if self._effort.over:
                return None
            variant = self._as_they_lie(candidate.placement, candidate.variant)
            if variant is None:
                return candidate
            candidates = self._searched([variant], 0, first=True)
            if not candidates:
                return None
            candidate = candidates[0]
        return None

    def _as_they_lie(self, placement: Placement, variant: _Variant) -> _Variant | None:
        """The variant with every domain of a label capped to what lies there, as far as its value allows it.

        None where no rule is broken. Of pod classes that shun each other the first stays, of those that
        belong together all go to the first.
        """
        variants = self._ways_out(placement, variant)
        if variants is None:
            return None
        pod_classes, caps = variants[0].pod_classes, list(variant.caps)
        for rule in self._across(pod_classes):
            for value, pods_by_domain in self._by_domain(placement, rule.level).items():
                max_pods, cap_by_domain = rule.by_value(value), dict[Subtree, int]()
                if max_pods is None or not _broken(rule, max_pods, pods_by_domain):
                    continue
                remaining = max_pods
                for branch, counts in pods_by_domain.items():
                    cap_by_domain[branch] = min(remaining, sum(counts[index] for index in rule.counted))
                    remaining -= cap_by_domain[branch]
                caps.append(
                    DomainCap(rule.level, rule.counted, rule.counted, {value: 0}, None, cap_by_domain)
                )
        return _Variant(pod_classes, tuple(caps))

    def _searched(self, variants: Sequence[_Variant], depth: int, *, first: bool = False) -> list[_Candidate]:
        candidates: list[_Candidate] = []
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
            attempts = tuple([_plain(attempt) for attempt in result.attempts])
            if placement is None and not self._attempts:
                self._attempts = attempts
            if placement is not None:
                order = (host - placement.branch.level, placement.cost, -depth, self._serial)
                candidates.append(_Candidate(order, placement, attempts, variant))
        return candidates

    # -- rules ---------------------------------------------------------------------------------------------

    def _across(self, pod_classes: PodClasses) -> Iterator[DomainCap]:
        """What domains of one value may hold together, for labels whose values recur."""
        yield from self._over
        for index, pod_class in enumerate(pod_classes):
            for key in pod_class.anti_affinity_labels:
                if key in self._recurring:
                    yield DomainCap(self._levels[key], (index,), (index,), {}, 1)

    def _ways_out(self, placement: Placement, variant: _Variant) -> list[_Variant] | None:
        """Variants that keep the first rule that the placement breaks; None where it breaks none."""
        for rule in self._across(variant.pod_classes):
            for value, pods_by_domain in self._by_domain(placement, rule.level).items():
                max_pods = rule.by_value(value)
                if max_pods is not None and _broken(rule, max_pods, pods_by_domain):
                    return self._shared_out(variant, rule, value, max_pods, pods_by_domain)
        for key in sorted(
            {key for pod_class in variant.pod_classes for key, _ in pod_class.anti_affinity_over}
        ):
            for value, counts in self._by_value(placement, key):
                for pair in _shunning(variant.pod_classes, key):
                    if all(counts[index] for index in pair):
                        exclusion = NodeExclusion(key, frozenset((value,)), CAUSE)
                        return [_barred(variant, (index,), exclusion) for index in pair]
        for key, names in sorted(
            {rule for pod_class in variant.pod_classes for rule in pod_class.co_located_over}
        ):
            where = [
                index
                for index, pod_class in enumerate(variant.pod_classes)
                if set(pod_class.names) & set(names)
            ]
            used = [
                value
                for value, counts in self._by_value(placement, key)
                if any(counts[index] for index in where)
            ]
            if len(used) > 1:
                return self._one_domain(variant, key, where, used)
        return None

    def _shared_out(
        self,
        variant: _Variant,
        rule: DomainCap,
        value: str,
        max_pods: int,
        pods_by_domain: Mapping[Subtree, tuple[int, ...]],
    ) -> list[_Variant]:
        """The value's pods are few in its first domain, or there are more there and few elsewhere."""
        names = frozenset(leaf.node for branch in pods_by_domain for leaf in branch.leaves())
        around = _barred(variant, rule.keepers, NodeExclusion(NODE_NAME_FIELD, names, CAUSE))
        without = [] if set(rule.counted) == set(rule.keepers) else [around]
        held = {
            branch: sum(counts[index] for index in rule.counted) for branch, counts in pods_by_domain.items()
        }
        for branch, count in held.items():
            share = max_pods * count // sum(held.values())
            caps = [
                DomainCap(rule.level, rule.counted, rule.counted, {}, None, {branch: share}),
                DomainCap(
                    rule.level,
                    rule.counted,
                    rule.counted,
                    {value: max_pods - share - 1},
                    None,
                    {branch: max_pods},
                ),
            ]
            if not any(cap in variant.caps for cap in caps):
                return [*without, *(replace(variant, caps=(*variant.caps, cap)) for cap in caps)]
        self._complete = False
        return []

    def _one_domain(
        self, variant: _Variant, key: str, where: Sequence[int], used: Sequence[str]
    ) -> list[_Variant]:
        """All of these pod classes are in one domain of the label: in one of those that were used, or
        another."""
        other_values = {node.labels.get(key, "") for node in self._level_search.space.tree.nodes} - {
            "",
            *used,
        }
        values = [*used, *sorted(other_values, key=natural)]
        if len(values) > _MAX_VALUES:
            self._complete = False
        exclusions = (
            NodeExclusion(key, frozenset((value,)), CAUSE, inside=True) for value in values[:_MAX_VALUES]
        )
        return [_barred(variant, where, exclusion) for exclusion in exclusions]

    # -- what lies where -----------------------------------------------------------------------------------

    def _name(self, place: int) -> str:
        return self._space.tree.root.leaf(place).node

    def _by_value(self, placement: Placement, key: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """By the label's values the number of pods of each pod class there; a node without it is nowhere."""
        for value, pods_by_domain in self._by_domain(placement, self._levels[key]).items():
            yield value, tuple(map(sum, zip(*pods_by_domain.values(), strict=True)))

    def _by_domain(self, placement: Placement, level: int) -> dict[str, dict[Subtree, tuple[int, ...]]]:
        """By value the level's domains, with the number of pods of each pod class there."""
        sums: dict[str, dict[Subtree, tuple[int, ...]]] = {}
        for place, counts in placement.pods_by_node:
            branch = _domain_at(self._space, place, level)
            if branch.named:
                pods_by_domain = sums.setdefault(value_of(branch), {})
                pods_by_domain[branch] = tuple(
                    map(int.__add__, pods_by_domain.get(branch, (0,) * len(counts)), counts)
                )
        return dict(sorted(sums.items(), key=lambda item: natural(item[0])))


def _keys(pod_class: PodClass) -> set[str]:
    return {key for key, _ in (*pod_class.anti_affinity_over, *pod_class.co_located_over)}


def _broken(rule: DomainCap, max_pods: int, pods_by_domain: Mapping[Subtree, Sequence[int]]) -> bool:
    """Whether the domains of one value hold too many together."""
    kept = any(counts[index] for counts in pods_by_domain.values() for index in rule.keepers)
    return (
        kept and sum(counts[index] for counts in pods_by_domain.values() for index in rule.counted) > max_pods
    )


def _domain_at(space: SearchSpace, place: int, level: int) -> Subtree:
    """The domain of a level that one of a tree's nodes is in."""
    branch = space.tree.root
    while branch.level < level:
        index = branch.child_of(place)
        branch, place = branch.children[index], place - branch.starts[index]
    return branch


def _plain(attempt: LevelAttempt) -> LevelAttempt:
    """What was tried in the domains of values that stand above everything was tried anywhere."""
    return replace(attempt, level="", domain=()) if attempt.level.endswith("\0") else attempt


def _shunning(pod_classes: PodClasses, key: str) -> Iterator[tuple[int, int]]:
    """The pairs of pod classes of which one must not be where the other is."""
    for index, pod_class in enumerate(pod_classes):
        shunned = {name for label, name in pod_class.anti_affinity_over if label == key}
        for other_index in range(len(pod_classes)):
            if other_index != index and shunned.intersection(pod_classes[other_index].names):
                yield index, other_index


def _barred(variant: _Variant, where: Sequence[int], exclusion: NodeExclusion) -> _Variant:
    """The variant with some of its pod classes excluded from more nodes."""
    return replace(
        variant,
        pod_classes=tuple(
            replace(
                pod_class, shape=replace(pod_class.shape, exclusions=(*pod_class.shape.exclusions, exclusion))
            )
            if index in where
            else pod_class
            for index, pod_class in enumerate(variant.pod_classes)
        ),
    )
