"""Kinds of pods that no node can tell apart, though they ask for different amounts: planned as one.

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
"""What kinds may differ in; of devices each asks for as many."""


@dataclass(frozen=True, slots=True)
class _SameCapacity:
    """Whether pods of the two shapes come to the same, by content."""

    most: ResolvedShape
    least: ResolvedShape
    known: dict[DomainCapacity, bool] = field(default_factory=dict)

    def on(self, content: DomainCapacity) -> bool:
        """Whether they do on every node of a domain."""
        same = self.known.get(content)
        if same is None:
            if content.free is None:
                same = all(map(self.on, content.chunks or content.children))
            else:
                same = content.numa_state is None and max_pods(content.free, self.most) == max_pods(
                    content.free, self.least
                )
            self.known[content] = same
        return same


def merged(view: SearchSpace, kinds: tuple[PodClass, ...]) -> tuple[PodClass, ...]:
    """The kinds as one of the largest requests, where no node of the view tells them apart; else as they are.

    All of them, or none: beside pods of yet another kind it matters how much each leaves.
    """
    if view.plain:  # rules are over the kinds as they are
        return kinds
    found: list[PodClass] = []
    least: list[ResolvedShape] = []
    for kind in kinds:
        for place, other in enumerate(found):
            shapes = _both((other.shape, kind.shape), (least[place], kind.shape))
            alike = replace(kind, shape=other.shape)
            if shapes and (both := joined(other, alike)) and _same(view, *shapes):
                found[place], least[place] = replace(both, shape=shapes[0]), shapes[1]
                break
        else:
            found.append(kind)
            least.append(kind.shape)
    return tuple(found) if len(found) == 1 else kinds


def _both(
    most_of: Sequence[ResolvedShape], least_of: Sequence[ResolvedShape]
) -> tuple[ResolvedShape, ResolvedShape] | None:
    """The shapes that ask for the most and the least; None where the nodes look at more than amounts."""
    one, other = most_of
    if replace(one, requests=other.requests) != other:
        return None
    if one.preferences or one.alignment or one.claims or one.extended_claims or share_in(one.requests):
        return None
    names = {*one.requests, *other.requests}
    if any(one.requests.get(name) != other.requests.get(name) for name in names - _PLAIN):
        return None
    largest = {name: max(shape.requests.get(name, 0) for shape in most_of) for name in sorted(names)}
    smallest = {name: min(shape.requests.get(name, 0) for shape in least_of) for name in sorted(names)}
    positive = {name: amount for name, amount in smallest.items() if amount}
    return replace(one, requests=largest), replace(one, requests=positive)


def _same(view: SearchSpace, largest: ResolvedShape, smallest: ResolvedShape) -> bool:
    cache = view.base.plan_cache
    key = (tuple(largest.requests.items()), tuple(smallest.requests.items()))
    alike = cache.entry(INTERCHANGEABLE, key, lambda: _SameCapacity(largest, smallest))
    return cache.exclusively(lambda: alike.on(view.content))


_Amounts = tuple[tuple[str, int], ...]

INTERCHANGEABLE: CacheSection[tuple[_Amounts, _Amounts], _SameCapacity] = CacheSection(
    "interchangeable shapes", results=lambda alike: len(alike.known)
)
"""By the amounts of the larger and the smaller shape. Never stale: what is remembered follows from a domain's
capacity. It grows by a result for each capacity that is new."""
