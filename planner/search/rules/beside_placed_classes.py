"""The rules of a pod class beside classes of the same gang that are placed already.

    zones z1, z2, z3; maxSkew 1 over all pods of the gang      placed: 2 workers in z1, 1 each in z2 and z3
    the launcher, not placed yet: the workers count as existing pods, so it goes to z2 or z3

The pods of placed classes count as existing pods of spread constraints. Affinity and anti-affinity to them
become exclusions of nodes. What is left are rules about the pods of the class alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from planner.cluster.trees.tree import TopologyTree
from planner.model.labels import NODE_NAME_FIELD
from planner.model.pod_class import PodClass
from planner.model.resolved import ANTI_AFFINITY_CAUSE, NodeExclusion, SpreadState

Seats = Sequence[tuple[str, int]]
"""Names of nodes, each with the number of pods of one class."""


@dataclass(slots=True)
class PlacedClasses:
    """The pod classes of a gang that are placed in the tree, with their nodes, in the order of placement."""

    tree: TopologyTree
    _placed: list[tuple[PodClass, Seats]] = field(default_factory=list)

    def add(self, pod_class: PodClass, seats: Seats) -> None:
        """Adds a class that was placed on these nodes."""
        self._placed.append((pod_class, seats))

    def rules_beside(self, pod_class: PodClass) -> PodClass:
        """Returns the class with rules about its own pods only, which together with the exclusions of nodes
        mean the same as its rules.
        """
        own = {name for name, _ in pod_class.parts}
        spread_states = tuple(map(self._counted, pod_class.shape.spread_states))
        alone = replace(
            pod_class,
            shape=replace(pod_class.shape, spread_states=spread_states),
            anti_affinity_with=tuple([rule for rule in pod_class.anti_affinity_with if rule[1] in own]),
            anti_affinity_over=tuple([rule for rule in pod_class.anti_affinity_over if rule[1] in own]),
            co_located_over=tuple([(key, _among(names, own)) for key, names in pod_class.co_located_over]),
            co_located_at=tuple([(level, _among(names, own)) for level, names in pod_class.co_located_at]),
        )
        return alone.excluding(*self._exclusions(pod_class, own))

    def _counted(self, state: SpreadState) -> SpreadState:
        """Returns the state with the placed pods that it counts as existing pods."""
        nodes, domains = Counter(state.nodes), Counter(state.existing_pods)
        for pod_class, seats in self._placed:
            if any(
                other.counted and other.is_same_constraint(state) for other in pod_class.shape.spread_states
            ):
                for node, count in seats:
                    if node in state.values:
                        nodes[node] += count
                        domains[state.values[node]] += count
        return replace(state, nodes=dict(nodes), existing_pods=dict(domains))

    def _exclusions(self, pod_class: PodClass, own: set[str]) -> Iterator[NodeExclusion]:
        for level, name in pod_class.anti_affinity_with:
            if name not in own:
                yield outside(self._nodes_near(level, [name]))
        for key, name in pod_class.anti_affinity_over:
            if name not in own:
                yield NodeExclusion(key, self._values_near(key, [name]), ANTI_AFFINITY_CAUSE)
        for level, names in pod_class.co_located_at:
            if near := self._nodes_near(level, names):
                yield inside(near)
        for key, names in pod_class.co_located_over:
            if values := self._values_near(key, names):
                yield NodeExclusion(key, values, ANTI_AFFINITY_CAUSE, inside=True)
        for attraction in pod_class.attractions:
            values = attraction.values | self._values_near(attraction.key, attraction.pod_sets)
            yield NodeExclusion(attraction.key, values, ANTI_AFFINITY_CAUSE, inside=True)

    def _nodes_near(self, level: int, names: Iterable[str]) -> frozenset[str]:
        """Returns the nodes of the level's domains that have pods of these PodSets."""
        domains = {self.tree.ancestor(node, level) for node in self._nodes_of(names)}
        return frozenset(
            # `ancestor` returns the host of a node that is in no domain of the level.
            [node for domain in domains if domain.level == level for node in self.tree.names(domain)]
        )

    def _values_near(self, key: str, names: Iterable[str]) -> frozenset[str]:
        """Returns the values of the label on the nodes that have pods of these PodSets."""
        if key == NODE_NAME_FIELD:
            return frozenset(self._nodes_of(names))
        labels = (self.tree.cluster[node].labels.get(key, "") for node in self._nodes_of(names))
        return frozenset([value for value in labels if value])

    def _nodes_of(self, names: Iterable[str]) -> Iterator[str]:
        wanted = set(names)
        for pod_class, seats in self._placed:
            if any(name in wanted for name, _ in pod_class.parts):
                for node, _ in seats:
                    yield node


def inside(nodes: frozenset[str]) -> NodeExclusion:
    """Returns the exclusion of all nodes but these."""
    return NodeExclusion(NODE_NAME_FIELD, nodes, ANTI_AFFINITY_CAUSE, inside=True)


def outside(nodes: frozenset[str]) -> NodeExclusion:
    """Returns the exclusion of these nodes."""
    return NodeExclusion(NODE_NAME_FIELD, nodes, ANTI_AFFINITY_CAUSE)


def _among(names: Iterable[str], own: set[str]) -> tuple[str, ...]:
    return tuple([name for name in names if name in own])
