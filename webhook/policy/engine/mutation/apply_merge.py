"""ApplyConfiguration: server-side apply's structured merge of `Object{}` into the object.

Lists with keys in the schema (containers by name, env by name …) are merged element by element, sets get
missing elements, maps and objects are merged field by field. Atomic fields are refused, as upstream does. A
kind without a schema here (a CRD) has no known list keys, so its lists are refused as atomic too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from planner.model.names import dotted
from webhook.cel.values.schema import SchemaNode
from webhook.jsontools.path import Path

IDENTITY = ("apiVersion", "kind")
"""Fields at the top of an apply configuration that name the object's kind; they are not merged."""


class MergeError(ValueError):
    """A field that ApplyConfiguration may not set, or a value of the wrong shape."""


def merge(schema: SchemaNode | None, current: Any, patch: Any, path: Path = ()) -> Any:
    """Returns `current` with the fields of `patch`. Raises MergeError, which names the field and a remedy."""
    node = None if schema is None or schema.kind == "any" else schema
    if isinstance(patch, Mapping):
        return _merge_map(node, current, patch, path)
    if isinstance(patch, list):
        return _merge_list(node, current, patch, path)
    return patch


def _merge_map(node: SchemaNode | None, current: Any, patch: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if node is not None and node.map_type == "atomic":
        raise _atomic(path, "map")
    base = dict(current) if isinstance(current, Mapping) else {}
    for key, value in patch.items():
        if not path and key in IDENTITY:
            continue
        base[key] = merge(_under(node, key), base.get(key), value, (*path, key))
    return base


def _under(node: SchemaNode | None, key: str) -> SchemaNode | None:
    if node is None:
        return None
    return node.items if node.kind == "map" else node.fields.get(key)


def _merge_list(node: SchemaNode | None, current: Any, patch: list[Any], path: Path) -> list[Any]:
    base = list(current) if isinstance(current, list) else []
    if node is None:
        raise MergeError(f"{dotted(path)}: the keys of this list are not known here; use JSONPatch")
    if node.list_type == "set":
        return base + [item for item in patch if item not in base]
    if node.list_type != "map":
        raise _atomic(path, "list")
    places: dict[tuple[Any, ...], int] = {}  # computed once, because a search per element would be quadratic
    for index, row in enumerate(base):
        places.setdefault(_hashable(_keys(node, row)), index)
    for index, item in enumerate(patch):
        identity = _hashable(_identity(node, item, (*path, index)))
        place = places.get(identity)
        if place is None:
            places[identity] = len(base)
            base.append(merge(node.items, None, item, (*path, index)))
        else:
            base[place] = merge(node.items, base[place], item, (*path, place))
    return base


def _identity(node: SchemaNode, item: Any, path: Path) -> tuple[Any, ...]:
    keys = _keys(node, item)
    for name, value in zip(node.list_map_keys, keys, strict=True):
        if value is None:
            raise MergeError(f"{dotted(path)}: {name} is missing, by which this list merges")
    return keys


def _keys(node: SchemaNode, item: Any) -> tuple[Any, ...]:
    """Returns an element's values of the list's merge keys; a missing value has its default (`TCP`)."""
    fields = item if isinstance(item, Mapping) else {}
    return tuple(
        fields.get(
            name, node.items.fields[name].default if node.items and name in node.items.fields else None
        )
        for name in node.list_map_keys
    )


def _hashable(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the keys of an element as a hashable tuple: a malformed object may have a list as a name."""
    return tuple(value if isinstance(value, Hashable) else repr(value) for value in keys)


def _atomic(path: Path, kind: str) -> MergeError:
    return MergeError(
        f"{dotted(path)}: ApplyConfiguration may not change an atomic {kind}; use JSONPatch for this field"
    )
