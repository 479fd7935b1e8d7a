"""Plans pod classes that differ only in their requests as one class, if every node holds equal numbers of
each.

    A: 8 GPUs, 32 cores     B: 8 GPUs, 64 cores
    every node has 8 GPUs and 96 free cores:   one A or one B fits; planned as one class of 64 cores
    one node has 8 GPUs and 48 free cores:     one A fits and no B; planned as two classes

For example, three PodSets of whole-node pods that differ only in their CPU requests are equal for nodes with
enough cores. The test takes the largest and the smallest request of each resource among the classes. If a
node holds as many pods with the largest requests as with the smallest, it holds the same number of pods of
every mixture of the classes. The test is made for every node, so the answer stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from planner.cluster.capacity import DomainCapacity
from planner.cluster.plan_cache import CacheSection
from planner.model.effort.deadline import poll
from planner.model.pod_class import PodClass, joined
from planner.model.resolved import ResolvedShape
from planner.node.gpu_sharing import share_in
from planner.node.packing import max_pods
from planner.search.space import SearchSpace

_PLAIN = {"cpu", "memory", "ephemeral-storage"}
"""Resources in which merged pod classes may differ; their other requests must be equal."""


@dataclass(frozen=True, slots=True)
class _SameCapacity:
    """Checks whether nodes hold as many pods of one shape as of the other; cached by capacity."""

    largest: ResolvedShape
    smallest: ResolvedShape
    by_capacity: dict[DomainCapacity, bool] = field(default_factory=dict)

    def interchangeable_on(self, capacity: DomainCapacity) -> bool:
        """Reports whether every node of a domain holds equal numbers of both shapes."""
        interchangeable = self.by_capacity.get(capacity)
        if interchangeable is None:
            if capacity.free is None:
                interchangeable = all(map(self.interchangeable_on, capacity.chunks or capacity.children))
            else:  # whether pods fit into NUMA zones does not depend on amounts alone
                interchangeable = capacity.numa_state is None and max_pods(
                    capacity.free, self.largest
                ) == max_pods(capacity.free, self.smallest)
            self.by_capacity[capacity] = interchangeable
        return interchangeable


def merged(space: SearchSpace, pod_classes: tuple[PodClass, ...]) -> tuple[PodClass, ...]:
    """Returns the pod classes as one class with the largest requests, if every node of the space holds equal
    numbers of them; else unchanged.

    Either all classes are merged or none: beside pods of another class it matters how much each pod leaves.
    """
    if space.plain:  # the tree has levels for rules over labels, which refer to the original pod classes
        return pod_classes
    groups: list[PodClass] = []
    smallest_shapes: list[ResolvedShape] = []
    for pod_class in pod_classes:
        poll("search")
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
    """Returns the shape with the largest requests of `most_of` and that with the smallest of `least_of`; None
    if the shapes differ in more than `_PLAIN` resources or amounts alone do not determine whether they fit.
    """
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
    return cache.exclusively(lambda: shapes.interchangeable_on(space.capacity))


_Amounts = tuple[tuple[str, int], ...]

INTERCHANGEABLE: CacheSection[tuple[_Amounts, _Amounts], _SameCapacity] = CacheSection(
    "interchangeable shapes", results=lambda shapes: len(shapes.by_capacity)
)
"""Keyed by the amounts of the larger and the smaller shape. Entries never become stale, because each result
depends only on a domain's capacity. Each new capacity adds a result."""
