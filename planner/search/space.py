"""A tree as one gang sees it: what lies where, and what each domain holds, now or when the cluster is empty.

    tree          root ─ r1 ─ a, b          where domains are
    content       root ─ r1 ─ 8, 3 GPUs     what is free in them now; when empty: 8, 8

`now` is the cluster as it is; otherwise it is the cluster when empty: no bound pods, no reservations, no
cordons, every node ready. Costs look only at contents and never at the gang's selectors, so that a plan made
again within its own node affinity comes out the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.cluster.tree import Subtree, TopologyTree
from planner.model.pod_class import PodClass
from planner.node.gpu_sharing import share_in
from planner.search.eligibility_map import EligibilityMap, capped, match_of
from planner.search.objective import Weights, weights, without
from planner.search.rules.domain_caps import DomainCap


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """One tree at one moment (`now`) or when empty; `content` is that of the whole tree.

    `extra`: levels that only rules over labels look at, in a tree made finer by them
    (`rules.label_levels`); they cost nothing and are no place to be. `plain`: the tree without these.
    `caps`: how many pods domains may hold at the most."""

    base: Infrastructure
    tree: TopologyTree
    now: bool
    content: DomainCapacity
    extra: frozenset[int] = frozenset()
    plain: TopologyTree | None = None
    caps: tuple[DomainCap, ...] = ()

    def match(self, kinds: Sequence[PodClass]) -> EligibilityMap:
        """Where these kinds of pods may be by the nodes' labels and the caps."""
        base = self.base
        everywhere = match_of(base.plan_cache, self.tree, kinds, divided=base.divided)
        return capped(everywhere, self.tree.root, self.caps)

    def weights(self, kinds: Sequence[PodClass]) -> Weights:
        """What placements of these kinds cost."""
        worst = sum(weight for kind in kinds if not kind.is_split for weight, _ in kind.shape.preferences)
        worst += sum(1 for kind in kinds if not kind.is_split and share_in(kind.shape.requests))
        found = weights(self.tree.topology, self.base.empty_capacity(self.plain or self.tree), worst)
        return without(found, self.extra) if self.extra else found

    def start(self, path: Sequence[int]) -> int:
        """Which of the tree's nodes the first one of that domain is."""
        branch, start = self.tree.root, 0
        for place in path:
            start, branch = start + branch.starts[place], branch.children[place]
        return start

    def at(self, path: Sequence[int]) -> tuple[Subtree, DomainCapacity]:
        """The domain that is reached by these places among children, with its content."""
        branch, content = self.tree.root, self.content
        for place in path:
            branch, content = branch.children[place], content.children[place]
        return branch, content


def search_space(snapshot: Snapshot, tree: TopologyTree, *, now: bool) -> SearchSpace:
    """The view of a tree in a snapshot that does not hold the gang itself."""
    content = snapshot.capacity(tree) if now else snapshot.base.empty_capacity(tree)
    return SearchSpace(snapshot.base, tree, now, content)
