"""How many pods of one class fit in each domain of a label, and so at most under a spread constraint over it.

    rows:  a 7   b 4   c 5       12 pods, maxSkew 1: four in each row is a minimum that all rows can reach
    rows:  a 7   b 4   c 3       at most 11: with a minimum of three, rows may have up to four, so 4 + 4 + 3

The numbers ignore all other rules about the relative positions of the pods. So they prove that there is no
placement, without a search; whether there is a placement, they tell only for pods that have no other rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from planner.cluster.capacity import DomainCapacity
from planner.cluster.trees.subtree import Subtree
from planner.model.pod_class import PodClass, PodClasses
from planner.model.topology import ROOT
from planner.search.domain_caps import value_of
from planner.search.eligibility_map import EligibilityMap
from planner.search.rules.label_levels import refined
from planner.search.rules.spread_over_labels import Minimum, SpreadRule
from planner.search.rules.tree_search import TreeSearch


def rooms_of(search: TreeSearch, pod_classes: PodClasses, rules: Sequence[SpreadRule]) -> list[RoomOfDomains]:
    """Returns the domains of each constraint that counts exactly the pods that must satisfy it, for pods of
    one class; none for several classes.
    """
    if len(pod_classes) > 1:
        return []
    own = [rule for rule in rules if rule.keepers == rule.counted]
    # A gang that reserves domains may use more nodes if it stays inside one domain than if it spans several.
    host_index = search.space.tree.topology.host_index
    return [RoomOfDomains(search, pod_classes[0], rule, host_index) for rule in own]


class RoomOfDomains:
    """The domains of a spread constraint with the number of pods of its only class that fit in each.

    Numbers are for as many pods as `pod_class` has, so they hold for fewer pods too. `level`: that of the
    placement, on which it depends which nodes the gang may use; at the host level these are the most.
    """

    def __init__(self, search: TreeSearch, pod_class: PodClass, rule: SpreadRule, level: int) -> None:
        self._rule = rule
        self._room = room_by_value(search, pod_class, rule.spread.key, {}, level)

    def refutes(self, count: int) -> bool:
        """Reports whether it is proved that `count` pods have no placement."""
        return self.is_known and not any(self.minimums(count))

    def largest_count(self, limit: int) -> int:
        """Returns the largest number of pods, at most `limit`, that is not refuted."""
        # If so many pods have a placement, fewer have too: one pod of the fullest domain can be left out.
        return bisect_left(range(1, limit + 1), True, key=self.refutes)

    @property
    def is_known(self) -> bool:
        """Whether pods fit only in the domains; otherwise nodes to which the constraint does not apply may
        take pods too.
        """
        return not any(room for value, room in self._room.items() if value not in self._rule.existing)

    def minimums(self, count: int) -> Iterator[Minimum]:
        """Yields each minimum for which `count` pods fit."""
        rule = self._rule
        for fewest in rule.fewest_numbers(count):
            max_pods = {value: self._max_pods(value, fewest) for value in rule.existing}
            lacking = rule.lacking(fewest)
            reached = all(max_pods[value] >= lacking[value] for value in max_pods)
            if reached and sum(max_pods.values()) >= count:
                yield max_pods, lacking

    def _max_pods(self, value: str, fewest: int) -> int:
        """Returns the maximum number of new pods in a domain if the minimum is `fewest`."""
        allowed = fewest + self._rule.spread.skew - self._rule.existing[value]
        return max(0, min(self._room.get(value, 0), allowed))


def room_by_value(
    search: TreeSearch,
    pod_class: PodClass,
    key: str,
    drawn: Mapping[str, Mapping[str, str]],
    placement_level: int,
) -> Mapping[str, int]:
    """Returns how many pods of the class fit in each domain of a label, without rules about their relative
    positions. `drawn`: as in `refined`; `placement_level`: as `level` in `RoomOfDomains`.
    """
    pod_classes = (_without_rules(pod_class),)
    refined_tree = refined(search.space, (key,), drawn)
    level = refined_tree.level_of(key)
    space = refined_tree.space(search.space)
    packing = search.in_space(space, search.budget).packing(pod_classes, refined_tree.level(placement_level))
    room = Counter[str]()

    def add(branch: Subtree, capacity: DomainCapacity, match: EligibilityMap) -> None:
        fits = packing.reach(capacity, match)
        if branch.level == level:
            room[value_of(branch)] += fits
        elif fits:
            matches = match.of_children(len(branch.children))
            for child in zip(branch.children, capacity.children, matches, strict=True):
                add(*child)

    # The plan cache is shared by all plans, so the search needs exclusive access.
    space.base.plan_cache.exclusively(lambda: add(space.tree.root, space.capacity, space.match(pod_classes)))
    return room


def _without_rules(pod_class: PodClass) -> PodClass:
    """Returns the class without rules about the relative positions of its pods, which name levels of the
    plain tree.
    """
    return replace(
        pod_class,
        required=ROOT,
        preferred=ROOT,
        slice_level=ROOT,
        slice_size=1,
        anti_affinity_levels=(),
        anti_affinity_with=(),
        anti_affinity_over=(),
        co_located_over=(),
        co_located_at=(),
    )
