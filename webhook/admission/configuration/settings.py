"""The settings of Bayplan that an administrator can choose for a namespace or for the cluster. Pure."""

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
from webhook.workloads.options import DEFAULT_RESERVE, MODE, ReserveDefaults

Mode = Literal["enforce", "warn", "audit", "off"]


MODES: tuple[Mode, ...] = get_args(Mode)
"""`enforce`: patches, refuses and reserves. `warn`: does none of these, but kubectl shows what `enforce`
would do. `audit`: only the audit log, reports and metrics show it. `off`: does nothing.
"""


def mode_label(namespace: Mapping[str, Any] | None) -> object:
    """Returns the value of the label `bayplan.dev/mode` of a Namespace object, valid or not; None without
    the label."""
    metadata = (namespace or {}).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels.get(MODE) if isinstance(labels, Mapping) else None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force for one namespace.

    `mode`: the mode, if the namespace has no label `bayplan.dev/mode`. `reserve`: what gangs without the
    annotation `bayplan.dev/reserve` hold. `growing`: node pools that can grow, in addition to those that an
    autoscaler reports. `resources_tolerated`: whether the API server adds tolerations for extended resources;
    None to derive it from the nodes. `holds`: limits of what the namespace's gangs may hold.
    `unbound_seconds`: for how long a reservation is kept while no pod of its gang is bound; 0 for ever.
    `fair_seconds`, `weight`: how strongly the queue favours namespaces that hold little, and the weight of
    this one (`placement.fair_order`). `pack`: the scheduling system for which policies write. `moves`: limits
    of moving other workloads for its waiting gangs.
    """

    mode: Mode = "enforce"
    reserve: ReserveDefaults = DEFAULT_RESERVE
    growing: tuple[GrowingPool, ...] = ()
    resources_tolerated: bool | None = None
    holds: HoldLimits = NO_LIMITS
    unbound_seconds: int = 1800
    fair_seconds: float = FAIR_SECONDS
    weight: float = 1.0
    pack: str = AUTO
    moves: MoveLimits = NO_MOVES

    def of(self, snapshot: Snapshot) -> Snapshot:
        """Returns the snapshot with `growing` and `resources_tolerated` of these settings."""
        return snapshot.with_stated_settings(self.growing, resources_tolerated=self.resources_tolerated)


DEFAULT_SETTINGS = Settings()


def default_settings(namespace: str) -> Settings:
    """Returns the default settings, for every namespace."""
    return DEFAULT_SETTINGS


def same_in_all_namespaces(settings: Settings) -> Callable[[str], Settings]:
    """Returns a function that returns these settings for every namespace."""
    return lambda namespace: settings


def queue_rules(settings: Callable[[str], Settings], now: float) -> QueueRules:
    """Returns the rules for the order of the queue. `settings`: returns the settings of a namespace. `now`:
    seconds since the epoch."""
    return QueueRules(now, settings("").fair_seconds, lambda namespace: settings(namespace).weight)
