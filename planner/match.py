"""May this pod be on that node, capacity aside: selectors, required node affinity, taints.

The rules are those of kube-scheduler's NodeAffinity and TaintToleration plugins: terms are ORed, the
requirements inside a term ANDed, an empty term matches nothing, and only NoSchedule and NoExecute taints
keep a pod away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.node import Node, Taint
from planner.podgroup import Bar, PodShape, Requirement, Term, Toleration

NODE_NAME_FIELD = "metadata.name"
"""The one key of `matchFields`; a requirement with this key looks at the node's name."""

ANY = "*"
"""Among the values of a bar: whatever value the label has."""

PASSING_TAINTS = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        "not-ready",
        "unreachable",
        "unschedulable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "network-unavailable",
    )
)
"""Taints that say how a node is now, not what it is for; a cluster "when empty" has none of them."""

RESERVED_TAINT = "bayplan.dev/reserved"
"""Our own: on the nodes of a domain that a gang holds whole, where domains are fenced by taint. Nodes are
read without it, for the book of reservations says the same."""

GPU = "nvidia.com/gpu"
SHARED_GPU = "nvidia.com/gpu.shared"
PRODUCT = "nvidia.com/gpu.product"
_SHARED = "-SHARED"

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether a label's value (None where the node lacks the label) meets a requirement."""
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return _compares(operator, value, values)


def _compares(operator: str, value: str | None, values: tuple[str, ...]) -> bool:
    try:
        left, right = int(value or "x"), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def term_matches(term: Term, node: Node) -> bool:
    """Whether every requirement of the term holds; an empty term matches nothing."""
    return bool(term) and all(
        holds(r, node.name if r.key == NODE_NAME_FIELD else node.labels.get(r.key)) for r in term
    )


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether the labels carry every pair of an equality selector."""
    return all(labels.get(key) == value for key, value in selector.items())


def affinity_matches(shape: PodShape, node: Node) -> bool:
    """Whether the required node affinity lets the pod onto the node."""
    return not shape.affinity or any(term_matches(term, node) for term in shape.affinity)


def bars(bar: Bar, node: Node) -> bool:
    """Whether other pods keep the pod from the node."""
    value = node.name if bar.key == NODE_NAME_FIELD else node.labels.get(bar.key)
    there = bool(value) and (value in bar.values or ANY in bar.values)
    return there != bar.inside


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this one toleration covers the taint.

    `Gt` and `Lt` compare whole numbers: the taint's value is above, or below, the toleration's (Kubernetes
    1.35 and later, KEP-5471); where either is no whole number they cover nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("Gt", "Lt"):
        return _compares(toleration.operator, _integer(taint.value), (_integer(toleration.value),))
    return bool(toleration.key) and toleration.value == taint.value


def _integer(value: str) -> str:
    """A whole number as the API writes it; "" for anything else, a leading zero or plus sign included."""
    return value if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", value, re.ASCII) else ""


def untolerated(shape: PodShape, taints: tuple[Taint, ...], *, passing: bool) -> Taint | None:
    """The first taint that keeps the pod away, or None. `passing`: look at passing taints too."""
    for taint in taints:
        if taint.effect == "PreferNoSchedule" or (not passing and taint.key in PASSING_TAINTS):
            continue
        if not any(tolerates(toleration, taint) for toleration in shape.tolerations):
            return taint
    return None


def divided(labels: Mapping[str, str]) -> bool:
    """Whether the node's GPU resource gives parts of GPUs: MIG instances (strategy single) or time slices."""
    product = labels.get(PRODUCT, "")
    return "-MIG-" in product or product.endswith(_SHARED)


def label_obstacle(shape: PodShape, node: Node, *, linked: bool = False) -> str:
    """Why the node's labels keep the pod away for ever, or "". `linked`: its gang asks for a topology.

    A node whose product says `-MIG-` gives MIG instances as `nvidia.com/gpu`, one `-SHARED` time slices of
    GPUs. A pod's instances have no link between them, nor have those of a gang; and of time slices a pod
    gets one, however many it asks for (NVIDIA's device plugin, facts of MIG strategy single and of sharing).
    """
    if shape.node_selector and not selects(shape.node_selector, node.labels):
        return "node selector"
    if not affinity_matches(shape, node):
        return "node affinity"
    for bar in shape.barred:
        if bars(bar, node):
            return bar.cause
    if shape.requests.get(SHARED_GPU, 0) > 1:
        return "GPU shared by time: one a pod"
    gpus = shape.requests.get(GPU, 0)
    if gpus and divided(node.labels):
        if node.labels[PRODUCT].endswith(_SHARED):
            return "GPU shared by time: one a pod" if gpus > 1 else ""
        if gpus > 1:
            return "GPUs split by MIG: one instance a pod"
        if linked:
            return "GPUs split by MIG: no link between instances"
    return ""


def condition_obstacle(
    shape: PodShape, *, ready: bool, cordoned: bool, taints: tuple[Taint, ...], passing: bool = True
) -> str:
    """Why a node in this condition does not take the pod, or ""; `passing`: look at passing taints too."""
    if not ready:
        return "not ready"
    if cordoned and not any(tolerates(t, CORDON) for t in shape.tolerations):
        return "cordoned"
    if taints and (taint := untolerated(shape, taints, passing=passing)) is not None:
        return f"taint {taint.key}"
    return ""


def obstacle(shape: PodShape, node: Node, *, now: bool) -> str:
    """Why the pod may not be on the node whatever its capacity, or "" where it may.

    `now` False asks whether it may ever: cordons, readiness and passing taints are then left aside.
    """
    return label_obstacle(shape, node) or condition_obstacle(
        shape,
        ready=node.ready or not now,
        cordoned=node.cordoned and now,
        taints=node.taints,
        passing=now,
    )


def preference(shape: PodShape, node: Node) -> int:
    """The summed weights of the preferred terms that the node meets."""
    return sum(weight for weight, term in shape.preferences if term_matches(term, node))
