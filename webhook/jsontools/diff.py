"""The JSON Patch (RFC 6902) of a decision: from the received object to the resulting object.

The jsonpatch library is not used: its `make_patch` sometimes gives operations that do not lead to the result,
because it merges an add and a remove of equal values into a move and then miscounts. Also, Python treats true
as equal to 1. Lists are aligned at their ends: equal elements at the front and the back stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Step = str | int


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the operations that turn `before` into `after`; [] if they are equal.

    Only add, remove and replace are used, because a `move` is hard to read.
    """
    return list(_differences(before, after, ()))


def equal(left: Any, right: Any) -> bool:
    """Returns JSON equality: unlike in Python, true is not 1."""
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


def escape(step: str) -> str:
    """Escapes one step of a JSON Pointer (RFC 6901)."""
    return step.replace("~", "~0").replace("/", "~1")


def pointer(path: Sequence[Step]) -> str:
    """Returns a JSON Pointer for these steps."""
    return "".join(f"/{escape(str(step))}" for step in path)


def _differences(before: Any, after: Any, path: tuple[Step, ...]) -> Iterator[dict[str, Any]]:
    if before is after:  # most of two objects is shared, and may be large
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    elif not equal(before, after):
        yield {"op": "replace", "path": pointer(path), "value": after}


def _of_maps(
    before: Mapping[str, Any], after: Mapping[str, Any], path: tuple[Step, ...]
) -> Iterator[dict[str, Any]]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": pointer((*path, key))}
    for key, value in after.items():
        if key in before:
            yield from _differences(before[key], value, (*path, key))
        else:
            yield {"op": "add", "path": pointer((*path, key)), "value": value}


def _of_lists(before: list[Any], after: list[Any], path: tuple[Step, ...]) -> Iterator[dict[str, Any]]:
    front, back = _common_ends(before, after)
    old, new = before[front : len(before) - back], after[front : len(after) - back]
    shared = min(len(old), len(new))
    for offset in range(shared):
        yield from _differences(old[offset], new[offset], (*path, front + offset))
    for offset in range(len(old) - 1, shared - 1, -1):
        yield {"op": "remove", "path": pointer((*path, front + offset))}
    for offset in range(shared, len(new)):
        yield {"op": "add", "path": pointer((*path, front + offset)), "value": new[offset]}


def _common_ends(before: list[Any], after: list[Any]) -> tuple[int, int]:
    """Returns how many elements at the front, and of the rest at the back, are equal."""
    shorter = min(len(before), len(after))
    front = 0
    while front < shorter and equal(before[front], after[front]):
        front += 1
    back = 0
    while back < shorter - front and equal(before[-1 - back], after[-1 - back]):
        back += 1
    return front, back
