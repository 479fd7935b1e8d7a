"""A Topology that is deleted, or loses a level, while gangs hold places in it or wait for some. Pure.

What runs goes on (Run:ai's documents, "Known Limitations"); what waits, or is resumed later, finds no such
topology, and its scheduler says so in its log at best. Whoever takes it away hears it from `kubectl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from planner.cluster.snapshot import Snapshot
from webhook.placement.fair_order import WaitingGang
from webhook.wire.request import AdmissionRequest

GROUPS = ("kai.scheduler", "kueue.x-k8s.io", "bayplan.dev")
"""Whose Topology objects gangs are planned in."""


MOST_NAMED = 3
"""Gangs that a warning names."""


def still_used(
    request: AdmissionRequest, snapshot: Snapshot, waiting: Callable[[], Iterable[WaitingGang]]
) -> str:
    """Who uses the Topology that a request takes away, in a sentence; "" where nobody does, or for any other
    request. `waiting` gives the whole queue, which takes work: it is asked for such a request alone."""
    old = request.old_object
    if request.kind.kind != "Topology" or request.kind.group not in GROUPS or old is None:
        return ""
    gone = [level for level in _levels(old) if level not in _levels(request.object or {})]
    if not gone:
        return ""
    whole, name = request.object is None, request.name
    held = {r.gang for r in snapshot.reservations if r.topology == name and (whole or r.level in gone)}
    asking = {
        gang.group.name
        for gang in waiting()
        if gang.group.constraint.topology == name
        and (whole or {gang.group.constraint.required, gang.group.constraint.preferred} & set(gone))
    }
    if not held | asking:
        return ""
    lost = f"topology {name}" if whole else f"level {', '.join(gone)} of topology {name}"
    uses = filter(None, (_enumerated("with a place in it", held), _enumerated("waiting for one", asking)))
    return (
        f"{lost} is still used by {' and '.join(uses)}. What runs goes on; what waits, or starts "
        "again, does not find it. What would work: take it away when they have ended"
    )


def _enumerated(relation: str, gangs: set[str]) -> str:
    """How many gangs, and the first of them; "" for none."""
    names = ", ".join(sorted(gangs)[:MOST_NAMED]) + (", …" if len(gangs) > MOST_NAMED else "")
    plural = "" if len(gangs) == 1 else "s"
    return f"{len(gangs)} gang{plural} {relation} ({names})" if gangs else ""


def _levels(topology: Mapping[str, Any]) -> list[str]:
    """The label keys of a Topology's levels; what is malformed has none."""
    spec = topology.get("spec")
    levels = spec.get("levels") if isinstance(spec, Mapping) else None
    rows = levels if isinstance(levels, list) else []
    return [str(row.get("nodeLabel")) for row in rows if isinstance(row, Mapping)]
