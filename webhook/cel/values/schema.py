"""Structural schemas of the built-in kinds: fields, and how server-side apply merges each list and map.

`lookup(api_version, kind)` returns the root `SchemaNode` of a kind. Objects of unknown kinds are not checked.
The data is `kinds.txt`, taken from Kubernetes' OpenAPI document with its x-kubernetes-* extensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, Literal

ListType = Literal["atomic", "set", "map"]


MapType = Literal["granular", "atomic"]


_NO_FIELDS: Final[Mapping[str, SchemaNode]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """The schema of one field or element of an object.

    `kind` is "object" (known `fields`), "map" (any keys, values like `items`), "list" (elements like
    `items`), "string", "integer", "number", "boolean", "quantity", "int-or-string" or "any" (not checked).
    `list_type` is set on lists only; "map" merges by `list_map_keys`. A `map_type` of "atomic" means that
    server-side apply replaces the whole object or map, as a `list_type` of "atomic" does for a list.
    `default` is the field's default in the API types; `has_default` is False if there is none.
    """

    kind: str
    fields: Mapping[str, SchemaNode] = field(default_factory=lambda: _NO_FIELDS)
    items: SchemaNode | None = None
    list_type: ListType | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: MapType = "granular"
    default: Any = None
    has_default: bool = False

    def at_path(self, path: tuple[str, ...]) -> SchemaNode | None:
        """Returns the node at a path of field names, in which an index or a key of a map is one step of any
        text.

        None for a path that does not exist, or that continues below a node of kind "any".
        """
        node: SchemaNode | None = self
        for step in path:
            if node is None or node.kind == "any":
                return None
            node = node.items if node.kind in ("list", "map") else node.fields.get(step)
        return node


ANY: Final = SchemaNode("any")


_TYPE: Final = re.compile(r"(\w+)( atomic)?")


_FIELD: Final = re.compile(r"  (\S+) (\S+)(?: (atomic|set|map=\S+))?(?: = (.+))?")


_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "quantity", "int-or-string", "any"})


@lru_cache(maxsize=256)  # more than the built-in kinds
def lookup(api_version: str, kind: str) -> SchemaNode | None:
    """Returns the schema of a built-in kind, such as `lookup("apps/v1", "Deployment")`; None for
    any other.
    """
    return type_schema(kind) if f"{api_version} {kind}" in _data().kinds else None


def kinds() -> tuple[tuple[str, str], ...]:
    """Returns the apiVersion and kind of every kind that `lookup` knows."""
    pairs = (entry.split(" ") for entry in sorted(_data().kinds))
    return tuple((api_version, kind) for api_version, kind in pairs)


@lru_cache(maxsize=512)  # more than the types in them
def type_schema(name: str) -> SchemaNode:
    """Returns the node of a type, such as `type_schema("PodTemplateSpec")`. Raises KeyError for an unknown
    one.
    """
    entry = _data().types[name]
    fields = {key: _field(kind, merge, default) for key, kind, merge, default in entry.fields}
    return SchemaNode("object", MappingProxyType(fields), map_type="atomic" if entry.atomic else "granular")


@dataclass(frozen=True, slots=True)
class _TypeRow:
    atomic: bool
    fields: list[tuple[str, str, str | None, str | None]]


@dataclass(frozen=True, slots=True)
class _Data:
    kinds: frozenset[str]
    types: Mapping[str, _TypeRow]


@lru_cache(maxsize=1)
def _data() -> _Data:
    """Returns the content of kinds.txt. Raises ValueError for a malformed line."""
    kinds: set[str] = set()
    types: dict[str, _TypeRow] = {}
    current = _TypeRow(False, [])
    for line in _lines():
        if line.startswith("kind "):
            kinds.add(line.removeprefix("kind "))
        elif match := _FIELD.fullmatch(line):
            name, kind, merge, default = match.groups()
            current.fields.append((name, kind, merge, default))
        elif match := _TYPE.fullmatch(line):
            current = types[match[1]] = _TypeRow(bool(match[2]), [])
        else:
            raise ValueError(f"kinds.txt: {line!r} is no type and no field")
    return _Data(frozenset(kinds), types)


def _lines() -> Iterator[str]:
    text = resources.files(__package__).joinpath("kinds.txt").read_text(encoding="utf-8")
    return (line for line in text.splitlines() if line and not line.startswith("#"))


def _field(kind: str, merge: str | None, default: str | None) -> SchemaNode:
    node = _of(kind, merge)
    return node if default is None else replace(node, default=json.loads(default), has_default=True)


def _of(kind: str, merge: str | None = None) -> SchemaNode:
    if kind.startswith("["):
        name, _, keys = (merge or "atomic").partition("=")
        list_type: ListType = "map" if name == "map" else "set" if name == "set" else "atomic"
        return SchemaNode("list", items=_of(kind[1:-1]), list_type=list_type, list_map_keys=_keys(keys))
    if kind.startswith("{"):
        return SchemaNode(
            "map", items=_of(kind[1:-1]), map_type="atomic" if merge == "atomic" else "granular"
        )
    if kind in _SCALARS:
        return SchemaNode(kind)
    node = type_schema(kind)
    return replace(node, map_type="atomic") if merge == "atomic" else node


def _keys(keys: str) -> tuple[str, ...]:
    return tuple(keys.split("+")) if keys else ()
