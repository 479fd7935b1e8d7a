"""Which field of an object a refusal is about, so that a report can point at it. Pure.

A message names its cause in words; the field is found again in the object: a topology key where the request
said which, a resource where the message names one, else what was required.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planner.model.podgroup import PodGroup
from planner.model.resources import GPU_RESOURCES, MIG_PREFIX

_LISTS = ("limits", "requests")
_KINDS = {"Topology": ("topology",), "Topologies": ("topology", "required", "preferred")}
"""What a reason's last word says about the origin of the trouble; else it is a level."""
_LEVELS = ("required", "preferred")


def offending_field(group: PodGroup, reason: str, message: str, obj: Mapping[str, Any]) -> str:
    """The dotted path of the field that the planner's refusal of `group` in `obj` is about, "" for none.

    `reason` is the planner's token and `message` its words. Of two fields that contradict each other, the
    later one is given.
    """
    named_fields = [field for field, _, _ in group.origins if field in message]
    if named_fields:
        return named_fields[-1]
    kinds = next((kinds for word, kinds in _KINDS.items() if reason.endswith(word)), _LEVELS)
    asked = [field for field, kind, _ in group.origins if kind in kinds]
    about_topology = reason.endswith(("Topology", "Topologies", "Level")) or "Slice" in reason
    if about_topology and asked:
        return asked[-1] if reason.endswith("Topologies") else asked[0]
    return next(resources_named(obj, message), asked[0] if asked else "")


def warned_field(group: PodGroup, warnings: Iterable[str]) -> str:
    """The field that a warning on an admitted gang is about: one that it names, or the origin of the level of
    which it speaks; "" for neither."""
    for warning in warnings:
        for field, meaning, _ in group.origins:
            if field in warning or warning.startswith(f"the {meaning} level "):
                return field
    return ""


def resources_named(obj: Any, message: str) -> Iterator[str]:
    """The paths of the resource amounts that a message names, in full or by MIG profile, longest first."""
    amounts = [(name, where) for name, where in _amounts(obj, "") if name.removeprefix(MIG_PREFIX) in message]
    yield from (where for _, where in sorted(amounts, key=lambda item: -len(item[0])))


def fields_named(obj: Any, message: str) -> Iterator[str]:
    """The paths of what a message names, the surest first.

    Resources; annotations, labels, environment variables and claims by their names; fields by their own
    (`schedulerName`); annotations by what they say; where it speaks of GPUs, whatever asks for some.
    """
    yield from resources_named(obj, message)
    words = set(_WORD.findall(message))
    marks = [(rank, -len(name), where) for rank, name, where in _marks(obj, "") if name in words]
    yield from (where for _, _, where in sorted(marks))
    if "GPU" in message:
        yield from (where for name, where in _amounts(obj, "") if name in GPU_RESOURCES or "gpu" in name)


_WORD = re.compile(r"[\w./-]*\w")
_KEYED = ("annotations", "labels", "nodeSelector")
_NAMED_ITEMS = ("env", "resourceClaims", "matchExpressions", "matchFields")
_FIELDS = ("schedulerName", "hostNetwork", "dnsPolicy", "workloadRef", "schedulingGroup", "topologyPolicy")
"""Fields of which messages speak by their own name."""


def _marks(value: Any, path: str) -> Iterator[tuple[int, str, str]]:
    """What has a name of its own anywhere in an object: how well it points, the name, the path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            inside = f"{path}.{key}" if path else str(key)
            if key in _KEYED and isinstance(inner, Mapping):
                yield from ((0, str(name), f"{inside}[{name}]") for name in inner)
                yield from ((2, str(value), f"{inside}[{name}]") for name, value in inner.items())
            if key in _NAMED_ITEMS and isinstance(inner, list):
                yield from ((0, name, f"{inside}[{place}]") for place, name in _names(inner))
            if key in _FIELDS:
                yield 1, str(key), inside
            yield from _marks(inner, inside)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _marks(inner, f"{path}[{index}]")


def _names(items: list[Any]) -> Iterator[tuple[int, str]]:
    """Each name of a named item: a claim's template's too, and the key of a requirement."""
    for place, item in enumerate(items):
        if isinstance(item, Mapping):
            for key in ("name", "key", "resourceClaimTemplateName", "resourceClaimName"):
                if isinstance(item.get(key), str):
                    yield place, item[key]


def _amounts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            inside = f"{path}.{key}" if path else str(key)
            if path.endswith(".resources") and key in _LISTS and isinstance(inner, Mapping):
                yield from ((str(name), f"{inside}[{name}]") for name in inner)
            else:
                yield from _amounts(inner, inside)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _amounts(inner, f"{path}[{index}]")
