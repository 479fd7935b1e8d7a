"""Taints, and the conditions on labels and taints: requirements, terms, selectors, tolerations.

The rules are those of apimachinery's label selectors and of kube-scheduler's NodeAffinity and TaintToleration
plugins: the requirements of a term are ANDed; NotIn and DoesNotExist also hold if the label is missing.
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
        """Returns the taint as kubectl writes it: KEY=VALUE:EFFECT."""
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with `Exists` tolerates every taint, an empty effect every effect."""

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
"""The only key that `matchFields` allows; a requirement with this key is compared with the node's name."""


ANY = "*"
"""A value in a `NodeExclusion` (planner.model.resolved) that stands for any value of the label."""


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
"""Taints that express the current condition of a node; the planner ignores them in the empty cluster."""


RESERVED_TAINT = "bayplan.dev/reserved"
"""Bayplan's own taint on the nodes of a domain that a gang holds whole, if the taint fence is enabled. The
planner ignores it when it reads nodes, because the ledger has the same information."""


CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint that a pod must tolerate to be placed on a cordoned node."""


def holds(requirement: Requirement, value: str | None) -> bool:
    """Reports whether a label's value (None if the label is missing) meets a requirement."""
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
    left, right = _number(value or ""), _number(values[0] if values else "")
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _number(text: str) -> int | None:
    """Returns the number as Kubernetes reads it (ParseInt, 64 bits); None if it is none. Python alone would
    also read `1_000`, which is a valid label value, as a number.
    """
    number = int(text) if re.fullmatch(r"[+-]?0{0,60}[0-9]{1,19}", text, re.ASCII) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Reports whether the labels include every key and value of an equality selector."""
    return all(labels.get(key) == value for key, value in selector.items())


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Reports whether this one toleration covers the taint.

    A toleration with `Gt` or `Lt` (Kubernetes 1.35 and later, KEP-5471) covers the taint if the taint's value
    is greater, or less, than the toleration's; it covers no taint if one of the values is no whole number.
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
    """Returns the text if it is a whole number, "" if not; a leading zero or plus sign is not allowed."""
    return value if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", value, re.ASCII) else ""
