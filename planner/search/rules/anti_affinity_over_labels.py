"""Pods apart, together or spread over a label that is no level: by branch and bound over level searches.

    racks r1: a1 b1    r2: a2 b2        row a: a1 a2    row b: b1 b2        two pods, apart over rows

The rows cut the racks, so the tree sees to the rule inside each rack only. Two pods on a1 and b1, in one
rack, keep it. Where b1 is in use, the search may return a1 and a2, which break it in row a. Every placement
that keeps it has no pod of row a in r1, or none in r2: both are searched, the cheaper one first.

The tree is made finer by the rules' labels (`label_levels`), so a climb keeps every rule inside a domain of
the parent level. Only a label whose values recur under several parents can be broken across them. Where the
best placement breaks a rule so, every placement that keeps it is in one of a few ways of barring nodes or of
capping domains, each of which is climbed in turn, the cheapest first; the first that breaks nothing is the
best, for neither ever makes a gang cheaper.

Before that, a placement is sought by mending every broken rule at once, as its pods lie. Climbs are counted:
past their number that placement serves, and the answer says that it was not proved best.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.tree import Subtree
from planner.model.answer import LevelAttempt
from planner.model.labels import NODE_NAME_FIELD
from planner.model.natural_order import natural
from planner.model.pod_class import PodClass
from planner.model.resolved import NodeExclusion
from planner.model.topology import ROOT
from planner.search.mixtures.equivalent_classes import merged
from planner.search.result import Placement
from planner.search.rules.domain_caps import DomainCap, value_of
from planner.search.rules.label_levels import refined, under_values
from planner.search.rules.search_effort import SearchEffort
from planner.search.rules.spread_over_labels import LabelCap
from planner.search.rules.tree_search import TreeSearch
from planner.search.space import SearchSpace

MENDS = 32
"""Times that all broken rules are mended at once before branching begins; each mend is a search of its
own."""


_WAYS = 48
"""Values that are tried for pods which belong in one domain of a label."""


CAUSE = "pod anti-affinity"


Kinds = tuple[PodClass, ...]


@dataclass(frozen=True, slots=True)
class _Variant:
    """One way to keep the rules: the kinds with what bars them, and how many pods domains may hold."""

    kinds: Kinds
    caps: tuple[DomainCap, ...] = ()


_Candidate = tuple[tuple[int, int, int, int], Placement, list[LevelAttempt], _Variant]


def values_of(climb: TreeSearch, kind: PodClass) -> int:
    """The domains over which the kind's pods must differ, of the label with the fewest; at most its pods."""
    fewest = kind.count
    for key in kind.anti_affinity_labels:
        found = [node.labels.get(key, "") for node in climb.view.tree.nodes]
        if all(found):  # without the label, a node takes any number
            fewest = min(fewest, len(set(found)))
    return fewest


