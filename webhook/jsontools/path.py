"""Paths into JSON values, as tuples of map keys and list indexes, and as JSON Pointers."""

from __future__ import annotations

import copy
from typing import Any

Path = tuple[str | int, ...]
"""Steps from an object's root: map keys and list indexes."""


def escape(step: str) -> str:
    """Escapes one step of a JSON Pointer (RFC 6901)."""
    return step.replace("~", "~0").replace("/", "~1")


def pointer(path: Path) -> str:
    """Returns a path as a JSON Pointer."""
    return "".join(f"/{escape(str(step))}" for step in path)


def pointer_steps(text: str) -> list[str]:
    """Returns the unescaped steps of a JSON Pointer; [] for "", which is the whole value. Text before the
    first slash is ignored.
    """
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def find(value: Any, path: Path) -> Any:
    """Returns the value at the path; None if the path does not exist."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def replaced(value: Any, path: Path, new: Any) -> Any:
    """Returns a copy of `value` with `new` at the path. Only the containers on the path are copied. They must
    exist; the last step may be a new key of a map, but no new element of a list.
    """
    if not path:
        return new
    # `copy.copy` takes five times as long, and nearly every value is a `dict` or a `list`.
    changed: Any = value.copy() if type(value) is dict or type(value) is list else copy.copy(value)
    changed[path[0]] = new if len(path) == 1 else replaced(value[path[0]], path[1:], new)
    return changed
