"""Decides whether a pod may be on a node, apart from capacity: selectors, required node affinity, taints.

The rules are those of kube-scheduler's NodeAffinity and TaintToleration plugins: terms are ORed, the
requirements inside a term ANDed, an empty term matches nothing, and only NoSchedule and NoExecute taints keep
a pod away.
"""

from __future__ import annotations

from typing import Protocol

from planner.model.effort.deadline import poll
from planner.model.labels import (
    ANY,
    CORDON,
    NODE_NAME_FIELD,
    PASSING_TAINTS,
    Requirement,
    Taint,
    Term,
    holds,
    selects,
    tolerates,
)
from planner.model.node import _SHARED, Node, divided
from planner.model.pod import PodShape
from planner.model.resolved import NodeExclusion, ResolvedShape
from planner.model.resources import GPU, PRODUCT_LABEL, SHARED_GPU
from planner.model.words import listed

SELECTOR, AFFINITY, TAINT = "node selector ", "node affinity ", "taint "
"""Prefixes of obstacles that name a label, a requirement or a taint."""


def term_matches(term: Term, node: Node) -> bool:
    """Reports whether the node meets every requirement of the term; an empty term matches no node."""
    return bool(term) and all(holds(r, _value(r, node)) for r in term)


def _value(requirement: Requirement, node: Node) -> str | None:
    return node.name if requirement.key == NODE_NAME_FIELD else node.labels.get(requirement.key)


def affinity_allows(shape: PodShape, node: Node) -> bool:
    """Reports whether the pod's node selector and required node affinity allow the node."""
    return selects(shape.node_selector, node.labels) and _affinity_matches(shape, node)


def _affinity_matches(shape: PodShape, node: Node) -> bool:
    if not shape.affinity:
        return True
    poll("search")  # there may be thousands of requirements, for each kind of nodes
    return any(term_matches(term, node) for term in shape.affinity)


def permits(shape: ResolvedShape, node: Node) -> bool:
    """Reports whether the pod's node selector, required node affinity and permanent exclusions (of volumes)
    allow the node. Exclusions that may end by themselves (`passing`) are ignored.
    """
    return affinity_allows(shape, node) and not any(
        is_excluded(exclusion, node) for exclusion in shape.exclusions if not exclusion.passing
    )


def is_excluded(exclusion: NodeExclusion, node: Node) -> bool:
    """Reports whether the exclusion keeps pods from the node."""
    value = node.name if exclusion.key == NODE_NAME_FIELD else node.labels.get(exclusion.key)
    inside = bool(value) and (value in exclusion.values or ANY in exclusion.values)
    return inside != exclusion.inside


def untolerated(shape: PodShape, taints: tuple[Taint, ...], *, passing: bool) -> Taint | None:
    """Returns the first taint that keeps the pod away, else None. `passing`: temporary taints count, too."""
    for taint in taints:
        if taint.effect == "PreferNoSchedule" or (not passing and taint.key in PASSING_TAINTS):
            continue
        if not any(tolerates(toleration, taint) for toleration in shape.tolerations):
            return taint
    return None


def label_obstacle(shape: ResolvedShape, node: Node, *, linked: bool = False) -> str:
    """Returns the obstacle that follows from the node's labels and the shape's exclusions; ignores taints,
    cordon and readiness. `linked`: the pod's gang requests a topology.
    """
    return (
        selector_obstacle(shape, node)
        or next((exclusion.cause for exclusion in shape.exclusions if is_excluded(exclusion, node)), "")
        or divided_gpu_obstacle(shape, node, linked=linked)
    )


def selector_obstacle(shape: PodShape, node: Node) -> str:
    """Returns the obstacle that follows from the pod's own node selector or required node affinity.

    The text names the first label or requirement that the node does not meet. With several affinity terms it
    names none of them: the text would differ from node to node, but the search treats nodes with the same
    obstacle as one.
    """
    for key, value in shape.node_selector.items():
        if node.labels.get(key) != value:
            return f"{SELECTOR}{key}={value}"
    if _affinity_matches(shape, node):
        return ""
    unmet = unmet_requirement(shape, node)
    return affinity_cause(unmet) if unmet else f"{AFFINITY}none of {len(shape.affinity)} terms"


def affinity_cause(unmet: Requirement) -> str:
    """Returns the obstacle of an unmet requirement: its key, its operator and the first of its values."""
    values = f" [{listed(unmet.values, 3)}]" if unmet.values else ""
    return f"{AFFINITY}{unmet.key} {unmet.operator}{values}"


def unmet_requirement(shape: PodShape, node: Node) -> Requirement | None:
    """Returns the first requirement of the pod's only affinity term that the node does not meet.

    None if the pod does not have exactly one term, or if the node meets it.
    """
    if len(shape.affinity) != 1:
        return None
    return next((r for r in shape.affinity[0] if not holds(r, _value(r, node))), None)


def divided_gpu_obstacle(shape: PodShape, node: Node, *, linked: bool = False) -> str:
    """Returns the obstacle if the node offers parts of GPUs, and they are not sufficient for the pod.

    A node whose product contains `-MIG-` has MIG instances as `nvidia.com/gpu`; one with `-SHARED` has time
    slices. The MIG instances of a pod or gang have no link between them, and a pod gets one time slice, even
    if it requests more (NVIDIA's device plugin, documentation of MIG strategy single and of sharing).
    """
    if shape.requests.get(SHARED_GPU, 0) > 1:
        return "GPU shared by time: one a pod"
    gpus = shape.requests.get(GPU, 0)
    if gpus and divided(node.labels):
        if node.labels[PRODUCT_LABEL].endswith(_SHARED):
            return "GPU shared by time: one a pod" if gpus > 1 else ""
        if gpus > 1:
            return "GPUs split by MIG: one instance a pod"
        if linked:
            return "GPUs split by MIG: no link between instances"
    return ""


class NodeCondition(Protocol):
    """The condition of a node: a `Node`, or the capacity of a host in a tree."""

    @property
    def ready(self) -> bool: ...

    @property
    def cordoned(self) -> bool: ...

    @property
    def taints(self) -> tuple[Taint, ...]: ...


def condition_obstacle(shape: PodShape, condition: NodeCondition, *, passing: bool = True) -> str:
    """Returns the obstacle that follows from readiness, cordon or taints. `passing`: temporary taints count,
    too.
    """
    if not condition.ready:
        return "not ready"
    if condition.cordoned and not any(tolerates(t, CORDON) for t in shape.tolerations):
        return "cordoned"
    return taint_obstacle(shape, condition.taints, passing=passing) if condition.taints else ""


def taint_obstacle(shape: PodShape, taints: tuple[Taint, ...], *, passing: bool) -> str:
    """Returns the obstacle of the first taint that the pod does not tolerate."""
    taint = untolerated(shape, taints, passing=passing)
    return "" if taint is None else f"{TAINT}{taint}"


def obstacle(shape: PodShape, node: Node, *, occupied: bool) -> str:
    """Returns the obstacle that keeps the pod from the node; ignores capacity, and the exclusions of a
    resolved shape.

    `occupied` False: as in the empty cluster, so cordon, readiness and temporary taints do not count.
    """
    if why := selector_obstacle(shape, node) or divided_gpu_obstacle(shape, node):
        return why
    return condition_obstacle(shape, node) if occupied else taint_obstacle(shape, node.taints, passing=False)


def preference(shape: PodShape, node: Node) -> int:
    """Returns the sum of the weights of the pod's preferred terms that the node matches."""
    return sum(weight for weight, term in shape.preferences if term_matches(term, node))
