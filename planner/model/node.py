"""Nodes as the planner sees them: labels, taints and allocatable amounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Taint
from planner.model.resources import PRODUCT_LABEL, Resources

_SHARED = "-SHARED"


@dataclass(frozen=True, slots=True)
class Node:
    """A node: labels, taints, allocatable amounts (base units), and whether it is cordoned and ready."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Resources = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    ready: bool = True
    pending: Resources = field(default_factory=dict)
    """Amounts that the node will offer in addition after a MIG reconfiguration that is in progress."""


def divided(labels: Mapping[str, str]) -> bool:
    """Reports whether one unit of the node's GPU resource is a part of a GPU: a MIG device (strategy single)
    or a time slice.
    """
    product = labels.get(PRODUCT_LABEL, "")
    return "-MIG-" in product or product.endswith(_SHARED)
