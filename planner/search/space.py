"""A tree as one gang sees it: what lies where, and what each domain holds, now or when the cluster is empty.

    tree          root ─ r1 ─ a, b          where domains are
    capacity       root ─ r1 ─ 8, 3 GPUs     what is free in them now; when empty: 8, 8

`occupied` is the cluster as it is; otherwise it is the cluster when empty: no bound pods, no reservations, no
cordons, every node ready. Costs look only at capacities and never at the gang's selectors, so that a plan
made again within its own node affinity comes out the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.cluster.subtree import Subtree
from planner.cluster.tree import TopologyTree
from planner.model.pod_class import PodClass
from planner.node.gpu_sharing import share_in
from planner.search.domain_caps import DomainCap
from planner.search.eligibility_map import EligibilityMap, capped, match_of
from planner.search.objective import Weights, weights, without


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """One tree at one moment (`occupied`) or when empty; `capacity` is that of the whole tree.

    `extra`: levels that only rules over labels look at, in a tree made finer by them
    (`rules.label_levels`); they cost nothing and are no place to be. `plain`: the tree without these.
    `caps`: how many pods domains may hold at the most."""

    base: Infrastructure
    tree: TopologyTree
    occupied: bool
    capacity: DomainCapacity
    extra: frozenset[int] = frozenset()
    plain: TopologyTree | None = None
    caps: tuple[DomainCap, ...] = ()

    def match(self, pod_classes: Sequence[PodClass]) -> EligibilityMap:
        """Where these classes of pods may be by the nodes' labels and the caps."""
        base = self.base
        everywhere = match_of(base.plan_cache, self.tree, pod_classes, divided=base.divided)
        return capped(everywhere, self.tree.root, self.caps)

    def weights(self, pod_classes: Sequence[PodClass]) -> Weights:
        """What placements of these pod classes cost."""
        worst_penalty = sum(
            weight
            for pod_class in pod_classes
            if not pod_class.is_split
            for weight, _ in pod_class.shape.preferences
        )
        worst_penalty += sum(
            1 for pod_class in pod_classes if not pod_class.is_split and share_in(pod_class.shape.requests)
        )
        base_weights = weights(
            self.tree.topology, self.base.empty_capacity(self.plain or self.tree), worst_penalty
        )
        return without(base_weights, self.extra) if self.extra else base_weights

    def start(self, path: Sequence[int]) -> int:
        """Which of the tree's nodes the first one of that domain is."""
        branch, start = self.tree.root, 0
        for place in path:
            start, branch = start + branch.starts[place], branch.children[place]
        return start

    def domain_at(self, path: Sequence[int]) -> tuple[Subtree, DomainCapacity]:
        """The domain that is reached by these places among children, with its capacity."""
        branch, capacity = self.tree.root, self.capacity
        for place in path:
            branch, capacity = branch.children[place], capacity.children[place]
        return branch, capacity

    def domain_above(self, host: int, level: int) -> tuple[Subtree, DomainCapacity]:
        """The domain of a level that holds the tree's host with this index, with its capacity."""
        branch, capacity = self.tree.root, self.capacity
        while branch.level < level:
            place = branch.child_of(host)
            host -= branch.starts[place]
            branch, capacity = branch.children[place], capacity.children[place]
        return branch, capacity


def search_space(snapshot: Snapshot, tree: TopologyTree, *, occupied: bool) -> SearchSpace:
    """The search space of a tree in a snapshot that does not hold the gang itself."""
    capacity = snapshot.capacity(tree) if occupied else snapshot.base.empty_capacity(tree)
    return SearchSpace(snapshot.base, tree, occupied, capacity)
