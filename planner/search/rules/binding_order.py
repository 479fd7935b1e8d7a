"""Checks whether the pods of a placement can be bound one by one under their spread constraints.

    row a: 2 pods there already      row b: none      maxSkew 1; the plan is one pod in a and three in b

In the end both rows have three pods. Before that, b must have two pods before a may take its pod: the order
is b, b, then a or b.

With one constraint it is enough to check the final counts: the emptiest domain that expects a pod can always
take it. With several constraints, pods may wait for each other for ever. Also, the plan pins pods to nodes by
node affinity: kube-scheduler then counts pods on these nodes only (`nodeAffinityPolicy: Honor`), where pods
of other workloads may be spread unevenly. So this module simulates the binding, and always binds next the pod
that leaves the smallest skew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.model.effort.deadline import poll
from planner.search.rules.spread_over_labels import SpreadRule

_STEPS = 4000
"""Maximum number of simulated bindings, or twice the number of the gang's pods if that is more, so that an
order without backtracking is always followed to its end. If the limit is reached, the pods count as not
bindable."""


@dataclass(frozen=True, slots=True)
class Seat:
    """`count` pods of one class on one node. `values`: for each rule, the node's value of the rule's label;
    "" if the rule does not apply to the node."""

    class_index: int
    node: str
    count: int
    values: tuple[str, ...]


class BindingOrderCheck:
    """Searches for an order in which all pods can be bound, by simulation. `rules`: the spread constraints
    (`SpreadRule`). `pinned`: by pod class index, the nodes to which the plan pins the pods of the class; None
    if the plan pins no pods."""

    def __init__(
        self, rules: Sequence[SpreadRule], seats: Sequence[Seat], pinned: Mapping[int, frozenset[str]] | None
    ) -> None:
        self._seats = _joined(seats, pinned)
        self._left = [seat.count for seat in self._seats]
        self._steps = max(_STEPS, 2 * sum(self._left))
        self._counts = [
            _RuleCounts(number, rule, class_index, self._nodes(rule, class_index, pinned))
            for number, rule in enumerate(rules)
            for class_index in rule.keepers
        ]
        self._counts_of: dict[int, list[_RuleCounts]] = {}
        for counts in self._counts:
            self._counts_of.setdefault(counts.class_index, []).append(counts)
        self._failed: set[tuple[int, ...]] = set()

    def _nodes(
        self, rule: SpreadRule, class_index: int, pinned: Mapping[int, frozenset[str]] | None
    ) -> frozenset[str] | None:
        """Returns the nodes on which the rule counts pods for a pod of the class; None for all nodes."""
        return pinned[class_index] if pinned is not None and rule.spread.by_affinity else None

    def can_all_be_bound(self) -> bool:
        """Reports whether an order in which all pods can be bound was found within the limit."""
        order = self._order()
        # For each pod bound so far, and for the next pod: the seats to try, and the index of the next seat.
        trail: list[tuple[list[int], int]] = [(order, 0)]
        placed: list[int] = []
        while any(self._left):
            order, position = trail[-1]
            if position < len(order) and self._steps > 0:
                trail[-1] = (order, position + 1)
                self._move(order[position], 1)
                placed.append(order[position])
                key = tuple(self._left)
                trail.append(([] if key in self._failed else self._order(), 0))
                self._steps -= 1
            else:
                self._failed.add(tuple(self._left))
                trail.pop()
                if not placed or self._steps <= 0:
                    return False
                self._move(placed.pop(), -1)
        return True

    def _order(self) -> list[int]:
        """Returns the indexes of the seats to which a pod may be bound next, those that leave the smallest
        skew first."""
        skews: list[tuple[int, int]] = []
        for index, seat in enumerate(self._seats):
            poll("search")  # seats × rules, for each pod that is bound
            if self._left[index]:
                after = [
                    (counts.skew(seat), counts.rule.spread.skew)
                    for counts in self._counts_of.get(seat.class_index, ())
                ]
                if all(skew <= max_skew for skew, max_skew in after):
                    skews.append((max((skew for skew, _ in after), default=0), index))
        return [index for _, index in sorted(skews)]

    def _move(self, index: int, count: int) -> None:
        self._left[index] -= count
        for counts in self._counts:
            counts.add(self._seats[index], count)


def _joined(seats: Sequence[Seat], pinned: Mapping[int, frozenset[str]] | None) -> list[Seat]:
    """Returns the seats, with those of a class joined if its pods count alike on their nodes: nodes in the
    same domains, with the same classes pinned to them. The number of orders then depends on the domains, not
    on the nodes.
    """
    pinned_classes: dict[str, list[int]] = {}
    for class_index, nodes in (pinned or {}).items():
        for node in nodes:
            pinned_classes.setdefault(node, []).append(class_index)
    joined: dict[tuple[int, tuple[str, ...], tuple[int, ...]], Seat] = {}
    for seat in seats:
        key = (seat.class_index, seat.values, tuple(pinned_classes.get(seat.node, ())))
        former = joined.get(key)
        joined[key] = seat if former is None else replace(former, count=former.count + seat.count)
    return list(joined.values())


class _RuleCounts:
    """The counts of one rule by label value, as kube-scheduler computes them for pods of one class.

    `nodes`: the nodes on which pods are counted; None for all.
    """

    def __init__(self, number: int, rule: SpreadRule, class_index: int, nodes: frozenset[str] | None) -> None:
        self._number, self.rule, self.class_index, self._nodes = number, rule, class_index, nodes
        self._counts = dict(rule.existing) if nodes is None else {}
        for node in nodes or ():
            if node in rule.values:
                value = rule.values[node]
                self._counts[value] = self._counts.get(value, 0) + rule.nodes.get(node, 0)
        # How many domains have each count: finds the lowest count without reading every domain.
        self._levels = Counter(self._counts.values())

    def skew(self, seat: Seat) -> int:
        """Returns the skew after one more pod on this seat: the count of its domain minus that of the
        emptiest domain."""
        too_few_domains = len(self._counts) < self.rule.spread.min_domains
        lowest = (
            0 if too_few_domains else min((n for n, domains in self._levels.items() if domains), default=0)
        )
        own_pod = 1 if self.class_index in self.rule.counted else 0
        return self._counts.get(seat.values[self._number], 0) + own_pod - lowest

    def add(self, seat: Seat, count: int) -> None:
        """Counts pods that are bound to this seat; a negative `count` takes them back."""
        value = seat.values[self._number]
        if seat.class_index not in self.rule.counted or value not in self._counts:
            return
        if self._nodes is not None and seat.node not in self._nodes:
            return
        self._levels[self._counts[value]] -= 1
        self._counts[value] += count
        self._levels[self._counts[value]] += 1
