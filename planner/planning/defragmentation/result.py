"""The result of a search for moves: the moves with the cluster before and after, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.topology import Domain, Topology
from planner.planning.defragmentation.movable import Cost, Relocation, cost_of

ATTEMPTS = 300
"""Maximum number of sets of movables that a search plans; each plan takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Defragmentation:
    """Moves that free whole domains or make room for a gang.

    `domains`: the domains that are free after the moves, at `level`; for a gang's place, the domains that the
    gang holds, or else the one that contains its placement. `nodes`: the nodes of the free domains, or those
    that the gang uses or holds. `before`, `after`: the cluster before and after the moves. `exact`: True
    if no cheaper moves are sufficient; False if the search skipped some sets. `gang`: the answer for the gang
    that gets the place; None for whole domains.
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
        """The cost of all moves."""
        return cost_of(move.movable for move in self.moves)

    def to_json(self) -> dict[str, Any]:
        """Returns the moves as plain JSON."""
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
    """Explains why there are no moves. `reason`: a CamelCase token; `message`: the same as text, with the
    numbers.

    `kept`: domains that cannot be freed, each with the reason. `exact`: whether all sets of movables were
    searched.
    """

    reason: str
    message: str
    kept: Mapping[Domain, str] = field(default_factory=dict)
    exact: bool = True

    def to_json(self) -> dict[str, Any]:
        """Returns the explanation as plain JSON."""
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
