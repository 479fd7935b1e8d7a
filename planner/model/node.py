"""Nodes as the planner sees them: labels, taints and allocatable amounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import PASSING_TAINTS, Taint
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

    @property
    def lasting_taints(self) -> tuple[Taint, ...]:
        """The taints without those that express the current condition of the node (`PASSING_TAINTS`)."""
        if not self.taints:
            return ()
        return tuple([taint for taint in self.taints if taint.key not in PASSING_TAINTS])

    def lasts_as(self, other: Node) -> bool:
        """Reports whether two states of a node differ at most in its current condition: whether it is
        cordoned and ready, and temporary taints.
        """
        own = (self.name, self.labels, self.allocatable, self.pending, self.lasting_taints)
        return own == (other.name, other.labels, other.allocatable, other.pending, other.lasting_taints)


def divided(labels: Mapping[str, str]) -> bool:
    """Reports whether one unit of the node's GPU resource is a part of a GPU: a MIG device (strategy single)
    or a time slice.
    """
    product = labels.get(PRODUCT_LABEL, "")
    return "-MIG-" in product or product.endswith(_SHARED)
