"""A placement of pods of one class that is spread over a label that cuts across the topology.

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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.cluster.trees.subtree import Subtree
from planner.model.pod_class import PodClass, PodClasses
from planner.model.topology import ROOT
from planner.search.domain_caps import DomainCap
from planner.search.result import Placement
from planner.search.rules.label_levels import under_values
from planner.search.rules.spread_over_labels import Minimum, SpreadRule
from planner.search.rules.tree_search import TreeSearch


def placements(
    search: TreeSearch,
    pod_classes: PodClasses,
    rules: Sequence[SpreadRule],
    required: int,
    minimums: Iterable[Minimum],
) -> list[Placement]:
    """Returns a placement for each of these minimums, for which all pods fit, unless none is found; none for
    pods that have other rules.
    """
    if not _is_decided(search, pod_classes, rules, required):
        return []
    spread = _SpreadOverValues(search, pod_classes[0], rules[0].spread.key)
    placed = [spread.placed(*minimum) for minimum in minimums]
    return [placement for placement in placed if placement is not None]


def _is_decided(
    search: TreeSearch, pod_classes: PodClasses, rules: Sequence[SpreadRule], required: int
) -> bool:
    """Reports whether the numbers of pods that fit in the domains of a label decide the request."""
    # With the label's domains as the coarsest level, a rack is divided into parts that are packed separately,
    # so a limit of GPUs for the whole rack cannot be checked.
    return (
        search.space.gpu_limit is None
        and len(pod_classes) == len(rules) == 1
        and required == ROOT
        and _spread_alone(pod_classes[0], rules[0])
    )


def _spread_alone(pod_class: PodClass, rule: SpreadRule) -> bool:
    """Reports whether the constraint is the only rule about the relative positions of the pods."""
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
    """Searches with the domains of the label as the coarsest level."""

    def __init__(self, search: TreeSearch, pod_class: PodClass, key: str) -> None:
        self._search, self._pod_class = search, pod_class
        plain = search.space
        self._space = under_values(plain.base.capacities, replace(plain, plain=plain.tree), key)

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
