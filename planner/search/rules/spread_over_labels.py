"""Spread constraints as caps on what domains may hold, one way for each number in the emptiest domain.

    rows a, b, c with 2, 0, 1 pods there; five pods more, maxSkew 1: eight in all

With two as the fewest a row may end with three: the caps are 1, 3 and 2 pods. With three as the fewest the
rows lack 1, 3 and 2 pods, six in all, and there are five; with one the caps leave room for three. So two.

Whatever is placed, some number of pods is in the emptiest domain at the end. For each such number, `least`,
the others hold up to the skew above it: a cap on every domain. Often the best placement within these caps
leaves no domain below `least`, and that is all. Where it does, the pods are cut in two: so many that every
domain gets just what it lacks to `least`, which is a cap too, for they are as many as all domains lack
together; and the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from planner.model.labels import NODE_NAME_FIELD
from planner.model.pod import SpreadConstraint
from planner.model.pod_class import PodClass
from planner.model.resolved import SPREAD_CAUSE, NodeExclusion, SpreadState
from planner.model.topology import ROOT

Kinds = tuple[PodClass, ...]


_MOST_CUTS = 24
"""Ways to cut pods in two that are tried for one fewest number, each a search of several classes."""


_MOST_WAYS = 256
"""Combinations of fewest numbers that are tried; one constraint over 24 rows has some three. Past either
bound the answer says that it was not proved best."""


@dataclass(frozen=True, slots=True)
class LabelCap:
    """Where any pod of the kinds `keepers` is in a domain of the label, pods of `counted` are no more than
    its value (of the hostname: its node) says, or `other`; None is any number. `drawn`: by node the domains,
    where the label does not tell them."""

    key: str
    keepers: tuple[int, ...]
    counted: tuple[int, ...]
    values: Mapping[str, int] = field(default_factory=dict)
    other: int | None = None
    drawn: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """A constraint and the kinds that keep it and that count; `there`: by domain what is there already."""

    spread: SpreadConstraint
    there: Mapping[str, int]
    keepers: tuple[int, ...]
    counted: tuple[int, ...]
    nodes: Mapping[str, int]
    values: Mapping[str, str]
    number: int

    def least(self, count: int) -> Iterator[int]:
        """The numbers that the emptiest domain may have at the end, with so many more pods that count."""
        lowest, most = min(self.there.values(), default=0), max(self.there.values(), default=0)
        if len(self.there) < self.spread.least:
            yield 0
            return
        if self.spread.least > 1 and lowest:
            yield 0  # to kube-scheduler, where the plan pins the pods to fewer domains than it asks for
        for least in range(lowest, lowest + count + 1):
            if sum(self.lacking(least).values()) > count:
                return
            room = sum(max(0, least + self.spread.skew - n) for n in self.there.values())
            if room >= count or set(self.keepers) != set(self.counted):
                yield least
            if least + self.spread.skew - most >= count:
                return

    def lacking(self, least: int) -> dict[str, int]:
        """By domain how many pods more it needs to have so many."""
        return {value: max(0, least - n) for value, n in self.there.items()}

    def limited(self, least: int) -> LabelCap:
        """What domains may hold where the emptiest has so many."""
        values = {value: least + self.spread.skew - n for value, n in self.there.items()}
        return replace(self.bare, values=values)

    @property
    def bare(self) -> LabelCap:
        """A limit over its domains. Where pods count that need not keep it, they may also be on nodes that it
        is not about: its domains are then drawn node by node."""
        if set(self.counted) <= set(self.keepers):
            return LabelCap(self.spread.key, self.keepers, self.counted)
        return LabelCap(f"{self.spread.key}\0{self.number}", self.keepers, self.counted, drawn=self.values)

    def holds(self, counts: Mapping[str, Sequence[int]]) -> bool:
        """Whether a placement keeps it; `counts`: by the label's value the pods of each kind."""
        zero = (0,) * (1 + max((*self.keepers, *self.counted)))
        after = {
            value: n + sum(counts.get(value, zero)[at] for at in self.counted)
            for value, n in self.there.items()
        }
        lowest = 0 if len(after) < self.spread.least else min(after.values(), default=0)
        used = (value for value, each in counts.items() if any(each[at] for at in self.keepers))
        return all(after.get(value, 0) - lowest <= self.spread.skew for value in used)


@dataclass(frozen=True, slots=True)
class SpreadVariant:
    """Kinds with what limits them; `whose`: by kind, the place of the one that it was cut from."""

    kinds: Kinds
    whose: tuple[int, ...]
    limits: tuple[LabelCap, ...]


def rules_of(kinds: Kinds) -> list[SpreadRule]:
    """The spread constraints of these kinds."""
    found: list[tuple[SpreadState, list[int], list[int]]] = []
    for at, kind in enumerate(kinds):
        for one in kind.shape.spread_states:
            same = next((rule for rule in found if _same(rule[0], one)), None)
            if same is None:
                same = (one, [], [])
                found.append(same)
            if one.keeps:
                same[1].append(at)
            if one.counted:
                same[2].append(at)
    return [
        SpreadRule(one.spread, one.there, tuple(keep), tuple(count), one.nodes, one.values, number)
        for number, (one, keep, count) in enumerate(found)
    ]


def _same(one: SpreadState, other: SpreadState) -> bool:
    return (one.spread, one.there, one.nodes) == (other.spread, other.there, other.nodes)


def numbers(kinds: Kinds, rules: Sequence[SpreadRule]) -> tuple[list[tuple[int, ...]], bool]:
    """For each rule, what its emptiest domain may have: all combinations, and whether these are all."""
    each = [list(rule.least(sum(kinds[at].count for at in rule.counted))) for rule in rules]
    found = list(product(*each))
    return found[:_MOST_WAYS], len(found) <= _MOST_WAYS


