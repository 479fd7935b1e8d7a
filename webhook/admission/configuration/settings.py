"""What a cluster's administrator chose: the mode of a namespace, and what its gangs hold by default. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from planner.cluster.snapshot import Snapshot
from planner.model.growth import GrowingPool
from planner.planning.defragmentation.limits import NO_MOVES, MoveLimits
from webhook.placement.fair_order import FAIR_SECONDS, QueueRules
from webhook.placement.hold_limits import NO_LIMITS, HoldLimits
from webhook.policy.model.packs import AUTO
from webhook.workloads.options import MODE, NOBODY_CHOSE, ReserveDefaults

Mode = Literal["enforce", "warn", "audit", "off"]


MODES: tuple[Mode, ...] = get_args(Mode)
"""`enforce`: patches, refusals, reservations. `warn`: none of them, but kubectl shows what would be. `audit`:
the same without the warnings. `off`: never called."""


def mode_label(namespace: Mapping[str, Any] | None) -> object:
    """The label `bayplan.dev/mode` of a Namespace object, a mode or not; None where it has none."""
    metadata = (namespace or {}).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels.get(MODE) if isinstance(labels, Mapping) else None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force for one namespace.

    `mode`: that of a namespace without the label `bayplan.dev/mode`. `reserve`: what a gang holds whose
    workload does not say. `growing`: node pools that may grow, beside those whose autoscaler says so itself.
    `resources_tolerated`: whether the API server adds tolerations for extended resources; None: the nodes
    tell. `holds`: how much its gangs may hold. `unbound_seconds`: for how long a place is kept of which no
    pod is on a node; 0 is for ever. `fair_seconds` and `weight`: how far the queue is ordered by what
    namespaces have, and what this one's counts (`placement.fair_order`). `pack`: for which scheduling system
    policies write. `moves`: what is moved for its gangs that wait, and `every` for the cluster.
    """

    mode: Mode = "enforce"
    reserve: ReserveDefaults = NOBODY_CHOSE
    growing: tuple[GrowingPool, ...] = ()
    resources_tolerated: bool | None = None
    holds: HoldLimits = NO_LIMITS
    unbound_seconds: int = 1800
    fair_seconds: float = FAIR_SECONDS
    weight: float = 1.0
    pack: str = AUTO
    moves: MoveLimits = NO_MOVES

    def of(self, snapshot: Snapshot) -> Snapshot:
        """The cluster with what these settings say of it."""
        return snapshot.as_told(self.growing, resources_tolerated=self.resources_tolerated)


DEFAULT_SETTINGS = Settings()


def default_settings(namespace: str) -> Settings:
    """The settings where nobody chose any."""
    return DEFAULT_SETTINGS


def everywhere(settings: Settings) -> Callable[[str], Settings]:
    """The same settings for every namespace."""
    return lambda namespace: settings


def queue_rules(settings: Callable[[str], Settings], now: float) -> QueueRules:
    """The rules of the queue's order by the settings of each namespace; `now` in seconds since the epoch."""
    return QueueRules(now, settings("").fair_seconds, lambda namespace: settings(namespace).weight)
