"""Applies a JSON Patch (RFC 6902) as the API server does (evanphx/json-patch):

- `replace` of a missing key of a map adds the key, unlike in RFC 6902; of a missing index of a list it is an
  error.
- `add` at an existing key of a map replaces the value; at `-` of a list it appends; an index beyond the end
  is an error.
- `remove` of a missing value is an error.
- `test` of a missing key compares with null, unlike in RFC 6902. A failing `test` raises `TestFailedError`;
  the caller then leaves out the whole patch without an error.

The given object is never modified, even if a later operation fails: containers on the path to a change are
copied, and all others are shared with the result.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from webhook.jsontools.diff import equal
from webhook.jsontools.path import pointer_steps

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


class PatchError(ValueError):
    """An operation cannot be applied. The message names the path, never a value, which may be secret."""


class TestFailedError(PatchError):
    """A `test` operation failed."""

    __test__ = False


def apply(obj: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Returns the object after all operations. Raises `PatchError`; `TestFailedError` for a failing
    `test`.
    """
    if not operations:
        return obj
    draft = _PatchedObject(obj)
    for operation in operations:
        _apply_one(draft, operation)
    return draft.holder[""]


def tokens(pointer: str) -> list[str]:
    """Returns the unescaped steps of a JSON Pointer. Raises `PatchError` if the text is no JSON Pointer."""
    if pointer and not pointer.startswith("/"):
        raise PatchError(f"path {pointer!r} must begin with '/'")
    return pointer_steps(pointer)


def _apply_one(draft: _PatchedObject, operation: Mapping[str, Any]) -> None:
    op, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise PatchError("an operation needs a path")
    if op in ("add", "replace"):
        _put(draft, path, operation.get("value"), insert=op == "add")
    elif op == "remove":
        _take(draft, path)
    elif op == "test":
        if not equal(_read(draft, path, missing=None), operation.get("value")):
            raise TestFailedError(f"test at {path} does not hold")
    elif op in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise PatchError(f"{op} to {path} needs from")
        if op == "move" and path.startswith(source + "/"):
            raise PatchError(f"cannot move {source} into itself")
        value = _take(draft, source) if op == "move" else _read(draft, source)
        if op == "copy":
            draft.own.clear()  # two places have the value now: what changes at one of them is copied before
        _put(draft, path, value, insert=True)
    else:
        raise PatchError(f"unknown operation {str(op)[:20]!r}; known: {', '.join(OPERATIONS)}")


class _PatchedObject:
    """An object that is being patched. `holder`: a map with the object at the key "", so that the root has a
    parent too. `own`: by `id`, the containers that were copied already, so that each is copied once.
    """

    __slots__ = ("holder", "own")

    def __init__(self, obj: Any) -> None:
        self.holder: dict[str, Any] = {"": obj}
        self.own: dict[int, Any] = {}

    def parent(self, path: str) -> tuple[Any, str]:
        """Returns the list or map that contains the path's last step, copied so that it may be modified, and
        that step. Raises `PatchError` if the path does not lead to one.
        """
        steps = ["", *tokens(path)]
        node: Any = self.holder
        for depth, step in enumerate(steps[:-1]):
            key: Any = _index(node, step, len(node) - 1) if isinstance(node, list) else step
            child = node[key] if isinstance(node, list) else node.get(key)
            if not isinstance(child, (dict, list)):
                raise PatchError(f"path {path}: nothing at {'/'.join(steps[: depth + 1]) or 'the root'}")
            if id(child) not in self.own:
                child = node[key] = copy.copy(child)
                self.own[id(child)] = child
            node = child
        return node, steps[-1]


def _index(node: list[Any], step: str, last: int) -> int:
    if not (step.isascii() and step.isdigit()) or (len(step) > 1 and step[0] == "0"):
        raise PatchError(f"{step[:40]!r} is no index of a list")
    index = int(step) if len(step) < 10 else last + 1
    if index > last:
        raise PatchError(f"index {step[:12]} is past the end of a list of {len(node)}")
    return index


def _put(draft: _PatchedObject, path: str, value: Any, *, insert: bool) -> None:
    node, step = draft.parent(path)
    if isinstance(node, dict):
        node[step] = value
    elif not insert:
        node[_index(node, step, len(node) - 1)] = value
    else:
        node.insert(len(node) if step == "-" else _index(node, step, len(node)), value)


def _take(draft: _PatchedObject, path: str) -> Any:
    if not path:
        raise PatchError("an operation cannot remove the whole object")
    node, step = draft.parent(path)
    if isinstance(node, list):
        return node.pop(_index(node, step, len(node) - 1))
    if step not in node:
        raise PatchError(f"path {path}: nothing to remove")
    return node.pop(step)


_NEVER = object()


def _read(draft: _PatchedObject, path: str, missing: Any = _NEVER) -> Any:
    node, step = draft.parent(path)
    if isinstance(node, list):
        return node[_index(node, step, len(node) - 1)]
    if step in node:
        return node[step]
    if missing is _NEVER:
        raise PatchError(f"path {path}: nothing there")
    return missing
