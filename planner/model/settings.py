"""Placement settings of schedulers (nod-ai's weights and limits, KAI's levels and policies); the limits of
LimitRanges and ResourceQuotas. Amounts are in base units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from planner.model.resources import Resources

WEIGHTS = {
    "resourceAvailability": 0.4,
    "topologyAlignment": 0.3,
    "domainUtilization": 0.2,
    "historicalPerformance": 0.1,
}
"""The default weights of the four scores of nod-ai's scheduler (see planner/leafspine/rules.py)."""


@dataclass(frozen=True, slots=True)
class LevelPolicy:
    """A named policy of KAI's ConfigMap: `pack` requires one domain of the level, `prefer` prefers one."""

    name: str
    weight: float
    level: str
    strategy: Literal["pack", "prefer"]


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Settings from nod-ai's and KAI's ConfigMaps.

    `weights`: the weight of each score by name; their sum is 1. `nodes_per_leaf`, `gpus_per_leaf`: how much
    of a leaf one gang may use. `aliases`: level names to label keys. `policies`: by name. `history`: by leaf
    (`planner.leafspine.history.key_of`), the average of how past gangs ended there, 0 (failed) to 1.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    nodes_per_leaf: int = 4
    gpus_per_leaf: int = 32
    limited: bool = False
    """Whether a ConfigMap states these two limits: then they are required, else only preferred."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, LevelPolicy] = field(default_factory=dict)
    history: Mapping[str, float] = field(default_factory=dict)

    def differ_only_in_history(self, other: SchedulerSettings) -> bool:
        """Reports whether all settings but the history are equal. The history may change every 30 s, and
        neither topologies nor what is computed from nodes depends on it.
        """
        return replace(self, history=other.history) == other


DEFAULTS = SchedulerSettings()


@dataclass(frozen=True, slots=True)
class Bound:
    """One entry of a LimitRange; `type` is Container or Pod, as other types do not limit pods. `requests`:
    what a container gets that does not request the resource.
    """

    name: str
    type: str
    minimum: Resources
    maximum: Resources
    requests: Resources = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota: its limits (`hard`), and `left`, which is `hard` minus `used` as the API server last
    counted it; by the quota's resource names ("requests.cpu", "limits.memory", "pods")."""

    name: str
    hard: Resources
    left: Resources