class LabelRuleSearch:
    """One search."""

    def __init__(
        self,
        climb: TreeSearch,
        kinds: Kinds,
        required: int,
        limits: Sequence[LabelCap],
        effort: SearchEffort,
    ) -> None:
        self._climb = climb
        self._kinds = kinds if limits else merged(climb.view, kinds)
        self._effort = effort
        self._serial = 0
        keys = {key for kind in kinds for key in _keys(kind)} | {limit.key for limit in limits}
        self._fine = refined(
            climb.view, keys, {one.key: one.drawn for one in limits if one.drawn is not None}
        )
        self._view, self._required = self._fine.view(climb.view), self._fine.level(required)
        self._levels = {key: self._fine.level_of(key) for key in keys}
        self._recurring = {key for key in keys if self._fine.recurs(key)}
        self._whole()
        self._caps = tuple(
            DomainCap(self._levels[one.key], one.keepers, one.counted, one.values, one.other)
            for one in limits
        )
        self._over = [cap for cap, one in zip(self._caps, limits, strict=True) if one.key in self._recurring]

    def _whole(self) -> None:
        """Where all pods belong in one domain of a label that recurs, each such domain is looked at."""
        every = {name for kind in self._kinds for name, _ in kind.parts}
        rules = sorted({rule for kind in self._kinds for rule in kind.co_located_over})
        self._top = next((r for r in rules if r[0] in self._recurring and set(r[1]) == every), None)
        if self._top is not None:
            self._view = under_values(self._climb.view.base.capacities, self._view, self._top[0])
            self._required += 1
            self._levels = {key: level + 1 for key, level in self._levels.items()}

    def best(self) -> Placement | None:
        """The cheapest that breaks no rule, None where there is none."""
        start = _Variant(tuple(map(self._in_the_tree, self._kinds)), self._caps)
        many = any(kind.count > values_of(self._climb, kind) for kind in self._kinds)
        waiting = [] if many else self._tried([start], 0, first=True)
        if not waiting:
            return None
        first = waiting[0]
        mended = self._mended(first)
        while waiting and not self._effort.over:
            opened = heapq.heappop(waiting)
            if mended is not None and mended[0][:2] <= opened[0][:2]:
                return self._taken(mended)
            ways = self._ways(opened[1], opened[3])
            if ways is None:
                return self._taken(opened)
            for made in self._tried(ways, -opened[0][2] + 1):
                heapq.heappush(waiting, made)
        if waiting:
            self._climb.complete = False
        if mended is not None:
            return replace(self._taken(mended), exact=not waiting)
        self._climb.attempts[:] = first[2]
        return None

    def _in_the_tree(self, kind: PodClass) -> PodClass:
        """The kind with its rules over the finer tree's levels; of the others those that may be broken."""
        deeper = 0 if self._top is None else 1
        own, at = self._fine.level, self._levels
        level = {ROOT: ROOT} | {one: own(one) + deeper for one in range(len(self._fine.levels))}
        over = tuple((at[key], name) for key, name in kind.anti_affinity_over)
        rules = [rule for rule in kind.co_located_over if rule != self._top]
        return replace(
            kind,
            required=level[kind.required],
            slice_level=level[kind.slice_level],
            anti_affinity_levels=(
                *(level[one] for one in kind.anti_affinity_levels),
                *(at[key] for key in kind.anti_affinity_labels),
            ),
            anti_affinity_with=(*((level[one], name) for one, name in kind.anti_affinity_with), *over),
            anti_affinity_over=tuple(rule for rule in kind.anti_affinity_over if rule[0] in self._recurring),
            co_located_over=tuple(rule for rule in rules if rule[0] in self._recurring),
            co_located_at=(
                *((level[one], names) for one, names in kind.co_located_at),
                *((at[key], names) for key, names in rules if key not in self._recurring),
            ),
        )

    def _taken(self, one: _Candidate) -> Placement:
        """A placement as the plain tree has it."""
        self._climb.attempts[:] = one[2]
        found = one[1]
        placed = sorted((self._fine.place(self._name(at)), counts) for at, counts in found.placed)
        return replace(found, branch=self._fine.around(self._view, found.branch), placed=placed)

    def _mended(self, first: _Candidate) -> _Candidate | None:
        """A placement that breaks no rule, found by mending what is broken as the pods lie; None for none."""
        one = first
        for _ in range(MENDS):
            if self._effort.over:
                return None
            way = self._as_they_lie(one[1], one[3])
            if way is None:
                return one
            tried = self._tried([way], 0, first=True)
            if not tried:
                return None
            one = tried[0]
        return None

    def _as_they_lie(self, found: Placement, way: _Variant) -> _Variant | None:
        """The way with every domain of a label capped to what lies there, as far as its value allows it.

        None where no rule is broken. Of kinds that shun each other the first stays, of those that belong
        together all go to the first.
        """
        ways = self._ways(found, way)
        if ways is None:
            return None
        kinds, caps = ways[0].kinds, list(way.caps)
        for rule in self._across(kinds):
            for value, there in self._by_domain(found, rule.level).items():
                most, at = rule.by_value(value), dict[Subtree, int]()
                if most is None or not _broken(rule, most, there):
                    continue
                left = most
                for branch, counts in there.items():
                    at[branch] = min(left, sum(counts[one] for one in rule.counted))
                    left -= at[branch]
                caps.append(DomainCap(rule.level, rule.counted, rule.counted, {value: 0}, None, at))
        return _Variant(kinds, tuple(caps))

    def _tried(self, ways: Sequence[_Variant], depth: int, *, first: bool = False) -> list[_Candidate]:
        made: list[_Candidate] = []
        host = self._view.tree.topology.host_index
        outer = self._climb
        for way in ways:
            self._serial += 1
            budget = self._effort.budget(first=first)
            before = budget.left
            inner = outer.in_space(replace(self._view, caps=way.caps), budget)
            found = inner.climb(way.kinds, self._required)
            self._effort.spend(before, budget, ended=not inner.complete)
            outer.complete = outer.complete and inner.complete
            attempts = [_plain(one) for one in inner.attempts]
            if found is None and not outer.attempts:
                outer.attempts[:] = attempts
            if found is not None:
                key = (host - found.branch.level, found.cost, -depth, self._serial)
                made.append((key, found, attempts, way))
        return made

    # -- rules ---------------------------------------------------------------------------------------------

    def _across(self, kinds: Kinds) -> Iterator[DomainCap]:
        """What domains of one value may hold together, for labels whose values recur."""
        yield from self._over
        for at, kind in enumerate(kinds):
            for key in kind.anti_affinity_labels:
                if key in self._recurring:
                    yield DomainCap(self._levels[key], (at,), (at,), {}, 1)

    def _ways(self, found: Placement, way: _Variant) -> list[_Variant] | None:
        """The ways out of the first rule that a placement breaks; None where it breaks none."""
        for rule in self._across(way.kinds):
            for value, there in self._by_domain(found, rule.level).items():
                most = rule.by_value(value)
                if most is not None and _broken(rule, most, there):
                    return self._shared_out(way, rule, value, most, there)
        for key in sorted({key for kind in way.kinds for key, _ in kind.anti_affinity_over}):
            for value, counts in self._by_value(found, key):
                for pair in _shunning(way.kinds, key):
                    if all(counts[one] for one in pair):
                        bar = NodeExclusion(key, frozenset((value,)), CAUSE)
                        return [_barred(way, (one,), bar) for one in pair]
        for key, names in sorted({rule for kind in way.kinds for rule in kind.co_located_over}):
            where = [at for at, kind in enumerate(way.kinds) if set(kind.names) & set(names)]
            used = [value for value, counts in self._by_value(found, key) if any(counts[at] for at in where)]
            if len(used) > 1:
                return self._one_domain(way, key, where, used)
        return None

    def _shared_out(
        self, way: _Variant, rule: DomainCap, value: str, most: int, there: Mapping[Subtree, tuple[int, ...]]
    ) -> list[_Variant]:
        """The value's pods are few in its first domain, or there are more there and few elsewhere."""
        names = frozenset(leaf.node for branch in there for leaf in branch.leaves())
        around = _barred(way, rule.keepers, NodeExclusion(NODE_NAME_FIELD, names, CAUSE))
        without = [] if set(rule.counted) == set(rule.keepers) else [around]
        held = {branch: sum(counts[at] for at in rule.counted) for branch, counts in there.items()}
        for branch, count in held.items():
            few = most * count // sum(held.values())
            ways = [
                DomainCap(rule.level, rule.counted, rule.counted, {}, None, {branch: few}),
                DomainCap(
                    rule.level, rule.counted, rule.counted, {value: most - few - 1}, None, {branch: most}
                ),
            ]
            if not any(cap in way.caps for cap in ways):
                return [*without, *(replace(way, caps=(*way.caps, cap)) for cap in ways)]
        self._climb.complete = False
        return []

    def _one_domain(
        self, way: _Variant, key: str, where: Sequence[int], used: Sequence[str]
    ) -> list[_Variant]:
        """All of these kinds are in one domain of the label: in one of those that were used, or another."""
        known = {node.labels.get(key, "") for node in self._climb.view.tree.nodes} - {"", *used}
        values = [*used, *sorted(known, key=natural)]
        if len(values) > _WAYS:
            self._climb.complete = False
        bars = (NodeExclusion(key, frozenset((value,)), CAUSE, inside=True) for value in values[:_WAYS])
        return [_barred(way, where, bar) for bar in bars]

    # -- what lies where -----------------------------------------------------------------------------------

    def _name(self, place: int) -> str:
        return self._view.tree.root.leaf(place).node

    def _by_value(self, found: Placement, key: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """By the label's values the number of pods of each kind there; a node without it is nowhere."""
        for value, there in self._by_domain(found, self._levels[key]).items():
            yield value, tuple(map(sum, zip(*there.values(), strict=True)))

    def _by_domain(self, found: Placement, level: int) -> dict[str, dict[Subtree, tuple[int, ...]]]:
        """By value the level's domains, with the number of pods of each kind there."""
        sums: dict[str, dict[Subtree, tuple[int, ...]]] = {}
        for place, counts in found.placed:
            branch = _at(self._view, place, level)
            if branch.named:
                there = sums.setdefault(value_of(branch), {})
                there[branch] = tuple(map(int.__add__, there.get(branch, (0,) * len(counts)), counts))
        return dict(sorted(sums.items(), key=lambda item: natural(item[0])))


def _keys(kind: PodClass) -> set[str]:
    return {key for key, _ in (*kind.anti_affinity_over, *kind.co_located_over)}


def _broken(rule: DomainCap, most: int, there: Mapping[Subtree, Sequence[int]]) -> bool:
    """Whether the domains of one value hold too many together."""
    kept = any(counts[at] for counts in there.values() for at in rule.keepers)
    return kept and sum(counts[at] for counts in there.values() for at in rule.counted) > most


def _at(view: SearchSpace, place: int, level: int) -> Subtree:
    """The domain of a level that one of a tree's nodes is in."""
    branch = view.tree.root
    while branch.level < level:
        at = branch.child_of(place)
        branch, place = branch.children[at], place - branch.starts[at]
    return branch


def _plain(attempt: LevelAttempt) -> LevelAttempt:
    """What was tried in the domains of values that stand above everything was tried anywhere."""
    return replace(attempt, level="", domain=()) if attempt.level.endswith("\0") else attempt


def _shunning(kinds: Kinds, key: str) -> Iterator[tuple[int, int]]:
    """The pairs of kinds of which one must not be where the other is."""
    for one, kind in enumerate(kinds):
        shunned = {name for at, name in kind.anti_affinity_over if at == key}
        for other in range(len(kinds)):
            if other != one and shunned.intersection(kinds[other].names):
                yield one, other


def _barred(way: _Variant, where: Sequence[int], bar: NodeExclusion) -> _Variant:
    """The way with some of its kinds barred from more nodes."""
    return replace(
        way,
        kinds=tuple(
            replace(kind, shape=replace(kind.shape, exclusions=(*kind.shape.exclusions, bar)))
            if at in where
            else kind
            for at, kind in enumerate(way.kinds)
        ),
    )
