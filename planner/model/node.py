"""Nodes as the planner sees them: labels, taints and allocatable amounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Taint
from planner.model.resources import PRODUCT_LABEL, Resources

_SHARED = "-SHARED"


@dataclass(frozen=True, slots=True)
class Node:
    """A node: labels, taints, allocatable amounts (base units) and whether it takes pods now."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Resources = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    ready: bool = True
    pending: Resources = field(default_factory=dict)
    """Amounts that the node will offer in addition once a running MIG reconfiguration has succeeded."""


def divided(labels: Mapping[str, str]) -> bool:
    """Whether the node's GPU resource means parts of GPUs: MIG instances (strategy single) or time slices."""
    product = labels.get(PRODUCT_LABEL, "")
    return "-MIG-" in product or product.endswith(_SHARED)
