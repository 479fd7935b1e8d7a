"""The priority of pods: what their PriorityClass says, and nothing that they state themselves.

Source: Kubernetes' admission plugin Priority (plugin/pkg/admission/priority), which runs before any webhook.
A pod that names no class gets the globalDefault one, of several the lowest, or 0 where there is none; a class
that is not there, or a `spec.priority` that differs from the class, has the pod refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.podgroup import PodGroup

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every API server creates, and creates again after a deletion."""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass. `is_default`: pods that name no class get this one."""

    name: str
    value: int
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class PriorityClasses:
    """The PriorityClasses of a cluster by name; empty if none were read: every cluster has system classes."""

    by_name: Mapping[str, PriorityClass] = field(default_factory=dict)

    def value(self, name: str) -> int | None:
        """The priority of pods that name this class, "" for none; None for a class that is not there."""
        if name:
            priority_class = self.by_name.get(name)
            return priority_class.value if priority_class is not None else SYSTEM_CLASSES.get(name)
        return min(
            (priority_class.value for priority_class in self.by_name.values() if priority_class.is_default),
            default=0,
        )


NO_CLASSES = PriorityClasses()


def priority_of(classes: PriorityClasses, group: PodGroup) -> int:
    """The highest priority among a gang's pods; a class that is not there gives 0."""
    class_names = {pod_set.shape.priority_class for pod_set in group.pod_sets}
    return max((classes.value(name) or 0 for name in class_names), default=0)
