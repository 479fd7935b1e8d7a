"""How many pods of one class go to which nodes under several spread constraints, pod by pod.

    zones z1 z2, rows a b; a cell is all nodes with the same zone and row
    room:   z1/a 9   z1/b 9   z2/a 9         five pods, maxSkew 1 over both
    pods:   z1/b, z2/a, z1/b, z2/a, z1/b          always where the counted pods are fewest

Each pod goes to a cell with room in which no constraint is broken at that moment, as kube-scheduler places
pods. Of these, it takes a cell in the emptiest domain of the label with the fewest domains, and there the
cell whose other domains have the fewest counted pods; if these are equal, the cell whose other domains have
the least room, because fewer pods can go there later. The order of the pods is an order in which they can be
bound. That all pods get a place is likely but not certain: an earlier pod might have gone elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from planner.model.effort.deadline import poll
from planner.search.rules.spread_over_labels import SpreadRule

Cell = tuple[str, ...]
"""For each rule, the label value that the nodes of the cell have in common."""


def cells_of(rules: Sequence[SpreadRule]) -> dict[str, Cell]:
    """Returns the cell of each node to which all rules apply."""
    first, *rest = rules
    return {
        node: (value, *[rule.values[node] for rule in rest])
        for node, value in first.values.items()
        if all(node in rule.values for rule in rest)
    }


def pods_by_cell(rules: Sequence[SpreadRule], room: Mapping[Cell, int], count: int) -> Counter[Cell] | None:
    """Returns how many of `count` pods go to each cell; None if no cell may take the next pod.

    `room`: how many pods fit in each cell. The rules count exactly these pods and existing ones.
    """
    skews = [_Skew(rule) for rule in rules]
    first = min(range(len(rules)), key=lambda number: len(rules[number].existing))
    pods: Counter[Cell] = Counter()
    room_of_domains: list[Counter[str]] = [Counter() for _ in rules]
    for cell, fits in room.items():
        for of_domains, value in zip(room_of_domains, cell, strict=True):
            of_domains[value] += fits

    def turn(cell: Cell) -> tuple[int, int, Cell]:
        others = [number for number in range(len(rules)) if number != first]
        counted = sum([skews[number].counts[cell[number]] for number in others])
        return counted, sum([room_of_domains[number][cell[number]] for number in others]), cell

    # Counts only grow, so a cell whose turn is not up to date can only come later: it is put back. There is a
    # heap for each value of the rule with the fewest domains, because a pod changes all turns of its value.
    waiting: dict[str, list[tuple[int, int, Cell]]] = {}
    full: list[Cell] = []  # cells in which a pod breaks a rule until the emptiest domains have more pods
    for cell, fits in room.items():
        if fits:
            waiting.setdefault(cell[first], []).append(turn(cell))
    for cells in waiting.values():
        heapify(cells)

    def next_cell(cells: list[tuple[int, int, Cell]]) -> Cell | None:
        while cells:
            earlier, _, cell = heappop(cells)
            latest = turn(cell)
            if latest[0] > earlier:
                heappush(cells, latest)
            elif all(skew.allows(value) for skew, value in zip(skews, cell, strict=True)):
                return cell
            else:
                full.append(cell)
        return None

    for _ in range(count):
        poll("search")
        values = sorted(waiting, key=lambda value: (skews[first].counts[value], value))
        chosen = next((free for value in values if (free := next_cell(waiting[value]))), None)
        if chosen is None:
            return None
        pods[chosen] += 1
        raised = [skew.add(value) for skew, value in zip(skews, chosen, strict=True)]
        if pods[chosen] < room[chosen]:
            heappush(waiting[chosen[first]], turn(chosen))
        if any(raised):
            for former in full:
                heappush(waiting[former[first]], turn(former))
            full.clear()
    return pods


class _Skew:
    """The counts of one rule by label value while pods are added, and the count of the emptiest domain."""

    def __init__(self, rule: SpreadRule) -> None:
        self.counts = dict(rule.existing)
        self._max_skew, self._too_few = rule.spread.skew, len(rule.existing) < rule.spread.min_domains
        self._domains = Counter(self.counts.values())  # the number of domains with each count
        self._fewest = min(self._domains, default=0)

    def allows(self, value: str) -> bool:
        """Reports whether one more pod in the domain keeps the constraint."""
        return self.counts[value] + 1 - (0 if self._too_few else self._fewest) <= self._max_skew

    def add(self, value: str) -> bool:
        """Adds a pod to the domain; returns whether the emptiest domain has more pods now."""
        former = self.counts[value]
        self.counts[value] = former + 1
        self._domains[former] -= 1
        self._domains[former + 1] += 1
        if former > self._fewest or self._domains[former]:
            return False
        self._fewest = former + 1
        return True
