"""The nesting depth of a JSON value, and its limit for external input."""

from __future__ import annotations

DEPTH_LIMIT = 128
"""Maximum nesting; real workloads stay below 30, and the bound keeps every recursive function safe."""


def deeper_than(value: object, limit: int) -> bool:
    """Returns whether nesting exceeds `limit`. Works level by level, so that it does not recurse itself."""
    level: list[object] = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            if isinstance(parent, (dict, list))
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True
