"""How much a KAI queue may use: the lowest limit and the lowest quota of the queue and all queues above it.

KAI never starts a gang that requests more GPUs than the limit, nor a non-preemptible gang that requests more
of any resource than the quota (KAI-Scheduler d5bc503a, proportion/capacity_policy/). Only the conditions of
the PodGroup say why such a gang does not start. An amount of -1 means no bound; a missing quota is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.manifests.fields import mapping, text
from planner.model.errors import InputError, Where
from planner.model.schedulers import GPU, QueueBound

MAX_ABOVE = 16
"""Maximum number of ancestors of a queue that are followed; more would be a cycle."""


UNITS = {GPU: 1.0, "cpu": 1.0, "memory": 1e6}
"""KAI's units in base units: GPUs, millicores, and megabytes in bytes."""


@dataclass(slots=True)
class KaiQueues:
    """The KAI Queues that were read so far, with their bounds.

    `limits`: the GPU limit of each queue that has one. `quotas`: by resource and queue, the quota in base
    units; queues without a bound are left out. `above`: the parent of each queue, or "".
    """

    limits: dict[str, float] = field(default_factory=dict)
    quotas: dict[str, dict[str, float]] = field(default_factory=lambda: {name: {} for name in UNITS})
    above: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, item: Mapping[str, object], where: Where) -> None:
        """Adds a KAI Queue. Raises `InputError` for a malformed one."""
        spec = mapping(item.get("spec"), where.at_path("spec"))
        self.above[name] = text(spec.get("parentQueue"), where.at_path("spec.parentQueue"))
        if spec.get("resources") is None:
            return
        place = where.at_path("spec.resources")
        resources = mapping(spec.get("resources"), place)
        limit = _amount(resources, GPU, "limit", where)
        if limit is not None and limit >= 0:
            self.limits[name] = limit
        for resource, unit in UNITS.items():
            quota = _amount(resources, resource, "quota", where) or 0
            if quota >= 0:
                self.quotas[resource][name] = quota * unit

    def lowest_limits(self) -> dict[str, QueueBound]:
        """Returns by queue its own or its ancestors' lowest GPU limit, and the queue that states the limit.
        Queues to which no limit applies are left out.
        """
        return self._lowest(self.limits)

    def lowest_quotas(self) -> dict[str, dict[str, QueueBound]]:
        """Returns by queue and resource the queue's own or its ancestors' lowest quota, and the queue that
        states the quota. Queues to which no quota applies are left out.
        """
        by_resource = {resource: self._lowest(own) for resource, own in self.quotas.items()}
        return {
            queue: quotas
            for queue in sorted(self.above)
            if (quotas := {name: bounds[queue] for name, bounds in by_resource.items() if queue in bounds})
        }

    def _lowest(self, own: Mapping[str, float]) -> dict[str, QueueBound]:
        result = {}
        for name in sorted(self.above):
            bounds = [(own[queue], queue) for queue in self._with_ancestors(name) if queue in own]
            if bounds:
                result[name] = min(bounds)
        return result

    def _with_ancestors(self, name: str) -> list[str]:
        """Returns a queue and its ancestors, the nearest first."""
        line: list[str] = []
        while name and len(line) < MAX_ABOVE:
            line.append(name)
            name = self.above.get(name, "")
        return line


def _amount(resources: Mapping[str, object], resource: str, bound: str, where: Where) -> float | None:
    """Returns the "limit" or "quota" (`bound`) of a resource in `spec.resources`, in KAI's unit; None if it
    is missing. Raises `InputError` if it is no number.
    """
    amounts = mapping(resources.get(resource), where.at_path(f"spec.resources.{resource}"))
    stated = amounts.get(bound)
    if stated is None:
        return None
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        unit = "GPUs" if resource == GPU else "units"
        raise InputError(f"expected a number of {unit}", where.at_path(f"spec.resources.{resource}.{bound}"))
    return float(stated)
