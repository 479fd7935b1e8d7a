"""The planner's words: a reason, the numbers, and what would work, for a reader of kubectl's output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.answer import Answer, Assignment
from planner.podgroup import PodGroup
from planner.request import Refusal
from planner.snapshot import Snapshot
from planner.topology import Domain, Topology

if TYPE_CHECKING:
    from planner.placement import Tried

BUDGET_WARNING = (
    "SearchBudgetExhausted: the placement is valid, but the search ended before it was proved best"
)


def refused(group: PodGroup, refusal: Refusal) -> Answer:
    """The answer to a request that contradicts itself or the cluster."""
    return Answer(
        group.name, "rejected", reason=refusal.reason, message=refusal.message, warnings=group.warnings
    )


def placed(
    group: PodGroup,
    topology: Topology,
    domain: Domain,
    assignments: Sequence[Assignment],
    reserves: Sequence[Domain],
) -> str:
    """Where the gang goes, and what it holds."""
    nodes = len({assignment.node for assignment in assignments})
    where = f"{short(topology.levels[len(domain) - 1])} {'/'.join(domain)}" if domain else topology.name
    text = f"{pods(group.size)} on {nodes} node{'s' if nodes != 1 else ''} in {where}"
    if reserves:
        text += f"; reserved: {', '.join('/'.join(d) for d in reserves)}"
    return text + "."


def not_now(
    snapshot: Snapshot,
    group: PodGroup,
    tried: Sequence[Tried],
    ever: Sequence[Tried],
    fits_empty: Tried | None,
) -> Answer:
    """The answer to a gang that has no place now: queued where the empty cluster has one, else rejected."""
    complete = all(one.complete for one in (*tried, *ever))
    decision = "queued" if fits_empty is not None or not complete else "rejected"
    return Answer(
        group.name,
        "queued" if decision == "queued" else "rejected",
        topology=tried[0].tree.topology.name if tried else "",
        reason="NoRoomNow" if decision == "queued" else "NeverFits",
        message="",
        warnings=group.warnings,
    )


def pods(count: int) -> str:
    """A number of pods in words."""
    return f"{count} pod{'s' if count != 1 else ''}"


def short(level: str) -> str:
    """A level's label key as a person says it: its last word."""
    return level.rsplit("/", 1)[-1].removeprefix("topology-")
