"""The one JSON Patch (RFC 6902) of a decision: from the object as it came to the object as it shall be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonpatch
import jsonpointer


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The operations that turn `before` into `after`; [] where they are equal.

    Only add, remove and replace: a `move`, however short, tells a person nothing.
    """
    if before == after:
        return []
    operations: list[Any] = jsonpatch.make_patch(before, after).patch
    if any(op["op"] == "move" for op in operations):
        operations = _without_moves(operations, before)
    return operations


def _without_moves(operations: list[Any], before: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same patch with each move as a remove and an add; followed on a copy to know what is moved."""
    state: Any = jsonpatch.JsonPatch([]).apply(before)
    plain: list[dict[str, Any]] = []
    for op in operations:
        steps: list[Any] = [op]
        if op["op"] == "move":
            value = jsonpointer.resolve_pointer(state, op["from"])
            steps = [
                {"op": "remove", "path": op["from"]},
                {"op": "add", "path": op["path"], "value": value},
            ]
        state = jsonpatch.apply_patch(state, steps, in_place=True)
        plain.extend(steps)
    return plain
