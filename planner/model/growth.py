"""Node pools that an autoscaler may enlarge: what one more node of each is like, and how many may come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Taint
from planner.model.resources import Resources

UNBOUNDED = 2**31 - 1
"""More nodes than any gang needs: nobody states how many may come."""


@dataclass(frozen=True, slots=True)
class GrowingPool:
    """A pool of nodes that may grow, from no node at all.

    `max_added`: how many nodes may come beside the `present` ones. `capacity`: what one node has, in base
    units; None where nobody tells: then it is taken to hold one pod, whatever that asks for. `choices`:
    labels of which the autoscaler chooses a value as pods ask, () for any value; `free`: how the labels begin
    of which it may choose any. `limits`: how much all further nodes may have together.
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
    """A group of the Cluster Autoscaler's status: what its nodes are like, only nodes of it tell."""

    name: str
    present: int
    max_size: int
