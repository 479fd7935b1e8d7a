"""The search space of one gang: the domains of a tree and their free capacity, now or in the empty cluster.

    tree          root ─ r1 ─ a, b          the domains
    capacity      root ─ r1 ─ 8, 3 GPUs     what is free in them now; in the empty cluster: 8, 8

If `occupied`, the cluster is as it is now; otherwise it is empty: no bound pods, no reservations, no cordons,
and every node ready. The cost weights depend on capacities in the empty cluster, on preferred node affinity
and on GPU shares, never on selectors or required node affinity. A gang that is planned again with the node
affinity that pins it to its plan therefore has the same order of placements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.pod_class import PodClass
from planner.node.gpu_sharing import share_in
from planner.request.topology_request import GpuLimit
from planner.search.domain_caps import DomainCap, gpu_cap
from planner.search.eligibility_map import EligibilityMap, capped, match_of
from planner.search.objective import Weights, weights, without


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """One tree with its capacity, now (`occupied`) or in the empty cluster.

    `capacity`: the capacity of the tree's root. `extra`: levels that exist only for rules over labels, in a
    refined tree (`rules.label_levels`); their domains cost nothing, and no gang is placed at them. `plain`:
    the tree without these levels; None if there are none. `caps`: maximum numbers of pods in domains.
    `gpu_limit`: the maximum number of GPUs of the gang in a domain.
    """

    base: Infrastructure
    tree: TopologyTree
    occupied: bool
    capacity: DomainCapacity
    extra: frozenset[int] = frozenset()
    plain: TopologyTree | None = None
    caps: tuple[DomainCap, ...] = ()
    gpu_limit: GpuLimit | None = None

    def match(self, pod_classes: Sequence[PodClass]) -> EligibilityMap:
        """Returns the eligibility map of the tree for these pod classes, by node labels and the caps."""
        base = self.base
        everywhere = match_of(base.plan_cache, self.tree, pod_classes, divided=base.divided)
        caps = (
            self.caps if self.gpu_limit is None else (*self.caps, *self._gpu_cap(self.gpu_limit, pod_classes))
        )
        return capped(base.plan_cache, everywhere, self.tree.root, caps)

    def _gpu_cap(self, limit: GpuLimit, pod_classes: Sequence[PodClass]) -> tuple[DomainCap, ...]:
        domains = self.tree.levels[limit.level] if limit.used else ()
        used = {domain: limit.used[domain.path] for domain in domains if domain.path in limit.used}
        return gpu_cap(limit.level, limit.gpus, used, pod_classes)

    @property
    def limited(self) -> bool:
        """Whether the space has caps or a limit of GPUs, which belong to one gang."""
        return bool(self.caps) or self.gpu_limit is not None

    def weights(self, pod_classes: Sequence[PodClass]) -> Weights:
        """Returns the cost weights for placements of these pod classes."""
        worst_penalty = sum(
            weight
            for pod_class in pod_classes
            if not pod_class.is_split
            for weight, _ in pod_class.shape.preferences
        )
        # A pod with a part of a GPU may need a GPU that is not shared yet, which counts as a penalty of 1.
        worst_penalty += sum(
            1 for pod_class in pod_classes if not pod_class.is_split and share_in(pod_class.shape.requests)
        )
        base_weights = weights(
            self.tree.topology, self.base.empty_capacity(self.plain or self.tree), worst_penalty
        )
        return without(base_weights, self.extra) if self.extra else base_weights

    def start(self, path: Sequence[int]) -> int:
        """Returns the index, in the tree, of the first node of the domain at this path of child indexes."""
        branch, start = self.tree.root, 0
        for place in path:
            start, branch = start + branch.starts[place], branch.children[place]
        return start

    def domain_at(self, path: Sequence[int]) -> tuple[Subtree, DomainCapacity]:
        """Returns the domain at this path of child indexes, with its capacity."""
        branch, capacity = self.tree.root, self.capacity
        for place in path:
            branch, capacity = branch.children[place], capacity.children[place]
        return branch, capacity

    def domain_above(self, host: int, level: int) -> tuple[Subtree, DomainCapacity]:
        """Returns the domain of a level that contains the host with this index, with its capacity."""
        branch, capacity = self.tree.root, self.capacity
        while branch.level < level:
            place = branch.child_of(host)
            host -= branch.starts[place]
            branch, capacity = branch.children[place], capacity.children[place]
        return branch, capacity


def search_space(snapshot: Snapshot, tree: TopologyTree, *, occupied: bool) -> SearchSpace:
    """Returns the search space of a tree in a snapshot that does not contain the gang itself."""
    capacity = snapshot.capacity(tree) if occupied else snapshot.base.empty_capacity(tree)
    return SearchSpace(snapshot.base, tree, occupied, capacity)
