"""Makes the JSON Patch (RFC 6902) between two JSON values, for example a received object and the result.

The jsonpatch library is not used: the operations of its `make_patch` sometimes do not lead to the result,
because it merges an add and a remove of equal values into a move and then miscounts. It also compares as
Python does, where true equals 1. In lists, equal elements at the front and at the back are kept, and those
in between are compared by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.jsontools.path import escape


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the operations that turn `before` into `after`; [] if they are equal.

    The operations are add, remove and replace only, because a move is hard to read.
    """
    return list(_differences(before, after, ""))


def equal(left: Any, right: Any) -> bool:
    """Returns whether two JSON values are equal; unlike in Python, true does not equal 1."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and equal(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _differences(before: Any, after: Any, path: str) -> Iterator[dict[str, Any]]:
    """Yields the operations that turn `before` into `after`, both at the JSON Pointer `path`.

    Policies and the plan share unchanged parts with the object before them, so most pairs of values are the
    same object. Comparing by identity first avoids going through them.
    """
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    elif not equal(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _of_maps(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{escape(str(key))}"}
    for key, value in after.items():
        if key not in before:
            yield {"op": "add", "path": f"{path}/{escape(str(key))}", "value": value}
        elif before[key] is not value:
            yield from _differences(before[key], value, f"{path}/{escape(str(key))}")


def _of_lists(before: list[Any], after: list[Any], path: str) -> Iterator[dict[str, Any]]:
    front, back = _common_ends(before, after)
    old, new = before[front : len(before) - back], after[front : len(after) - back]
    shared = min(len(old), len(new))
    for offset in range(shared):
        yield from _differences(old[offset], new[offset], f"{path}/{front + offset}")
    for offset in range(len(old) - 1, shared - 1, -1):  # from the back, so that earlier indexes stay valid
        yield {"op": "remove", "path": f"{path}/{front + offset}"}
    for offset in range(shared, len(new)):
        yield {"op": "add", "path": f"{path}/{front + offset}", "value": new[offset]}


def _common_ends(before: list[Any], after: list[Any]) -> tuple[int, int]:
    """Returns how many elements at the front are equal, and how many of the rest at the back."""
    shorter = min(len(before), len(after))
    front = 0
    while front < shorter and equal(before[front], after[front]):
        front += 1
    back = 0
    while back < shorter - front and equal(before[-1 - back], after[-1 - back]):
        back += 1
    return front, back
