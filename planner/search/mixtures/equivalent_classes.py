"""Classes of pods that no node can tell apart, though they ask for different amounts: planned as one.

    A: 8 GPUs, 32 cores     B: 8 GPUs, 64 cores
    every node has 8 GPUs and 96 free cores:   one A or one B fits; planned as one class of 64 cores
    one node has 8 GPUs and 48 free cores:     one A fits and no B; planned as two classes

Three PodSets of whole nodes that differ only in their cores come to the same on nodes with cores enough. So
it is where a node holds as many pods of a shape that asks for the most of each resource that any of them asks
for as of one that asks for the least: then every mixture of them, too, fits in that number and in no larger
one. This is looked at for every node that there is, so the answer stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from planner.cluster.capacity import DomainCapacity
from planner.cluster.plan_cache import CacheSection
from planner.model.pod_class import PodClass, joined
from planner.model.resolved import ResolvedShape
from planner.node.gpu_sharing import share_in
from planner.node.packing import max_pods
from planner.search.space import SearchSpace

_PLAIN = {"cpu", "memory", "ephemeral-storage"}
"""What pod classes may differ in; of devices each asks for as many."""


@dataclass(frozen=True, slots=True)
class _SameCapacity:
    """Whether pods of the two shapes come to the same on nodes; remembered by the domain's capacity."""

    largest: ResolvedShape
    smallest: ResolvedShape
    by_capacity: dict[DomainCapacity, bool] = field(default_factory=dict)

    def on(self, capacity: DomainCapacity) -> bool:
        """Whether they do on every node of a domain."""
        interchangeable = self.by_capacity.get(capacity)
        if interchangeable is None:
            if capacity.free is None:
                interchangeable = all(map(self.on, capacity.chunks or capacity.children))
            else:
                interchangeable = capacity.numa_state is None and max_pods(
                    capacity.free, self.largest
                ) == max_pods(capacity.free, self.smallest)
            self.by_capacity[capacity] = interchangeable
        return interchangeable


def merged(space: SearchSpace, pod_classes: tuple[PodClass, ...]) -> tuple[PodClass, ...]:
    """The pod classes as one of the largest requests, where no node of the search space tells them apart;
    else as they are.

    All of them, or none: beside pods of yet another pod class it matters how much each leaves.
    """
    if space.plain:  # rules are over the pod classes as they are
        return pod_classes
    groups: list[PodClass] = []
    smallest_shapes: list[ResolvedShape] = []
    for pod_class in pod_classes:
        for place, group in enumerate(groups):
            shapes = _extreme_shapes(
                (group.shape, pod_class.shape), (smallest_shapes[place], pod_class.shape)
            )
            like_group = replace(pod_class, shape=group.shape)
            if shapes and (combined := joined(group, like_group)) and _interchangeable(space, *shapes):
                groups[place], smallest_shapes[place] = replace(combined, shape=shapes[0]), shapes[1]
                break
        else:
            groups.append(pod_class)
            smallest_shapes.append(pod_class.shape)
    return tuple(groups) if len(groups) == 1 else pod_classes


def _extreme_shapes(
    most_of: Sequence[ResolvedShape], least_of: Sequence[ResolvedShape]
) -> tuple[ResolvedShape, ResolvedShape] | None:
    """The shapes that ask for the most and the least; None where the nodes look at more than amounts."""
    first, second = most_of
    if replace(first, requests=second.requests) != second:
        return None
    if (
        first.preferences
        or first.alignment
        or first.claims
        or first.extended_claims
        or share_in(first.requests)
    ):
        return None
    names = {*first.requests, *second.requests}
    if any(first.requests.get(name) != second.requests.get(name) for name in names - _PLAIN):
        return None
    largest = {name: max(shape.requests.get(name, 0) for shape in most_of) for name in sorted(names)}
    smallest = {name: min(shape.requests.get(name, 0) for shape in least_of) for name in sorted(names)}
    positive = {name: amount for name, amount in smallest.items() if amount}
    return replace(first, requests=largest), replace(first, requests=positive)


def _interchangeable(space: SearchSpace, largest: ResolvedShape, smallest: ResolvedShape) -> bool:
    cache = space.base.plan_cache
    key = (tuple(largest.requests.items()), tuple(smallest.requests.items()))
    shapes = cache.entry(INTERCHANGEABLE, key, lambda: _SameCapacity(largest, smallest))
    return cache.exclusively(lambda: shapes.on(space.capacity))


_Amounts = tuple[tuple[str, int], ...]

INTERCHANGEABLE: CacheSection[tuple[_Amounts, _Amounts], _SameCapacity] = CacheSection(
    "interchangeable shapes", results=lambda shapes: len(shapes.by_capacity)
)
"""By the amounts of the larger and the smaller shape. Never stale: what is remembered follows from a domain's
capacity. It grows by a result for each capacity that is new."""
