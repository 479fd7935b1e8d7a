"""Spread constraints as caps on the pods of each domain, for each number of pods in the emptiest domain.

    rows a, b, c have 2, 0, 1 matching pods; five more pods, maxSkew 1: eight in total

With a minimum of two, a row may end with three pods, so the caps are 1, 3 and 2 more pods. With a minimum of
three the rows lack 1, 3 and 2 pods, six in total, but there are five. With a minimum of one the caps leave
room for three. So the minimum is two.

The minimum of a placement is the number of pods that the emptiest domain has in the end. For each possible
minimum, `fewest`, all domains are capped at `fewest` plus the skew. The best placement within these caps
often leaves no domain below `fewest`, and is then valid. If it does leave one below, the pods are split into
two groups. The first has as many pods as the domains lack to reach `fewest`, and each domain is capped at the
number of these pods that it lacks; the second group has the remaining pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from planner.model.labels import NODE_NAME_FIELD
from planner.model.pod import SpreadConstraint
from planner.model.pod_class import PodClass, PodClasses
from planner.model.resolved import SPREAD_CAUSE, NodeExclusion, SpreadState
from planner.model.topology import ROOT

_MAX_CUTS = 24
"""Maximum number of splits that are searched for one minimum; each is a search of several classes."""


_MAX_COMBINATIONS = 256
"""Maximum number of combinations of minimums that are searched; one constraint over 24 rows has about three.
If either maximum is exceeded, the answer says that the placement was not proved best.
"""


Minimum = tuple[Mapping[str, int], Mapping[str, int]]
"""By label value: the largest number of new pods, and how many the domain needs to reach the minimum."""


@dataclass(frozen=True, slots=True)
class LabelCap:
    """A maximum number of pods in each domain of a label.

    A domain (for the hostname label: a node) with a pod of the classes `keepers` has at most `values[value]`
    pods of the classes `counted`, or `default_cap` if its label value is not listed; None means no maximum.
    `drawn`: if no node has the label `key`, the value that each node counts as having, by node; else None.
    """

    key: str
    keepers: tuple[int, ...]
    counted: tuple[int, ...]
    values: Mapping[str, int] = field(default_factory=dict)
    default_cap: int | None = None
    drawn: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """A spread constraint with the indexes of the pod classes that must satisfy it (`keepers`) and of those
    whose pods it counts (`counted`).

    `existing`: by label value, the number of matching pods before the placement; `nodes`: the same by node,
    without zeros. `values`: by node, the label value, for nodes to which the constraint applies. `number`:
    the index of the rule.
    """

    spread: SpreadConstraint
    existing: Mapping[str, int]
    keepers: tuple[int, ...]
    counted: tuple[int, ...]
    nodes: Mapping[str, int]
    values: Mapping[str, str]
    number: int

    def fewest_numbers(self, count: int) -> Iterator[int]:
        """Yields the possible minimums, ascending, if `count` counted pods are placed."""
        lowest, highest = min(self.existing.values(), default=0), max(self.existing.values(), default=0)
        if len(self.existing) < self.spread.min_domains:
            yield 0
            return
        if self.spread.min_domains > 1 and lowest:
            yield 0  # kube-scheduler's minimum if the plan pins pods to fewer than `min_domains` domains
        for fewest in range(lowest, lowest + count + 1):
            if sum(self.lacking(fewest).values()) > count:
                return  # the pods cannot raise all domains to this minimum
            room = sum(max(0, fewest + self.spread.skew - n) for n in self.existing.values())
            # Counted pods that are not keepers have no maximum in domains without keepers, so ignore `room`.
            if room >= count or set(self.keepers) != set(self.counted):
                yield fewest
            if fewest + self.spread.skew - highest >= count:
                return  # every domain may have all pods, so a higher minimum allows nothing more

    def lacking(self, fewest: int) -> dict[str, int]:
        """Returns by label value how many pods the domain lacks to reach `fewest`."""
        return {value: max(0, fewest - n) for value, n in self.existing.items()}

    def limited(self, fewest: int) -> LabelCap:
        """Returns the cap on new pods in each domain if the minimum is `fewest`.

        Only domains with existing pods are listed, so that a constraint over thousands of nodes has few
        different caps. Nodes to which the constraint does not apply have the default, too: keepers never use
        them.
        """
        max_pods = fewest + self.spread.skew
        values = {value: max_pods - n for value, n in self.existing.items() if n}
        return replace(self.without_maximums, values=values, default_cap=max_pods)

    @property
    def without_maximums(self) -> LabelCap:
        """A cap over the domains and pod classes of this rule whose maximums are not set yet.

        Pods that are counted but need not satisfy the constraint may also be on nodes to which it does not
        apply, and do not count there. If there are such pods, the domains are therefore given by a list of
        nodes (`drawn`), not by the label.
        """
        if set(self.counted) <= set(self.keepers):
            return LabelCap(self.spread.key, self.keepers, self.counted)
        # No label has this key, so each rule gets its own domains.
        return LabelCap(f"{self.spread.key}\0{self.number}", self.keepers, self.counted, drawn=self.values)

    def holds(self, counts: Mapping[str, Sequence[int]]) -> bool:
        """Reports whether a placement satisfies the constraint. `counts`: by label value, the number of
        placed pods of each class.
        """
        zero = (0,) * (1 + max((*self.keepers, *self.counted)))
        after = {
            value: n + sum(counts.get(value, zero)[index] for index in self.counted)
            for value, n in self.existing.items()
        }
        lowest = 0 if len(after) < self.spread.min_domains else min(after.values(), default=0)
        used = (value for value, each in counts.items() if any(each[index] for index in self.keepers))
        return all(after.get(value, 0) - lowest <= self.spread.skew for value in used)


@dataclass(frozen=True, slots=True)
class SpreadVariant:
    """Pod classes, possibly split, with their limits. `cut_from`: for each class, the index of the original
    class.
    """

    pod_classes: PodClasses
    cut_from: tuple[int, ...]
    limits: tuple[LabelCap, ...]


def rules_of(pod_classes: PodClasses) -> list[SpreadRule]:
    """Returns the spread constraints of these pod classes; equal ones of several classes are one rule."""
    rows: list[tuple[SpreadState, list[int], list[int]]] = []
    for index, pod_class in enumerate(pod_classes):
        for state in pod_class.shape.spread_states:
            row = next((rule for rule in rows if rule[0].is_same_constraint(state)), None)
            if row is None:
                row = (state, [], [])
                rows.append(row)
            if state.constrained:
                row[1].append(index)
            if state.counted:
                row[2].append(index)
    return [
        SpreadRule(
            state.spread, state.existing_pods, tuple(keep), tuple(count), state.nodes, state.values, number
        )
        for number, (state, keep, count) in enumerate(rows)
    ]


def numbers(pod_classes: PodClasses, rules: Sequence[SpreadRule]) -> tuple[list[tuple[int, ...]], bool]:
    """Returns combinations of minimums, each with one minimum per rule, and whether these are all of them."""
    choices = [
        list(rule.fewest_numbers(sum(pod_classes[index].count for index in rule.counted))) for rule in rules
    ]
    combinations = list(product(*choices))
    return combinations[:_MAX_COMBINATIONS], len(combinations) <= _MAX_COMBINATIONS


def capped(pod_classes: PodClasses, rules: Sequence[SpreadRule], fewest: Sequence[int]) -> SpreadVariant:
    """Returns the unchanged pod classes with the caps for these minimums."""
    limits = tuple(rule.limited(n) for rule, n in zip(rules, fewest, strict=True))
    return SpreadVariant(pod_classes, tuple(range(len(pod_classes))), limits)


def away_from_counted(
    pod_classes: PodClasses, rules: Sequence[SpreadRule], fewest: Sequence[int]
) -> SpreadVariant:
    """Returns the result of `capped` with the pod classes excluded from nodes that already have counted pods.

    kube-scheduler counts pods on the nodes to which the plan pins a pod. On the remaining nodes it finds no
    existing pods, so the pods may be bindable even if those in a placement by `capped` are not.
    """
    kept_off: list[PodClass] = []
    for index, pod_class in enumerate(pod_classes):
        names = frozenset(name for rule in rules if index in rule.keepers for name in rule.nodes)
        kept_off.append(pod_class.excluding(NodeExclusion(NODE_NAME_FIELD, names, SPREAD_CAUSE)))
    return replace(capped(pod_classes, rules, fewest), pod_classes=tuple(kept_off))


def cut(
    pod_classes: PodClasses, rules: Sequence[SpreadRule], fewest: Sequence[int]
) -> tuple[list[SpreadVariant], bool]:
    """Returns the splits of the pod classes that leave no domain below its minimum, and whether these are
    all such splits.
    """
    shortfalls = [(rule, rule.lacking(n)) for rule, n in zip(rules, fewest, strict=True)]
    needs = [sum(lacking.values()) for _, lacking in shortfalls]
    variants: list[SpreadVariant] = []
    for shares in _shares(pod_classes, rules, needs, 0):
        if len(variants) == _MAX_CUTS:
            return variants, False
        variants.append(_cut(pod_classes, rules, fewest, shares))
    return variants, all(pod_class.slice_size == 1 for pod_class in pod_classes)


_Shares = tuple[dict[int, int], ...]
"""For each pod class: by set of rules, how many of its pods fill up domains of all rules in the set, that is,
raise them to their minimum. A set is a bit mask with one bit per rule, because one pod can fill up domains of
several rules at once.
"""


def _shares(
    pod_classes: PodClasses, rules: Sequence[SpreadRule], needs: Sequence[int], index: int
) -> Iterator[_Shares]:
    """Yields all ways to take the pods that each rule needs from the pod classes from `index` on."""
    if index == len(pod_classes):
        if not any(needs):
            yield ()
        return
    rule_indices = [
        rule_index for rule_index, rule in enumerate(rules) if index in rule.counted and needs[rule_index]
    ]
    # All sets of rules whose domains a pod of this class may fill up.
    sets = [
        sum(1 << rule_index for rule_index, on in zip(rule_indices, bits, strict=True) if on)
        for bits in _bits(len(rule_indices))
    ]
    # For each rule, how many pods the later classes can provide. Shares that leave a larger need are skipped.
    later = [
        sum(pod_classes[class_index].count for class_index in rule.counted if class_index > index)
        if needs[number]
        else 0
        for number, rule in enumerate(rules)
    ]
    for share, remaining in _divided(pod_classes[index], sets, pod_classes[index].count, tuple(needs)):
        if all(n <= max_pods for n, max_pods in zip(remaining, later, strict=True)):
            for others in _shares(pod_classes, rules, remaining, index + 1):
                yield (share, *others)


def _bits(count: int) -> Iterator[tuple[bool, ...]]:
    return product((True, False), repeat=count)


def _divided(
    pod_class: PodClass, sets: Sequence[int], count: int, needs: tuple[int, ...]
) -> Iterator[tuple[dict[int, int], tuple[int, ...]]]:
    """Yields the ways to divide `count` pods of a class among these sets of rules, each with the number of
    pods that every rule then still needs.
    """
    first, *rest = sets
    room = min([count, *(n for rule_index, n in enumerate(needs) if first >> rule_index & 1)])
    # The last set must take all pods that are left.
    for number in range(room, -1, -1) if rest else (count,) if room == count else ():
        if number % pod_class.slice_size == 0:
            remaining = tuple(
                n - number if first >> rule_index & 1 else n for rule_index, n in enumerate(needs)
            )
            share = {first: number} if number else {}
            if not rest:
                yield share, remaining
            else:
                for others, after in _divided(pod_class, rest, count - number, remaining):
                    yield share | others, after


def _cut(
    pod_classes: PodClasses, rules: Sequence[SpreadRule], fewest: Sequence[int], shares: _Shares
) -> SpreadVariant:
    """Returns the pod classes split by `shares`, with the caps of each rule: for all pieces the maximums, and
    for the pieces that fill up its domains what each domain lacks.
    """
    pieces: list[PodClass] = []
    cut_from: list[int] = []
    sets: list[int] = []
    for index, (pod_class, share) in enumerate(zip(pod_classes, shares, strict=True)):
        pieces += _pieces(pod_class, list(share.values()))
        cut_from += [index] * len(share)
        sets += share
    limits: list[LabelCap] = []
    for number, (rule, n) in enumerate(zip(rules, fewest, strict=True)):
        keepers, counted = _pieces_of(cut_from, rule.keepers), _pieces_of(cut_from, rule.counted)
        limits.append(replace(rule.limited(n), keepers=keepers, counted=counted))
        filling = tuple(piece for piece in counted if sets[piece] >> number & 1)
        if filling:
            lacking = {value: pods for value, pods in rule.lacking(n).items() if pods}
            filled = replace(rule.without_maximums, values=lacking, default_cap=0)
            limits.append(replace(filled, keepers=filling, counted=filling))
    return SpreadVariant(tuple(pieces), tuple(cut_from), tuple(limits))


def _pieces_of(cut_from: Sequence[int], class_indices: Sequence[int]) -> tuple[int, ...]:
    return tuple(piece for piece, original in enumerate(cut_from) if original in class_indices)


def _pieces(pod_class: PodClass, counts: Sequence[int]) -> list[PodClass]:
    """Returns the pod class split into pieces of these sizes. If its pods are required in one domain, so are
    the pieces together.
    """
    if len(counts) == 1:
        return [pod_class]
    names = tuple(name for name, _ in pod_class.parts)
    joint = ((pod_class.required, names),) if pod_class.required > ROOT else ()
    parts, pieces = list(pod_class.parts), list[PodClass]()
    for index, count in enumerate(counts):
        piece_parts: list[tuple[str, int]] = []
        remaining = count
        while remaining:
            name, available = parts.pop(0)
            piece_parts.append((name, min(remaining, available)))
            if available > remaining:
                parts.insert(0, (name, available - remaining))
            remaining -= piece_parts[-1][1]
        piece = replace(pod_class, parts=tuple(piece_parts), count=count, names=names, is_split=index > 0)
        pieces.append(replace(piece, co_located_at=(*pod_class.co_located_at, *joint)))
    return pieces
