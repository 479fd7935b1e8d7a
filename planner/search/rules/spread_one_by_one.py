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
    cells = _WaitingCells(rules, room)
    for _ in range(count):
        poll("search")
        if not cells.add_pod():
            return None
    return cells.pods


class _WaitingCells:
    """The cells with room, by the order in which they take pods, and the pods added so far.

    Counts only grow, so a cell whose turn is not up to date can only come later: it is put back. There is a
    heap for each value of the rule with the fewest domains, because a pod changes all turns of its value.
    """

    def __init__(self, rules: Sequence[SpreadRule], room: Mapping[Cell, int]) -> None:
        self.pods: Counter[Cell] = Counter()
        self._room = room
        self._skews = [_Skew(rule) for rule in rules]
        self._first = min(range(len(rules)), key=lambda number: len(rules[number].existing))
        self._others = [number for number in range(len(rules)) if number != self._first]
        self._room_of_domains: list[Counter[str]] = [Counter() for _ in rules]
        for cell, fits in room.items():
            for of_domains, value in zip(self._room_of_domains, cell, strict=True):
                of_domains[value] += fits
        self._heaps: dict[str, list[tuple[int, int, Cell]]] = {}
        self._full: list[Cell] = []
        """Cells in which a pod breaks a rule until the emptiest domains have more pods."""
        for cell, fits in room.items():
            if fits:
                self._heaps.setdefault(cell[self._first], []).append(self._turn(cell))
        for heap in self._heaps.values():
            heapify(heap)

    def add_pod(self) -> bool:
        """Adds a pod to the next cell that may take it; returns False if there is none."""
        counts = self._skews[self._first].counts
        values = sorted(self._heaps, key=lambda value: (counts[value], value))
        chosen = next((free for value in values if (free := self._next_cell(self._heaps[value]))), None)
        if chosen is None:
            return False
        self.pods[chosen] += 1
        raised = [skew.add(value) for skew, value in zip(self._skews, chosen, strict=True)]
        if self.pods[chosen] < self._room[chosen]:
            self._put_back(chosen)
        if any(raised):
            for cell in self._full:
                self._put_back(cell)
            self._full.clear()
        return True

    def _turn(self, cell: Cell) -> tuple[int, int, Cell]:
        """Returns the key by which a heap is ordered: pods and room in the cell's other domains."""
        counted = sum([self._skews[number].counts[cell[number]] for number in self._others])
        return counted, sum([self._room_of_domains[number][cell[number]] for number in self._others]), cell

    def _put_back(self, cell: Cell) -> None:
        heappush(self._heaps[cell[self._first]], self._turn(cell))

    def _next_cell(self, heap: list[tuple[int, int, Cell]]) -> Cell | None:
        """Removes and returns the first cell that may take a pod; cells that may not become `_full`."""
        while heap:
            earlier, _, cell = heappop(heap)
            latest = self._turn(cell)
            if latest[0] > earlier:
                heappush(heap, latest)
            elif all(skew.allows(value) for skew, value in zip(self._skews, cell, strict=True)):
                return cell
            else:
                self._full.append(cell)
        return None


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
