"""The nesting depth of a JSON value, and its limit for external input."""

from __future__ import annotations

DEPTH_LIMIT = 128
"""Maximum nesting of external input. Real workloads stay below 30; recursive functions are safe with 128."""


def deeper_than(value: object, limit: int) -> bool:
    """Returns whether the value is nested deeper than `limit`. Does not recurse, but works level by level.

    A value in several places of a level counts once, because YAML's aliases may let a list contain itself.
    """
    level: list[object] = [value]
    for _ in range(limit):
        inner = {
            id(child): child
            for parent in level
            if isinstance(parent, (dict, list))
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        }
        if not inner:
            return False
        level = list(inner.values())
    return True
