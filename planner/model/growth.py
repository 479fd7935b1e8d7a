"""Node pools that an autoscaler may enlarge: the properties of a new node, and how many may be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Taint
from planner.model.resources import Resources

UNBOUNDED = 2**31 - 1
"""The number of nodes that may be added if no maximum is stated: more than any gang needs."""


@dataclass(frozen=True, slots=True)
class GrowingPool:
    """A node pool that an autoscaler may enlarge, also from zero nodes.

    `max_added`: how many nodes may be added to the `present` ones. `capacity`: the capacity of one node in
    base units; None if it is not known: a new node is then assumed to fit exactly one pod of any size.
    `choices`: the possible values of each label whose value the autoscaler chooses for the pods, () for any
    value; `free`: prefixes of further labels for which it may choose any value. `limits`: the maximum total
    capacity of all added nodes.
    """

    name: str
    max_added: int = UNBOUNDED
    present: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    capacity: Resources | None = None
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    limits: Resources = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AutoscalerGroup:
    """A node group in the Cluster Autoscaler's status, which does not state the labels of its nodes."""

    name: str
    present: int
    max_size: int
