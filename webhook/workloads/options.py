"""Bayplan's own annotations on a workload, and its label on a namespace: what their owner chose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast, get_args

from planner.model import quantity
from planner.model.podgroup import WHOLE_FROM, OnUnavailable, PodGroup, ReserveMode
from planner.model.resources import Resources
from webhook.workloads.annotation_keys import SKIP
from webhook.workloads.fields import Field, shown

GANG = "bayplan.dev/gang"
GANG_SIZE = "bayplan.dev/gang-size"
RESERVE = "bayplan.dev/reserve"
ON_UNAVAILABLE = "bayplan.dev/on-unavailable"
BALANCED = "bayplan.dev/balanced-slices"
GANG_MIN = "bayplan.dev/gang-min"
GANG_RESOURCES = "bayplan.dev/gang-resources"
"""What each pod of a gang asks for that is not known yet, as kubectl takes it: `nvidia.com/gpu=4,cpu=8`."""

MODE = "bayplan.dev/mode"
"""Label of a namespace, in the manner of Pod Security Admission."""

RESERVE_MODES: tuple[ReserveMode, ...] = get_args(ReserveMode)
ON_UNAVAILABLE_MODES = ("queue", "reject", "admit")
NAMESPACE_MODES = ("enforce", "warn", "audit", "off")


@dataclass(frozen=True, slots=True)
class ReserveDefaults:
    """What a gang holds whose workload does not say: the parameters `reserve.default` and
    `reserve.whole-from`.

    `whole_from`: the share of a domain's GPUs, 0 to 1, from which on a gang under `auto` holds the whole
    domain.
    """

    mode: ReserveMode = "auto"
    whole_from: float = WHOLE_FROM

    def of(self, group: PodGroup) -> PodGroup:
        """The gang with what it holds where it does not say."""
        mode = self.mode if group.presumed else group.reserve
        return replace(group, reserve=mode, whole_from=self.whole_from)


NOBODY_CHOSE = ReserveDefaults()


@dataclass(frozen=True, slots=True)
class Options:
    """What was chosen; None, "" and False where nothing was."""

    gang: str = ""
    gang_size: int | None = None
    reserve: ReserveMode | None = None
    on_unavailable: OnUnavailable = "queue"
    skip: bool = False
    balanced: bool = False
    gang_min: int | None = None
    gang_resources: Resources | None = None
    stated: bool = False
    """True where any of them but `skip` is there."""

    @property
    def together(self) -> bool:
        """Whether it is said that pods start together."""
        return bool(self.gang or self.gang_size or self.gang_min or self.balanced)


def options(*metadata: Field) -> Options:
    """The choices on the object, or else on its templates. Raises `InputError` naming the valid values."""

    def field(key: str) -> Field:
        fields = [source.get("annotations", key) for source in metadata]
        return next((value for value in fields if value.text()), fields[0])

    gang, size = field(GANG).name(), field(GANG_SIZE).count_in_text()
    reserve = field(RESERVE).choice(RESERVE_MODES)
    on_unavailable = field(ON_UNAVAILABLE).choice(ON_UNAVAILABLE_MODES)
    balanced = field(BALANCED).choice(("true", "false")) == "true"
    gang_min = field(GANG_MIN).count_in_text()
    return Options(
        gang,
        size,
        cast(ReserveMode, reserve) if reserve else None,
        cast(OnUnavailable, on_unavailable or "queue"),
        field(SKIP).choice(("true", "false")) == "true",
        balanced,
        gang_min,
        resources_in_text(field(GANG_RESOURCES)),
        bool(gang or size or reserve or on_unavailable or balanced or gang_min),
    )


def resources_in_text(stated: Field) -> Resources | None:
    """Amounts such as `nvidia.com/gpu=4,cpu=8`, in base units; None for no text.

    Raises `InputError` for anything else.
    """
    if not stated.text():
        return None
    amounts = dict(entry.split("=", 1) for entry in stated.text().split(",") if entry.count("=") == 1)
    if len(amounts) != stated.text().count(",") + 1:
        raise stated.error(
            f"{shown(stated.text())} is no list of amounts; write for example nvidia.com/gpu=4,cpu=8"
        )
    return {
        name.strip(): quantity.amount(name.strip(), value.strip(), stated.where, up=True)
        for name, value in amounts.items()
    }
