"""What KAI lets a queue use: its own limit and quota, or the lowest of those above it.

A gang that asks for more GPUs than the limit is never started, nor is one of which KAI evicts no pod and that
asks for more of anything than the quota (KAI-Scheduler d5bc503a, proportion/capacity_policy/). Nobody says so
but the conditions of its PodGroup. An amount of -1 is no bound; a quota that is not stated is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.manifests.fields import mapping, text
from planner.model.errors import InputError, Where
from planner.model.schedulers import GPU, QueueBound

MAX_ABOVE = 16
"""Queues above each other that are looked at; more would be a ring."""


UNITS = {GPU: 1.0, "cpu": 1.0, "memory": 1e6}
"""KAI's units in base units: GPUs, thousandths of a CPU, and megabytes in bytes."""


@dataclass(slots=True)
class KaiQueues:
    """`limits`: by queue its own limit in GPUs, where it has any; `quotas`: by resource and queue its own
    quota in base units, likewise; `above`: by queue its parent, or ""."""

    limits: dict[str, float] = field(default_factory=dict)
    quotas: dict[str, dict[str, float]] = field(default_factory=lambda: {name: {} for name in UNITS})
    above: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, item: Mapping[str, object], where: Where) -> None:
        """A Queue of KAI's. Raises `InputError` for a malformed one."""
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
        """By queue the lowest limit in GPUs that holds for it, and whose it is; none for one without any."""
        return self._lowest(self.limits)

    def lowest_quotas(self) -> dict[str, dict[str, QueueBound]]:
        """The same of quotas, by queue and resource."""
        by_resource = {resource: self._lowest(own) for resource, own in self.quotas.items()}
        return {
            queue: quotas
            for queue in sorted(self.above)
            if (quotas := {name: bounds[queue] for name, bounds in by_resource.items() if queue in bounds})
        }

    def _lowest(self, own: Mapping[str, float]) -> dict[str, QueueBound]:
        result = {}
        for name in sorted(self.above):
            bounds = [(own[queue], queue) for queue in self._line(name) if queue in own]
            if bounds:
                result[name] = min(bounds)
        return result

    def _line(self, name: str) -> list[str]:
        """A queue and those above it, the nearest first."""
        line: list[str] = []
        while name and len(line) < MAX_ABOVE:
            line.append(name)
            name = self.above.get(name, "")
        return line


def _amount(resources: Mapping[str, object], resource: str, bound: str, where: Where) -> float | None:
    """A number in `spec.resources`; None where it is not stated. Raises `InputError` for anything else."""
    amounts = mapping(resources.get(resource), where.at_path(f"spec.resources.{resource}"))
    stated = amounts.get(bound)
    if stated is None:
        return None
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        unit = "GPUs" if resource == GPU else "units"
        raise InputError(f"expected a number of {unit}", where.at_path(f"spec.resources.{resource}.{bound}"))
    return float(stated)
