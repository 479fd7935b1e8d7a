"""Whether the pods of a placement can be bound one by one under their spread constraints.

    row a: 2 pods there already      row b: none      maxSkew 1; the plan is one pod in a and three in b

In the end both rows have three pods. On the way, b must have two before a may take its pod: b, b, then a or
b.

With one constraint it is enough to check the end: the emptiest domain that expects a pod may always take it.
With several constraints, one may wait for another for ever. And the plan pins pods to nodes by node affinity:
kube-scheduler then counts pods on these nodes only (`nodeAffinityPolicy: Honor`), where pods of other
workloads may be spread unevenly. So this module simulates the binding, and binds next the pod that leaves the
smallest skew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.model.deadline import poll
from planner.search.rules.spread_over_labels import SpreadRule

_STEPS = 4000
"""The most bindings that are tried, or twice the number of the gang's pods if that is more, so that an order
without backtracking is always followed to its end. Past this bound no order counts as found."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Pods of one class on one node; `values`: by rule the node's domain, "" for none."""

    class_index: int
    node: str
    count: int
    values: tuple[str, ...]


class BindingOrderCheck:
    """Simulates binding. `pinned`: by pod class, the nodes that the plan pins its pods to; None for no
    pins."""

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
        return pinned[class_index] if pinned is not None and rule.spread.by_affinity else None

    def ends(self) -> bool:
        """Whether an order was found, within the bound, in which all pods can be bound."""
        order = self._order()
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
        """The seats that may be taken next, those that leave the smallest skew first."""
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
    """Returns one seat for all nodes on which a pod counts alike: they are in the same domains, and the same
    classes are pinned to them. The number of orders then depends on the domains, not on the nodes.
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
    """The counts of one rule as kube-scheduler sees them for pods of one class."""

    def __init__(self, number: int, rule: SpreadRule, class_index: int, nodes: frozenset[str] | None) -> None:
        self._number, self.rule, self.class_index, self._nodes = number, rule, class_index, nodes
        self._counts = dict(rule.existing) if nodes is None else {}
        for node in nodes or ():
            if node in rule.values:
                value = rule.values[node]
                self._counts[value] = self._counts.get(value, 0) + rule.nodes.get(node, 0)
        self._levels = Counter(self._counts.values())

    def skew(self, seat: Seat) -> int:
        """The skew after one more pod on this seat: its domain's count less that of the emptiest domain."""
        too_few_domains = len(self._counts) < self.rule.spread.min_domains
        lowest = (
            0 if too_few_domains else min((n for n, domains in self._levels.items() if domains), default=0)
        )
        own_pod = 1 if self.class_index in self.rule.counted else 0
        return self._counts.get(seat.values[self._number], 0) + own_pod - lowest

    def add(self, seat: Seat, count: int) -> None:
        value = seat.values[self._number]
        if seat.class_index not in self.rule.counted or value not in self._counts:
            return
        if self._nodes is not None and seat.node not in self._nodes:
            return
        self._levels[self._counts[value]] -= 1
        self._counts[value] += count
        self._levels[self._counts[value]] += 1
