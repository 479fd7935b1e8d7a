"""Labels and taints, and what selects by them: requirements, terms, selectors, tolerations.

The rules are those of apimachinery's label selectors and of kube-scheduler's NodeAffinity and TaintToleration
plugins: the requirements of a term are ANDed; NotIn and DoesNotExist also hold where the label is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint; only NoSchedule and NoExecute keep pods away."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        """As kubectl writes it: KEY=VALUE:EFFECT."""
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with `Exists` tolerates everything, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One `matchExpressions` or `matchFields` entry: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


Term = tuple[Requirement, ...]
"""Requirements that must all hold (ANDed)."""


NODE_NAME_FIELD = "metadata.name"
"""The only key that `matchFields` allows; a requirement with this key matches the node's name."""


ANY = "*"
"""Among the values of a `NodeExclusion`: any value of the label."""


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
"""Taints for a node's current condition, not for its purpose; the cluster "when empty" has none of them."""


RESERVED_TAINT = "bayplan.dev/reserved"
"""Bayplan's own taint, for the nodes of a domain that a gang holds whole, where the taint fence is on. The
planner ignores it when it reads nodes, because the ledger has the same information."""


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


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether the labels carry every pair of an equality selector."""
    return all(labels.get(key) == value for key, value in selector.items())


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
