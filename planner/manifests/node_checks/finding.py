"""A fault of a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """A fault of a node. `reason`: a CamelCase token. `message`: a sentence without the node's name. `label`:
    the key and value that correct the fault, None if it needs manual inspection.
    """

    node: str
    reason: str
    message: str
    label: tuple[str, str] | None = None
