"""What is wrong with a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """`reason`: a CamelCase token. `message`: a sentence without the node's name. `label`: the key and value
    that mend it, None where a person has to look."""

    node: str
    reason: str
    message: str
    label: tuple[str, str] | None = None
