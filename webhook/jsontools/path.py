"""YAML (and so JSON) text to plain values that still know on which line each of them stood.

Values are as Kubernetes reads YAML: what looks like a date stays text, keys are strings, a key that stands
twice is an error. Limits keep a hostile file from costing more than it should: its size, its nesting, and
the nodes that its aliases unfold to.
"""

from __future__ import annotations

Path = tuple[str | int, ...]


def dotted(path: Path) -> str:
    """`spec.validations[0].expression`, as people write a path."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
