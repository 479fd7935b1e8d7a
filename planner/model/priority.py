"""The priority of pods, which only their PriorityClass determines.

Source: Kubernetes' admission plugin Priority (plugin/pkg/admission/priority), which runs before any webhook.
A pod without a class gets the globalDefault class (if there are several, the lowest), or priority 0 if there
is none. A pod is refused if its class does not exist, or if its `spec.priority` differs from the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.podgroup import PodGroup

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every API server creates, and recreates if they are deleted."""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass. `is_default`: pods that name no class get this one."""

    name: str
    value: int
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class PriorityClasses:
    """The PriorityClasses of a cluster by name. Every cluster has some, so empty means: none were read."""

    by_name: Mapping[str, PriorityClass] = field(default_factory=dict)

    def value(self, name: str) -> int | None:
        """Returns the priority of pods of this class ("" for no class), None if the class does not exist."""
        if name:
            priority_class = self.by_name.get(name)
            return priority_class.value if priority_class is not None else SYSTEM_CLASSES.get(name)
        return min(
            (priority_class.value for priority_class in self.by_name.values() if priority_class.is_default),
            default=0,
        )


NO_CLASSES = PriorityClasses()


def priority_of(classes: PriorityClasses, group: PodGroup) -> int:
    """Returns the highest priority among a gang's pods; a class that does not exist counts as 0."""
    class_names = {pod_set.shape.priority_class for pod_set in group.pod_sets}
    return max((classes.value(name) or 0 for name in class_names), default=0)
