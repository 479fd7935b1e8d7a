"""A placement of pods of one class that is spread over labels that cut across the topology.

    racks:  r1  r2  r3  r4          12 pods, maxSkew 1 over rows
    row a   2   3   .   2           row a has room for 7, row b for 4, row c for 5
    row b   1   .   3   .           four in each row is a placement
    row c   .   2   2   1           with a minimum of three, rows may have up to four: 4 + 4 + 4 again

A number is the room of a rack for pods in that row. Racks lie in several rows, so no level of the tree shows
how many pods fit in a row, and a search that repairs one row after another may not end. If the pods have no
other rule, the numbers of pods that fit in each row (`room_of_domains`) tell whether all pods fit for some
minimum. If they do, a placement is searched with these numbers as caps and the rows as the coarsest level of
the tree. This placement is valid but usually not the cheapest, because the cost of a rack is counted once for
each row in which it is used.

With several constraints, the nodes of equal values of all labels take the place of the rows, with the numbers
of pods that go there one by one (`spread_one_by_one`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from planner.cluster.trees.subtree import Subtree
from planner.model.pod_class import PodClass, PodClasses
from planner.model.topology import ROOT
from planner.search.domain_caps import DomainCap
from planner.search.result import Placement, PodsByNode
from planner.search.rules.label_levels import under_values, values_of
from planner.search.rules.spread_one_by_one import cells_of, pods_by_cell
from planner.search.rules.spread_over_labels import Minimum, SpreadRule
from planner.search.rules.tree_search import TreeSearch


def placements(
    search: TreeSearch, pod_class: PodClass, rule: SpreadRule, minimums: Iterable[Minimum]
) -> list[Placement]:
    """Returns a placement under one constraint for each of these minimums, for which all pods fit, unless the
    search finds none.
    """
    key = rule.spread.key
    spread = _SpreadOverValues(search, pod_class, key, values_of(search.space.tree, key))
    placed = [spread.placed(*minimum) for minimum in minimums]
    return [placement for placement in placed if placement is not None]


def placement_in_cells(
    search: TreeSearch, pod_class: PodClass, rules: Sequence[SpreadRule], room_of: RoomOf
) -> Placement | None:
    """Returns a placement under several constraints with the numbers of `pods_by_cell`; None if there are no
    such numbers or the search ends.

    `room_of`: counts the pods that fit in the domains of a label.
    """
    cells, tree = cells_of(rules), search.space.tree
    values = {node: _SEPARATOR.join(cell) for node, cell in cells.items()}
    room_of_values = room_of(_CELLS, {_CELLS: values})
    room = {cell: room_of_values.get(_SEPARATOR.join(cell), 0) for cell in cells.values()}
    pods = pods_by_cell(rules, room, pod_class.count)
    if pods is None:
        return None
    if len(room) == len(cells):  # each cell is a node
        counts = (pods[cells[node.name]] if node.name in cells else 0 for node in tree.nodes)
        pods_by_node: PodsByNode = [(place, (count,)) for place, count in enumerate(counts) if count]
        domain = _domain_of(tree.root, [place for place, _ in pods_by_node])
        return Placement(domain, (pod_class,), pods_by_node, 0, exact=False)
    numbers = {_SEPARATOR.join(cell): count for cell, count in pods.items()}
    return _SpreadOverValues(search, pod_class, _CELLS, values).placed(numbers, numbers)


RoomOf = Callable[[str, Mapping[str, Mapping[str, str]]], Mapping[str, int]]
"""Returns how many pods fit in each domain of a label, by its key and, for a label that no node has, by the
value of each node.
"""

_CELLS, _SEPARATOR = "\0cells", "\0"
"""The key of the label whose values are cells, and what separates the values of a cell: no label has either.
"""


def is_decided(
    search: TreeSearch, pod_classes: PodClasses, rules: Sequence[SpreadRule], required: int
) -> bool:
    """Reports whether the numbers of pods that fit in the domains of the labels decide the request."""
    # With the label's domains as the coarsest level, a rack is divided into parts that are packed separately,
    # so a limit of GPUs for the whole rack cannot be checked.
    return (
        search.space.gpu_limit is None
        and len(pod_classes) == 1
        and required == ROOT
        and all(_spread_alone(pod_classes[0], rule) for rule in rules)
    )


def _spread_alone(pod_class: PodClass, rule: SpreadRule) -> bool:
    """Reports whether spread constraints are the only rules about the relative positions of the pods, and
    this one counts exactly these pods.
    """
    tied = (
        pod_class.anti_affinity_levels
        or pod_class.anti_affinity_with
        or pod_class.anti_affinity_over
        or pod_class.co_located_over
        or pod_class.co_located_at
    )
    levels = (pod_class.required, pod_class.slice_level)
    return not tied and levels == (ROOT, ROOT) and rule.keepers == rule.counted == (0,)


class _SpreadOverValues:
    """Searches with the domains of the label as the coarsest level. `values`: by node, the label's value."""

    def __init__(self, search: TreeSearch, pod_class: PodClass, key: str, values: Mapping[str, str]) -> None:
        self._search, self._pod_class = search, pod_class
        plain = search.space
        self._space = under_values(plain.base.capacities, replace(plain, plain=plain.tree), key, values)

    def placed(self, max_pods: Mapping[str, int], lacking: Mapping[str, int]) -> Placement | None:
        """Returns a placement in which each domain has at most `max_pods` and at least `lacking` new pods;
        None if none is found.
        """
        placement = self._search_within(max_pods)
        if placement is None:
            return None
        counts = self._by_value(placement)
        if all(counts[value] >= number for value, number in lacking.items()):
            return self._in_plain_tree(placement)
        placement = self._search_within(_raised(counts, lacking))
        return self._in_plain_tree(placement) if placement else None

    def _search_within(self, max_pods: Mapping[str, int]) -> Placement | None:
        space = replace(self._space, caps=(DomainCap(0, (0,), (0,), max_pods, 0),))
        outer = self._search
        budget = outer.budget if outer.budget.hard else replace(outer.spare)
        return outer.in_space(space, budget).search((self._pod_class,), ROOT).placement

    def _by_value(self, placement: Placement) -> Counter[str]:
        """Returns by label value the number of pods that the placement puts there."""
        counts: Counter[str] = Counter()
        tree = self._space.tree
        for index, (count,) in placement.pods_by_node:
            counts[tree.root.children[tree.root.child_of(index)].path[-1]] += count
        return counts

    def _in_plain_tree(self, placement: Placement) -> Placement:
        """Returns the placement with the node indexes and the domain of the plain tree."""
        plain, root = self._search.space.tree, self._space.tree.root
        places = {name: index for index, name in enumerate(plain.names(plain.root))}
        placed = sorted((places[root.leaf(index).node], counts) for index, counts in placement.pods_by_node)
        domain = _domain_of(plain.root, [index for index, _ in placed])
        return replace(placement, branch=domain, pods_by_node=placed, exact=False)


def _raised(counts: Counter[str], lacking: Mapping[str, int]) -> dict[str, int]:
    """Returns the counts by label value raised to at least `lacking`, with the same total: the additional
    pods are taken from the domains with the most pods above `lacking`.
    """
    raised = {value: max(counts[value], number) for value, number in lacking.items()}
    for _ in range(sum(raised.values()) - counts.total()):
        fullest = max(raised, key=lambda value: (raised[value] - lacking[value], value))
        raised[fullest] -= 1
    return raised


def _domain_of(root: Subtree, places: Sequence[int]) -> Subtree:
    """Returns the finest domain that contains all nodes with these indexes, which are ascending."""
    domain, start = root, 0
    while domain.children:
        child = domain.child_of(places[0] - start)
        if domain.child_of(places[-1] - start) != child:
            return domain
        start, domain = start + domain.starts[child], domain.children[child]
    return domain
