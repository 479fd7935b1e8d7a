"""A path into a JSON value: keys of maps and indices of lists."""

from __future__ import annotations

Path = tuple[str | int, ...]
"""Steps from an object's root: map keys and list indexes."""


def dotted(path: Path) -> str:
    """A path as people write it: `spec.replicatedJobs[0].template`, `metadata.annotations[a.b/c]`."""
    text = ""
    for step in path:
        if isinstance(step, int) or any(mark in step for mark in "./"):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
