"""What a namespace allows: LimitRanges and ResourceQuotas (core/v1). Pure.

Amounts are in base units. A LimitRange's bounds are those of its types Container and Pod; what a quota has
left is its `hard` less its `used`, as the API server last counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner import quantity
from planner.errors import Where
from planner.quantity import Resources
from planner.reading import mapping, maps, text

_TRACKED = ("requests.", "limits.")


@dataclass(frozen=True, slots=True)
class Bound:
    """One entry of a LimitRange: `type` is Container or Pod (others bound no pod)."""

    name: str
    type: str
    least: Resources
    most: Resources


@dataclass(frozen=True, slots=True)
class Quota:
    """What a ResourceQuota has left, by its own names ("requests.cpu", "limits.memory", "pods")."""

    name: str
    hard: Resources
    left: Resources


def bounds_from(item: Mapping[str, object], where: Where) -> tuple[Bound, ...]:
    """The entries of a LimitRange. Raises `InputError` for a malformed one."""
    name = text(mapping(item.get("metadata"), where.at("metadata")).get("name"), where.at("metadata.name"))
    spec = mapping(item.get("spec"), where.at("spec"))
    return tuple(
        Bound(
            name,
            text(entry.get("type"), where.at(f"spec.limits[{index}].type")),
            quantity.amounts(entry.get("min"), where.at(f"spec.limits[{index}].min"), up=True),
            quantity.amounts(entry.get("max"), where.at(f"spec.limits[{index}].max"), up=False),
        )
        for index, entry in enumerate(maps(spec.get("limits"), where.at("spec.limits")))
    )


def quota_from(item: Mapping[str, object], where: Where) -> Quota | None:
    """A ResourceQuota, or None for one that counts only some pods (scopes). Raises `InputError`."""
    name = text(mapping(item.get("metadata"), where.at("metadata")).get("name"), where.at("metadata.name"))
    spec = mapping(item.get("spec"), where.at("spec"))
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    status = mapping(item.get("status"), where.at("status"))
    hard = _counted(spec.get("hard"), where.at("spec.hard"), up=False)
    used = _counted(status.get("used"), where.at("status.used"), up=True)
    return Quota(name, hard, {key: max(0, amount - used.get(key, 0)) for key, amount in hard.items()})


def _counted(values: object, where: Where, *, up: bool) -> dict[str, int]:
    """By the quota's names; `cpu` and `memory` alone mean requests."""
    found: dict[str, int] = {}
    for key, value in mapping(values, where).items():
        resource = next((key.removeprefix(prefix) for prefix in _TRACKED if key.startswith(prefix)), key)
        name = f"requests.{key}" if key in ("cpu", "memory") else key
        found[name] = quantity.amount(resource, value, where.at(f"{where.field}.{key}"), up=up)
    return found
