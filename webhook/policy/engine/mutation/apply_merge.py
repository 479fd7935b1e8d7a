"""ApplyConfiguration: server-side apply's structured merge of `Object{}` into the object.

Lists with keys in the schema (containers by name, env by name …) are merged element by element, sets get
missing elements, maps and objects are merged field by field. A merged list has the order of the apply
configuration; elements that only the object has keep their place between the others. Atomic fields, null and
an element that occurs twice are refused, as upstream does. A kind without a schema here (a CRD) has no known
list keys, so its lists are refused as atomic too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from planner.model.names import dotted
from webhook.cel.values.schema import SchemaNode
from webhook.jsontools.path import Path

IDENTITY = ("apiVersion", "kind")
"""Fields at the top of an apply configuration that name the object's kind; they are not merged."""


Keys = tuple[Any, ...]
"""The values of an element by which its list is merged; for a set, the element itself."""


class MergeError(ValueError):
    """A field that ApplyConfiguration may not set, or a value of the wrong shape."""


def merge(schema: SchemaNode | None, current: Any, patch: Any, path: Path = ()) -> Any:
    """Returns `current` with the fields of `patch`. Raises MergeError, which names the field and a remedy."""
    node = None if schema is None or schema.kind == "any" else schema
    if isinstance(patch, Mapping):
        return _merge_map(node, current, patch, path)
    if isinstance(patch, list):
        return _merge_list(node, current, patch, path)
    if patch is None and node is not None:
        raise MergeError(f"{dotted(path)}: ApplyConfiguration may not write null; leave the field out")
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
    base = current if isinstance(current, list) else []
    if node is None:
        raise MergeError(f"{dotted(path)}: the keys of this list are not known here; use JSONPatch")
    if node.list_type not in ("set", "map"):
        raise _atomic(path, "list")
    is_set = node.list_type == "set"
    object_keys = [_hashable((item,) if is_set else _keys(node, item)) for item in base]
    patched_items: dict[Keys, Any] = {}
    for index, item in enumerate(patch):
        keys = _hashable((item,) if is_set else _identity(node, item, (*path, index)))
        if keys in patched_items:
            raise MergeError(f"{dotted((*path, index))}: occurs twice in the apply configuration")
        patched_items[keys] = item
    former: dict[Keys, Any] = {}
    for keys, item in zip(object_keys, base, strict=True):
        # As upstream, elements with the same keys are not merged: one element of the patch replaces them.
        former[keys] = None if keys in former else item
    places = {keys: index for index, keys in enumerate(object_keys)}
    result: list[Any] = []
    for place in _order(object_keys, list(patched_items)):
        if isinstance(place, int):
            result.append(base[place])
        else:
            index = places.get(place, len(result))
            patched = patched_items[place]
            result.append(
                patched if is_set else merge(node.items, former.get(place), patched, (*path, index))
            )
    return result


def _order(object_keys: list[Keys], patch_keys: list[Keys]) -> list[Keys | int]:
    """Returns the elements of a merged list: the keys of one that the patch has, or the index of one that
    only the object has.

    The order is that of upstream's structured-merge-diff, also for an object with equal elements: those of
    the object alone come first, up to the next element that both have, in the order of the patch.
    """
    in_object, in_patch, taken = set(object_keys), set(patch_keys), set[Keys]()
    shared = [keys for keys in reversed(patch_keys) if keys in in_object]  # the last one is the next
    result: list[Keys | int] = []
    left = right = 0
    while left < len(object_keys) or right < len(patch_keys):
        current_keys = object_keys[left] if left < len(object_keys) else None
        if current_keys is not None and current_keys not in in_patch:
            result.append(left)
            left += 1
        elif right == len(patch_keys) or (current_keys is not None and shared and current_keys != shared[-1]):
            left += 1
        else:
            keys = patch_keys[right]
            left += current_keys is not None and (current_keys == keys or current_keys in taken)
            right += 1
            taken.add(keys)
            result.append(keys)
            if shared and shared[-1] == keys:
                shared.pop()
    return result


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
