"""The unit of a move: a gang or a single pod, the cost of moving it, and its new place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.model.cached_property import cached_property
from planner.model.pod import BoundPod
from planner.model.podgroup import Assignment, PodGroup
from planner.model.reservation import Reservation

LOWEST_PRIORITY = -(2**31)
"""The lowest priority that a pod can have (int32)."""


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """The cost of a set of moves, compared field by field, as kube-scheduler compares victims of preemption.

    `highest`: the highest priority of a pod. `priorities`: the sum of the pods' priorities, each raised by
    2**31 to be 0 or more, so that fewer pods are cheaper. `lost`: the lost work, in GPU seconds since the
    pods started (kube-scheduler instead compares the latest start). Source: pickOneNodeForPreemption in
    pkg/scheduler/framework/preemption.
    """

    highest: int = LOWEST_PRIORITY
    priorities: int = 0
    lost: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            max(self.highest, other.highest), self.priorities + other.priorities, self.lost + other.lost
        )


NO_COST = Cost()
"""The cost of an empty set of moves."""


@dataclass(frozen=True)
class Movable:
    """A gang or a single pod that moves as a unit.

    `group`: the PodGroup that is planned again; its name is that of the gang or pod. `pods`: all bound pods.
    `priority`: the highest priority of a pod. `age`: seconds since the oldest pod started. `kept_because`:
    why the movable may not be moved, as the end of a sentence that begins with its name; "" if it may.
    `opted_in`: the owner has stated that the pods may be restarted. `maker`: for a single pod, the UID of the
    controller that creates it again, usually under another name; "" for a gang. `kept_for_now`: the reason in
    `kept_because` is a PodDisruptionBudget that may allow the move later.
    """

    group: PodGroup
    pods: tuple[BoundPod, ...]
    priority: int = 0
    age: float = 0.0
    kept_because: str = ""
    opted_in: bool = False
    maker: str = ""
    kept_for_now: bool = False

    @property
    def name(self) -> str:
        """NAMESPACE/KIND/NAME."""
        return self.group.name

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes on which the movable has pods."""
        return frozenset(pod.node for pod in self.pods)

    @cached_property
    def cost(self) -> Cost:
        """The cost of moving this movable alone. Each pod counts with the movable's highest priority."""
        raised = self.priority - LOWEST_PRIORITY
        return Cost(self.priority, len(self.pods) * raised, int(self.group.gpus * self.age))


@dataclass(frozen=True, slots=True)
class Relocation:
    """A movable and its new place. `reservation`: the reservation that it gets there."""

    movable: Movable
    reservation: Reservation

    @property
    def to(self) -> tuple[Assignment, ...]:
        """The number of the movable's pods on each node of the new place."""
        return self.reservation.assignments


def cost_of(movables: Iterable[Movable]) -> Cost:
    """Returns the cost of moving all of these movables."""
    return sum((movable.cost for movable in movables), NO_COST)
