"""Relaxation of preferred levels: each is first searched as a required level, then relaxed step by step.

For example, in a topology row > rack > host, a gang that prefers the host and requires the row is searched
with the required level host, then rack, then row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

from planner.model.pod_class import PodClass, merged
from planner.model.topology import ROOT
from planner.request.topology_request import TopologyRequest

_MAX_STEPS = 32
"""Maximum number of level combinations that are searched, without the fully relaxed one, which is added."""


_MAX_ALONE = 3
"""Maximum number of pod classes that are relaxed independently of each other. The number of combinations is
the product of the numbers of levels of all these classes.
"""


def relaxations(request: TopologyRequest) -> list[tuple[PodClass, ...]]:
    """Returns the pod classes once for each combination of levels: first with the preferred levels as
    required, then relaxed step by step, at last with the required levels only.

    Combinations with fewer steps come first; with the same number of steps, later pod classes are relaxed
    first. Up to three classes that prefer a level are relaxed independently. If there are more, classes with
    equal levels are relaxed together, because the number of combinations grows exponentially with the number
    of classes.
    """
    if all(pod_class.preferred == ROOT for pod_class in request.pod_classes):
        return [merged(request.pod_classes)]
    pairs = [(pod_class.required, pod_class.preferred) for pod_class in request.pod_classes]
    each_alone = sum(len(_ladder(*pair)) > 1 for pair in pairs) <= _MAX_ALONE
    # For each class, the index of the class with which it is relaxed: its own, or the first of equal levels.
    leaders = list(range(len(pairs))) if each_alone else [pairs.index(pair) for pair in pairs]
    ladders = {leader: _ladder(*pairs[leader]) for leader in leaders}
    steps = sorted(product(*(range(len(rungs)) for rungs in ladders.values())), key=lambda s: (sum(s), s))
    tried_steps = [*steps[:_MAX_STEPS], *steps[-1:][: len(steps) > _MAX_STEPS]]
    relaxed: list[tuple[PodClass, ...]] = []
    for step in tried_steps:
        levels = {leader: ladders[leader][rung] for leader, rung in zip(ladders, step, strict=True)}
        pod_classes = _relaxed(request.pod_classes, [levels[leader] for leader in leaders])
        if pod_classes not in relaxed:
            relaxed.append(pod_classes)
    return relaxed


def _ladder(required: int, preferred: int) -> list[int]:
    return [*range(preferred, required, -1), required]


def _relaxed(pod_classes: Iterable[PodClass], levels: Sequence[int]) -> tuple[PodClass, ...]:
    return merged(
        replace(k, required=level, preferred=ROOT) for k, level in zip(pod_classes, levels, strict=True)
    )
