"""The annotations of Bayplan with which the author of a workload states choices, and its label on a
namespace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast, get_args

from planner.model import quantity
from planner.model.errors import InputErrors
from planner.model.podgroup import WHOLE_FROM, OnUnavailable, PodGroup, ReserveMode
from planner.model.resources import Resources
from webhook.workloads.fields import Field, shown
from webhook.workloads.keys.annotation_keys import SKIP

GANG = "bayplan.dev/gang"
GANG_SIZE = "bayplan.dev/gang-size"
RESERVE = "bayplan.dev/reserve"
ON_UNAVAILABLE = "bayplan.dev/on-unavailable"
BALANCED = "bayplan.dev/balanced-slices"
GANG_MIN = "bayplan.dev/gang-min"
GANG_RESOURCES = "bayplan.dev/gang-resources"
"""The request of each member of a gang that is not known yet, in kubectl's format: `nvidia.com/gpu=4,cpu=8`;
or the requests per part with their number: `4 prefill: nvidia.com/gpu=8,cpu=32; router: cpu=2`.
"""

MODE = "bayplan.dev/mode"
"""Label of a namespace: enforce, warn, audit or off, as in Pod Security Admission."""

RESERVE_MODES: tuple[ReserveMode, ...] = get_args(ReserveMode)
ON_UNAVAILABLE_MODES = ("queue", "reject", "admit")
NAMESPACE_MODES = ("enforce", "warn", "audit", "off")


@dataclass(frozen=True, slots=True)
class ReserveDefaults:
    """The parameters `reserve.default` and `reserve.whole-from`: the reserve mode of gangs that state none.

    `whole_from`: the share of a domain's GPUs, 0 to 1, from which a gang under `auto` holds the whole domain.
    """

    mode: ReserveMode = "auto"
    whole_from: float = WHOLE_FROM

    def of(self, group: PodGroup) -> PodGroup:
        """Returns the gang with these defaults; a reserve mode that the gang states is kept."""
        mode = self.mode if group.reserve_is_default else group.reserve
        if (mode, self.whole_from) == (group.reserve, group.whole_from):
            return group
        return replace(group, reserve=mode, whole_from=self.whole_from)


DEFAULT_RESERVE = ReserveDefaults()
"""The defaults if no parameter sets them."""


@dataclass(frozen=True, slots=True)
class StatedPart:
    """A part of a gang of several objects, stated before its members arrive: its number of pods, and the
    request of each in base units.
    """

    count: int
    requests: Resources


@dataclass(frozen=True, slots=True)
class Options:
    """The choices that the annotations of a workload state; None, "" and False if not stated (and `queue` for
    `on_unavailable`).

    `gang`: the gang's name. `gang_size`: its number of pods. `reserve`: what it holds. `on_unavailable`: what
    happens if it does not fit now. `skip`: the object is not planned. `balanced`: its slices are spread
    evenly. `gang_min`: how many of its pods start together. `gang_resources`: the request of each unknown
    member; `gang_parts`: their requests by part.
    """

    gang: str = ""
    gang_size: int | None = None
    reserve: ReserveMode | None = None
    on_unavailable: OnUnavailable = "queue"
    skip: bool = False
    balanced: bool = False
    gang_min: int | None = None
    gang_resources: Resources | None = None
    gang_parts: Mapping[str, StatedPart] = field(default_factory=dict)
    stated: bool = False
    """Whether any choice except `skip` is stated."""

    @property
    def together(self) -> bool:
        """Whether the options say that pods start together."""
        return bool(self.gang or self.gang_size or self.gang_min or self.balanced)


_KEYS = frozenset((GANG, GANG_SIZE, RESERVE, ON_UNAVAILABLE, BALANCED, GANG_MIN, GANG_RESOURCES, SKIP))
_NOTHING_CHOSEN = Options()
MOST_PARTS = 512
"""Maximum number of parts in `GANG_RESOURCES`: as many PodSets as one gang may have
(`webhook.admission.bounds`). The annotation is read for stored objects too, which no bound has checked."""


_PART = re.compile(r"\s*(?:([0-9]{1,12})\s+)?(\S+)\s*")


def options(*metadata: Field) -> Options:
    """Returns the options in these metadata, those of the object first: for each annotation, the first
    metadata that has it count. Raises `InputError` with all invalid values, and what is valid.
    """
    if not any(part.has("annotations") and not part.get("annotations").lacks(_KEYS) for part in metadata):
        return _NOTHING_CHOSEN

    def field(key: str) -> Field:
        fields = [source.get("annotations", key) for source in metadata]
        return next((value for value in fields if value.text()), fields[0])

    errors = InputErrors()

    def choice(key: str, valid: tuple[str, ...]) -> str:
        return errors.read(lambda: field(key).choice(valid), "")

    gang = errors.read(lambda: field(GANG).name(), "")
    size, gang_min = (errors.read(field(key).count_in_text, None) for key in (GANG_SIZE, GANG_MIN))
    reserve = choice(RESERVE, RESERVE_MODES)
    on_unavailable = choice(ON_UNAVAILABLE, ON_UNAVAILABLE_MODES)
    skip, balanced = (choice(key, ("true", "false")) == "true" for key in (SKIP, BALANCED))
    nothing: tuple[Resources | None, dict[str, StatedPart]] = (None, {})
    of_absent = errors.read(lambda: _room_of_absent(field(GANG_RESOURCES)), nothing)
    errors.raise_any()
    return Options(
        gang,
        size,
        cast(ReserveMode, reserve) if reserve else None,
        cast(OnUnavailable, on_unavailable or "queue"),
        skip,
        balanced,
        gang_min,
        *of_absent,
        bool(gang or size or reserve or on_unavailable or balanced or gang_min),
    )


def _room_of_absent(stated: Field) -> tuple[Resources | None, dict[str, StatedPart]]:
    """Returns the request of each unknown member, or the requests per part, as in `4 prefill:
    nvidia.com/gpu=8,cpu=32; router: cpu=2`. None and no parts if missing.

    Raises `InputError` for anything else.
    """
    text = stated.text()
    if ":" not in text:
        return (resources_in_text(stated, text) if text else None), {}
    parts: dict[str, StatedPart] = {}
    if (number := text.count(";") + 1) > MOST_PARTS:
        raise stated.error(f"states {number} parts of a gang; at most {MOST_PARTS} are planned")
    for entry in text.split(";"):
        title, colon, amounts = entry.partition(":")
        match = _PART.fullmatch(title)
        if not colon or match is None or match[2] in parts:
            raise stated.error(
                f"{shown(entry.strip())} is no part of a gang; write for example "
                "4 prefill: nvidia.com/gpu=8,cpu=32; 1 router: cpu=2"
            )
        parts[match[2]] = StatedPart(int(match[1] or 1), resources_in_text(stated, amounts))
    return None, parts


def resources_in_text(stated: Field, text: str) -> Resources:
    """Returns amounts such as `nvidia.com/gpu=4,cpu=8` in base units. Raises `InputError` otherwise."""
    amounts = dict(entry.split("=", 1) for entry in text.split(",") if entry.count("=") == 1)
    if len(amounts) != text.count(",") + 1:
        raise stated.error(
            f"{shown(text.strip())} is no list of amounts; write for example nvidia.com/gpu=4,cpu=8"
        )
    return {
        name.strip(): quantity.amount(name.strip(), value.strip(), stated.where, up=True)
        for name, value in amounts.items()
    }
