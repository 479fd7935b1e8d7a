"""How deep a JSON value is nested, with the limit for whatever comes from outside."""

from __future__ import annotations

DEPTH_LIMIT = 128
"""Levels of nesting; real workloads stay below 30, and a bound keeps every later walk over it safe."""


def deeper_than(value: object, limit: int) -> bool:
    """Whether nesting passes `limit`; level by level, so that it never recurses itself."""
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
