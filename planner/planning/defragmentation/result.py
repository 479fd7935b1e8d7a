"""What a search for moves ends in: the moves with the cluster before and after, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.topology import Domain, Topology
from planner.planning.defragmentation.movable import Cost, Relocation, cost_of

ATTEMPTS = 300
"""Sets of movables that are planned anew before a search ends: each plan takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Defragmentation:
    """Moves that reach the aim. `domains`: those that are free afterwards, of level `level`; of a gang's
    place, its own domain. `exact`: no cheaper moves reach it; else the search ended early. `gang`: the answer
    for the gang whose place it is, None for whole domains.
    """

    topology: Topology
    level: str
    domains: tuple[Domain, ...]
    nodes: tuple[str, ...]
    moves: tuple[Relocation, ...]
    before: Snapshot
    after: Snapshot
    exact: bool = True
    gang: Answer | None = None

    @property
    def cost(self) -> Cost:
        """That of all moves."""
        return cost_of(move.movable for move in self.moves)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "topology": self.topology.name,
            "level": self.level or None,
            "domains": [list(domain) for domain in self.domains],
            "nodes": list(self.nodes),
            "exact": self.exact,
            "moves": [_move(move) for move in self.moves],
            **({"gang": self.gang.to_json()} if self.gang is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class NoMoves:
    """There are none. `reason`: a CamelCase token; `message`: one or two sentences with the numbers.

    `kept`: domains that cannot be freed, each with who keeps it.
    """

    reason: str
    message: str
    kept: Mapping[Domain, str] = field(default_factory=dict)
    exact: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        kept = [{"domain": list(domain), "why": why} for domain, why in self.kept.items()]
        return {"reason": self.reason, "message": self.message, "kept": kept, "exact": self.exact}


def _move(move: Relocation) -> dict[str, Any]:
    movable = move.movable
    return {
        "name": movable.name,
        "pods": [pod.name for pod in movable.pods],
        "gpus": movable.group.gpus,
        "priority": movable.priority,
        "ageSeconds": int(movable.age),
        "optedIn": movable.opted_in,
        "from": sorted(movable.nodes),
        "to": [{"podSet": a.pod_set, "node": a.node, "count": a.count} for a in move.to],
    }