def capped(kinds: Kinds, rules: Sequence[SpreadRule], least: Sequence[int]) -> SpreadVariant:
    """The kinds with caps alone."""
    limits = tuple(rule.limited(n) for rule, n in zip(rules, least, strict=True))
    return SpreadVariant(kinds, tuple(range(len(kinds))), limits)


def clear_of(kinds: Kinds, rules: Sequence[SpreadRule], least: Sequence[int]) -> SpreadVariant:
    """The kinds with caps, and kept off nodes where pods that count are already: to kube-scheduler, which
    counts on the nodes that a plan pins them to, there are none then."""
    made: list[PodClass] = []
    for at, kind in enumerate(kinds):
        names = frozenset(name for rule in rules if at in rule.keepers for name in rule.nodes)
        bar = NodeExclusion(NODE_NAME_FIELD, names, SPREAD_CAUSE)
        made.append(replace(kind, shape=replace(kind.shape, exclusions=(*kind.shape.exclusions, bar))))
    return replace(capped(kinds, rules, least), kinds=tuple(made))


def cut(kinds: Kinds, rules: Sequence[SpreadRule], least: Sequence[int]) -> tuple[list[SpreadVariant], bool]:
    """The kinds cut so that no domain is left below its number, and whether these are all the ways to."""
    short = [(rule, rule.lacking(n)) for rule, n in zip(rules, least, strict=True)]
    needs = [sum(lacking.values()) for _, lacking in short]
    found: list[SpreadVariant] = []
    for shares in _shares(kinds, rules, needs, 0):
        if len(found) == _MOST_CUTS:
            return found, False
        found.append(_cut(kinds, rules, least, shares))
    return found, all(kind.slice_size == 1 for kind in kinds)


_Shares = tuple[dict[int, int], ...]
"""By kind how many of its pods fill up the domains of each set of rules (a set of bits)."""


def _shares(kinds: Kinds, rules: Sequence[SpreadRule], needs: Sequence[int], at: int) -> Iterator[_Shares]:
    """All ways to have as many pods as are needed for each rule, from the kind at this place on."""
    if at == len(kinds):
        if not any(needs):
            yield ()
        return
    mine = [one for one, rule in enumerate(rules) if at in rule.counted and needs[one]]
    sets = [sum(1 << one for one, on in zip(mine, bits, strict=True) if on) for bits in _bits(len(mine))]
    later = [
        sum(kinds[one].count for one in rule.counted if one > at) if needs[number] else 0
        for number, rule in enumerate(rules)
    ]
    for share, left in _dealt(kinds[at], sets, kinds[at].count, tuple(needs)):
        if all(n <= most for n, most in zip(left, later, strict=True)):
            for others in _shares(kinds, rules, left, at + 1):
                yield (share, *others)


def _bits(count: int) -> Iterator[tuple[bool, ...]]:
    return product((True, False), repeat=count)


def _dealt(
    kind: PodClass, sets: Sequence[int], count: int, needs: tuple[int, ...]
) -> Iterator[tuple[dict[int, int], tuple[int, ...]]]:
    """The ways to deal a kind's pods to these sets of rules, with what is still needed then."""
    first, *rest = sets
    room = min([count, *(n for at, n in enumerate(needs) if first >> at & 1)])
    for number in range(room, -1, -1) if rest else (count,) if room == count else ():
        if number % kind.slice_size == 0:
            left = tuple(n - number if first >> at & 1 else n for at, n in enumerate(needs))
            own = {first: number} if number else {}
            if not rest:
                yield own, left
            else:
                for others, after in _dealt(kind, rest, count - number, left):
                    yield own | others, after


def _cut(kinds: Kinds, rules: Sequence[SpreadRule], least: Sequence[int], shares: _Shares) -> SpreadVariant:
    made: list[PodClass] = []
    whose: list[int] = []
    sets: list[int] = []
    for at, (kind, share) in enumerate(zip(kinds, shares, strict=True)):
        made += _pieces(kind, list(share.values()))
        whose += [at] * len(share)
        sets += share
    limits: list[LabelCap] = []
    for number, (rule, n) in enumerate(zip(rules, least, strict=True)):
        keepers, counted = _pieces_of(whose, rule.keepers), _pieces_of(whose, rule.counted)
        limits.append(replace(rule.limited(n), keepers=keepers, counted=counted))
        filling = tuple(one for one in counted if sets[one] >> number & 1)
        if filling:
            lacking = replace(rule.bare, values=rule.lacking(n), other=0)
            limits.append(replace(lacking, keepers=filling, counted=filling))
    return SpreadVariant(tuple(made), tuple(whose), tuple(limits))


def _pieces_of(whose: Sequence[int], kinds: Sequence[int]) -> tuple[int, ...]:
    return tuple(one for one, at in enumerate(whose) if at in kinds)


def _pieces(kind: PodClass, counts: Sequence[int]) -> list[PodClass]:
    """The kind in pieces of so many pods; what must be together stays together."""
    if len(counts) == 1:
        return [kind]
    names = tuple(name for name, _ in kind.parts)
    joint = ((kind.required, names),) if kind.required > ROOT else ()
    parts, made = list(kind.parts), list[PodClass]()
    for place, count in enumerate(counts):
        own: list[tuple[str, int]] = []
        left = count
        while left:
            name, there = parts.pop(0)
            own.append((name, min(left, there)))
            if there > left:
                parts.insert(0, (name, there - left))
            left -= own[-1][1]
        piece = replace(kind, parts=tuple(own), count=count, names=names, is_split=place > 0)
        made.append(replace(piece, co_located_at=(*kind.co_located_at, *joint)))
    return made
