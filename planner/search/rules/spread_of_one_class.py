"""One class of pods spread over one label that cuts the topology's domains: whether there is a place at all.

    racks:  r1  r2  r3  r4          12 pods, at most one more in a row than in any other:
    row a   2   3   .   2           row a has room for 7, row b for 4, row c for 5
    row b   1   .   3   .           four in each row is a place
    row c   .   2   2   1           with three as the fewest, rows hold up to four: 4 + 4 + 4 as well

Racks lie in several rows here, so no level of the tree says how many pods a row has, and a search that mends
one broken row after another may not come to an end. Put above everything, the rows are domains like others:
what each holds is told exactly, and so is whether some fewest number leaves all pods a place. If so, each row
gets a number of pods of its own, and the placement of these is a valid one, though hardly the best: what a
rack costs is counted in each row that it is used in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.subtree import Subtree
from planner.model.pod_class import PodClass, PodClasses
from planner.model.topology import ROOT
from planner.search.domain_caps import DomainCap, value_of
from planner.search.result import Placement
from planner.search.rules.label_levels import under_values
from planner.search.rules.spread_over_labels import SpreadRule
from planner.search.rules.tree_search import TreeSearch
from planner.search.space import SearchSpace


@dataclass(frozen=True, slots=True)
class SpreadOutcome:
    """`placements`: valid ones, one for each fewest number. `decided`: where there is none, no other search
    would have one either."""

    placements: tuple[Placement, ...]
    decided: bool


UNDECIDED = SpreadOutcome((), decided=False)


def spread_one_class(
    search: TreeSearch, pod_classes: PodClasses, rules: Sequence[SpreadRule], required: int
) -> SpreadOutcome:
    """Places for pods of one class under one spread constraint; undecided where more is asked of them."""
    if (
        len(pod_classes) > 1
        or len(rules) > 1
        or required > ROOT
        or not _spread_alone(pod_classes[0], rules[0])
    ):
        return UNDECIDED
    domains = _DomainsOfLabel(search, pod_classes[0], rules[0])
    return domains.outcome()


def _spread_alone(pod_class: PodClass, rule: SpreadRule) -> bool:
    """Whether the constraint is all that is asked of where the pods are to one another."""
    tied = (
        pod_class.anti_affinity_levels
        or pod_class.anti_affinity_with
        or pod_class.anti_affinity_over
        or pod_class.co_located_over
        or pod_class.co_located_at
    )
    levels = (pod_class.required, pod_class.slice_level)
    return not tied and levels == (ROOT, ROOT) and rule.keepers == rule.counted == (0,)


class _DomainsOfLabel:
    """The label's domains, above everything, and what each of them holds."""

    def __init__(self, search: TreeSearch, pod_class: PodClass, rule: SpreadRule) -> None:
        self._search, self._pod_class, self._rule = search, pod_class, rule
        plain = search.space
        above = under_values(plain.base.capacities, replace(plain, plain=plain.tree), rule.spread.key)
        self._space: SearchSpace = above
        # What is remembered of the classes is shared by all plans.
        self._room = plain.base.plan_cache.exclusively(self._room_by_value)

    def _room_by_value(self) -> dict[str, int]:
        """How many of the pods each domain of the label could hold."""
        space, pod_classes = self._space, (self._pod_class,)
        packing = self._level_search(()).packing(pod_classes)
        matches = space.match(pod_classes).inside(len(space.tree.root.children))
        rows = zip(space.tree.root.children, space.capacity.children, matches, strict=True)
        return {value_of(branch): packing.reach(capacity, match) for branch, capacity, match in rows}

    def outcome(self) -> SpreadOutcome:
        """A placement for each number of pods that the emptiest domain may have."""
        rule, count = self._rule, self._pod_class.count
        if any(room for value, room in self._room.items() if value not in rule.existing):
            return UNDECIDED  # nodes that the constraint is not about may take pods as well
        placements: list[Placement] = []
        decided = True
        for fewest in rule.fewest_numbers(count):
            max_pods = {value: self._max_pods(value, fewest) for value in rule.existing}
            lacking = rule.lacking(fewest)
            if sum(max_pods.values()) < count or any(max_pods[value] < lacking[value] for value in max_pods):
                continue
            placement = self._placed(max_pods, lacking)
            decided = False
            if placement is not None:
                placements.append(placement)
        return SpreadOutcome(tuple(placements), decided)

    def _max_pods(self, value: str, fewest: int) -> int:
        """The most pods that a domain may have and can hold where the emptiest has so many."""
        allowed = fewest + self._rule.spread.skew - self._rule.existing[value]
        return max(0, min(self._room.get(value, 0), allowed))

    def _placed(self, max_pods: Mapping[str, int], lacking: Mapping[str, int]) -> Placement | None:
        """The pods where no domain has more than that, nor less than it lacks."""
        placement = self._search_within(max_pods)
        if placement is None:
            return None
        counts = self._by_value(placement)
        if all(counts[value] >= number for value, number in lacking.items()):
            return self._in_plain_tree(placement)
        placement = self._search_within(_raised(counts, lacking))
        return self._in_plain_tree(placement) if placement else None

    def _search_within(self, max_pods: Mapping[str, int]) -> Placement | None:
        cap = DomainCap(0, (0,), (0,), max_pods, 0)
        return self._level_search((cap,)).search((self._pod_class,), ROOT).placement

    def _level_search(self, caps: tuple[DomainCap, ...]) -> TreeSearch:
        outer = self._search
        budget = outer.budget if outer.budget.hard else replace(outer.spare)
        return outer.in_space(replace(self._space, caps=caps), budget)

    def _by_value(self, placement: Placement) -> Counter[str]:
        """By the label's value how many pods the placement has there."""
        counts: Counter[str] = Counter()
        tree = self._space.tree
        for place, (count,) in placement.pods_by_node:
            counts[tree.root.children[tree.root.child_of(place)].path[-1]] += count
        return counts

    def _in_plain_tree(self, placement: Placement) -> Placement:
        """The placement with the places that its nodes have in the tree as it is."""
        plain, root = self._search.space.tree, self._space.tree.root
        places = {name: place for place, name in enumerate(plain.names(plain.root))}
        placed = sorted((places[root.leaf(place).node], counts) for place, counts in placement.pods_by_node)
        domain = _domain_of(plain.root, [place for place, _ in placed])
        return replace(placement, branch=domain, pods_by_node=placed, exact=False)


def _raised(counts: Counter[str], lacking: Mapping[str, int]) -> dict[str, int]:
    """The counts with as many as are lacking everywhere, taken from the domains that have the most."""
    raised = {value: max(counts[value], number) for value, number in lacking.items()}
    for _ in range(sum(raised.values()) - counts.total()):
        fullest = max(raised, key=lambda value: (raised[value] - lacking[value], value))
        raised[fullest] -= 1
    return raised


def _domain_of(root: Subtree, places: Sequence[int]) -> Subtree:
    """The finest domain that holds all these nodes, given in order."""
    domain, start = root, 0
    while domain.children:
        child = domain.child_of(places[0] - start)
        if domain.child_of(places[-1] - start) != child:
            return domain
        start, domain = start + domain.starts[child], domain.children[child]
    return domain
