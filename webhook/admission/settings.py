"""What a cluster's administrator chose: the mode of a namespace, and what its gangs hold by default. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from planner.model.growth import GrowingPool
from webhook.workloads.options import NOBODY_CHOSE, ReserveDefaults

Mode = Literal["enforce", "warn", "audit", "off"]


MODES: tuple[Mode, ...] = get_args(Mode)
"""`enforce`: patches, refusals, reservations. `warn`: none of them, but kubectl shows what would be. `audit`:
the same without the warnings. `off`: never called."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force for one namespace.

    `mode`: that of a namespace without the label `bayplan.dev/mode`. `reserve`: what a gang holds whose
    workload does not say. `growing`: node pools that may grow, beside those whose autoscaler says so itself.
    """

    mode: Mode = "enforce"
    reserve: ReserveDefaults = NOBODY_CHOSE
    growing: tuple[GrowingPool, ...] = ()


DEFAULT_SETTINGS = Settings()


def default_settings(namespace: str) -> Settings:
    """The settings where nobody chose any."""
    return DEFAULT_SETTINGS
