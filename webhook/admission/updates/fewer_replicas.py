"""Warns, with both numbers, if fewer pods of an object fit because policies raised their requests. Pure.

Pods are counted on empty nodes that the author's selectors, required affinity and tolerations allow. Nodes
that policies or the plan exclude by affinity are not counted at all, because that is not due to requests. If
the raised requests stay within one GPU's share of the node, as many pods fit as there are GPUs, and there is
no warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.pod import PodShape
from planner.model.quantity import show
from planner.model.resources import Resources
from planner.node.node_groups import NodeGroup
from planner.node.runtime_class import RuntimeClasses
from webhook.jsontools.path import find
from webhook.workloads import Workload

Json = Mapping[str, Any]


_MOST_PODS = 10**9
"""The number of pods that fit if they request nothing; in practice every node limits its number of pods."""


def fewer_replicas(
    before: Json,
    after: Json,
    workload: Workload,
    kinds: Sequence[NodeGroup],
    runtime_classes: RuntimeClasses,
) -> list[str]:
    """Returns a sentence for each pod template of which fewer pods fit on empty nodes after the policies than
    before.

    `before`, `after`: the object before and after the policies. `kinds`: the cluster's nodes, grouped.
    `runtime_classes`: what the API server adds to the pods that it creates."""
    sentences: list[str] = []
    for template in workload.templates:
        written, changed = find(before, template.spec_path), find(after, template.spec_path)
        if isinstance(written, Mapping) and isinstance(changed, Mapping) and written is not changed:
            sentences += _warnings_of(written, changed, kinds, template.pod_set, runtime_classes)
    return sentences


def _warnings_of(
    written: Json,
    changed: Json,
    kinds: Sequence[NodeGroup],
    pod_set: str,
    runtime_classes: RuntimeClasses,
) -> Iterator[str]:
    try:
        stated, stated_after = shape_of(written, Where()), shape_of(changed, Where())
    except ValueError:
        return  # malformed: the API server refuses it in its own words
    shape, after = runtime_classes.admitted(stated), runtime_classes.admitted(stated_after)
    requests = after.requests
    # Matching labels is expensive, so it is done only if some kind of node takes fewer pods, which is rare.
    if not any(_pods(kind, requests) < _pods(kind, shape.requests) for kind in kinds):
        return
    fitting = [(kind, kind.admitting(shape)) for kind in kinds if kind.takes(shape) and kind.admits(after)]
    pods = sum(count * _pods(kind, shape.requests) for kind, count in fitting)
    left = sum(count * _pods(kind, requests) for kind, count in fitting)
    if left < pods:
        who = f"pods of {pod_set}" if pod_set else "such pods"
        yield (
            f"{left} {who} fit on the nodes that could take them, when empty, where {pods} would as they "
            f"were written: policies raised {_steps(stated, stated_after)}. What would work: limits "
            "nearer to what the pods need"
        )


def _pods(kind: NodeGroup, requests: Resources) -> int:
    """Returns how many pods with these requests fit on one empty node of this kind."""
    return min(
        (kind.allocatable.get(name, 0) // amount for name, amount in requests.items() if amount > 0),
        default=_MOST_PODS,
    )


def _steps(stated: PodShape, stated_after: PodShape) -> str:
    """Returns the raised requests in words, as templates state them: without the overhead of a class."""
    before = stated.requests
    return ", ".join(
        f"{name} from {show(name, before.get(name, 0))} to {show(name, amount)}"
        for name, amount in stated_after.requests.items()
        if amount > before.get(name, 0)
    )
