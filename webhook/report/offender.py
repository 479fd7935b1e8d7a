"""Finds the field of an object that a refusal is about, so that a report can show its line. Pure.

A refusal names its cause only in words. The field is an *origin* (a field from which a topology constraint
was read, with its meaning `topology`, `required` or `preferred`), a resource that the message names, or else
the origin of the required level.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planner.model.podgroup import PodGroup
from planner.model.resources import GPU_RESOURCES, MIG_PREFIX

_LISTS = ("limits", "requests")
_KINDS = {"Topology": ("topology",), "Topologies": ("topology", "required", "preferred")}
"""The meanings of the origins that a refusal may be about, by the word with which its reason ends; `_LEVELS`
for other words.
"""
_LEVELS = ("required", "preferred")


def offending_field(group: PodGroup, reason: str, message: str, obj: Mapping[str, Any]) -> str:
    """Returns the dotted path of the field in `obj` that the planner's refusal of `group` is about, "" if
    unknown.

    `reason`: the refusal's CamelCase token. `message`: its text. If the text names several fields, because
    they contradict each other, returns the last of them.
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
    """Returns the field that the first of these warnings on an admitted gang is about: a field that the
    warning names, or the origin of the level that it names. Returns "" if no warning names either.
    """
    for warning in warnings:
        for field, meaning, _ in group.origins:
            if field in warning or warning.startswith(f"the {meaning} level "):
                return field
    return ""


def resources_named(obj: Any, message: str) -> Iterator[str]:
    """Yields the paths of the resource amounts whose name, or MIG profile, is in the message; the longest
    names first.
    """
    amounts = [(name, where) for name, where in _amounts(obj, "") if name.removeprefix(MIG_PREFIX) in message]
    yield from (where for _, where in sorted(amounts, key=lambda item: -len(item[0])))


def fields_named(obj: Any, message: str) -> Iterator[str]:
    """Yields the paths of the fields that a message names, the most certain first.

    These are, in this order: resources; annotations, labels, environment variables and claims by name;
    fields such as `schedulerName`; annotations by value; and GPU resources if the message contains "GPU".
    Fields that the message only suggests ("What would work: …") come after those that it blames.
    """
    yield from resources_named(obj, message)
    words, at_fault = (set(_WORD.findall(text)) for text in (message, message.partition(_WORKS)[0]))
    named_fields = [
        (name not in at_fault, rank, -len(name), where)
        for rank, name, where in _names_in(obj, "")
        if name in words
    ]
    yield from (where for *_, where in sorted(named_fields))
    if "GPU" in message:
        yield from (where for name, where in _amounts(obj, "") if name in GPU_RESOURCES or "gpu" in name)


_WORKS = "What would work"
"""Precedes the names that a message suggests in place of the field at fault."""
_WORD = re.compile(r"[\w./-]*\w")
_KEYED = ("annotations", "labels", "nodeSelector")
_NAMED_ITEMS = ("env", "resourceClaims", "matchExpressions", "matchFields")
_FIELDS = ("schedulerName", "hostNetwork", "dnsPolicy", "workloadRef", "schedulingGroup", "topologyPolicy")
"""`_KEYED`: mappings whose keys are named in messages. `_NAMED_ITEMS`: lists whose items have names.
`_FIELDS`: other keys that messages name.
"""


def _names_in(value: Any, path: str) -> Iterator[tuple[int, str, str]]:
    """Yields rank, name and path of each field of an object that a message may name; a lower rank is a more
    certain match.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            inside = f"{path}.{key}" if path else str(key)
            if key in _KEYED and isinstance(inner, Mapping):
                yield from ((0, str(name), f"{inside}[{name}]") for name in inner)
                yield from ((2, str(value), f"{inside}[{name}]") for name, value in inner.items())
            if key in _NAMED_ITEMS and isinstance(inner, list):
                yield from ((0, name, f"{inside}[{place}]") for place, name in _item_names(inner))
            if key in _FIELDS:
                yield 1, str(key), inside
            yield from _names_in(inner, inside)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _names_in(inner, f"{path}[{index}]")


def _item_names(items: list[Any]) -> Iterator[tuple[int, str]]:
    """Yields index and name of list items. The name of a claim's template and the key of a requirement
    count as names.
    """
    for index, item in enumerate(items):
        if isinstance(item, Mapping):
            for key in ("name", "key", "resourceClaimTemplateName", "resourceClaimName"):
                if isinstance(item.get(key), str):
                    yield index, item[key]


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
