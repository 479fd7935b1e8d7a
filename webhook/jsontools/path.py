"""A path into a JSON value: keys of maps and indices of lists."""

from __future__ import annotations

Path = tuple[str | int, ...]


def dotted(path: Path) -> str:
    """`spec.validations[0].expression`, as people write a path."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
