"""A Topology that is deleted, loses a level or is detached while gangs have places in it or want some. Pure.

What runs goes on (Run:ai's documents, "Known Limitations"); what waits, or is resumed later, finds no such
topology, and its scheduler says so in its log at best. Whoever takes it away hears it from `kubectl`.

Kueue's Topologies are attached by the `topologyName` of a ResourceFlavor; to detach one is to change that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.cluster.snapshot import Snapshot
from webhook.placement.fair_order import WaitingGang
from webhook.wire.request import AdmissionRequest

KUEUE_GROUP = "kueue.x-k8s.io"
GROUPS = ("kai.scheduler", KUEUE_GROUP, "bayplan.dev")
"""Whose Topology objects gangs are planned in."""


MOST_NAMED = 3
"""Gangs or queues that a warning names."""


@dataclass(frozen=True, slots=True)
class _Loss:
    """What a request takes away: the Topology of that name whole (`levels` empty), or these levels of it.
    `words` name it in a sentence; `kueues`: it is one of Kueue's, to which LocalQueues lead."""

    topology: str
    words: str
    levels: tuple[str, ...] = ()
    kueues: bool = False


def still_used(
    request: AdmissionRequest, snapshot: Snapshot, waiting: Callable[[], Iterable[WaitingGang]]
) -> str:
    """Who uses the Topology that a request takes away, in a sentence; "" where nobody does, or for any other
    request. `waiting` gives the whole queue, which takes work: it is asked for such a request alone."""
    loss = _loss(request)
    if loss is None:
        return ""
    levels, name = set(loss.levels), loss.topology
    held = {r.gang for r in snapshot.reservations if r.topology == name and (not levels or r.level in levels)}
    asking = {
        gang.group.name
        for gang in waiting()
        if gang.group.constraint.topology == name
        and (not levels or {gang.group.constraint.required, gang.group.constraint.preferred} & levels)
    }
    leading = snapshot.base.schedulers.queue_topologies if loss.kueues else {}
    queues = {queue for queue, names in leading.items() if name in names}
    uses = [
        text
        for text in (
            _enumerated("gang", "with a place in it", held),
            _enumerated("gang", "waiting for one", asking),
            _enumerated("LocalQueue", "that leads to it" if len(queues) == 1 else "that lead to it", queues),
        )
        if text
    ]
    if not uses:
        return ""
    return (
        f"{loss.words} is still used by {' and '.join(uses)}. What runs goes on; what waits, or starts "
        "again, does not find it. What would work: take it away when they have ended"
    )


def _loss(request: AdmissionRequest) -> _Loss | None:
    """What a request takes away of a topology; None for any other request."""
    old, group = request.old_object, request.kind.group
    if old is None:
        return None
    if request.kind.kind == "ResourceFlavor" and group == KUEUE_GROUP:
        attached = _attached(old)
        words = f"topology {attached}, which ResourceFlavor {request.name} no longer names,"
        detached = attached and attached != _attached(request.object or {})
        return _Loss(attached, words, kueues=True) if detached else None
    if request.kind.kind != "Topology" or group not in GROUPS:
        return None
    of_kueue = group == KUEUE_GROUP
    levels = _levels(old)
    if request.object is None:
        return _Loss(request.name, f"topology {request.name}", kueues=of_kueue) if levels else None
    gone = tuple(level for level in levels if level not in _levels(request.object))
    words = f"level {', '.join(gone)} of topology {request.name}"
    return _Loss(request.name, words, gone, of_kueue) if gone else None


def _enumerated(noun: str, relation: str, names: set[str]) -> str:
    """How many there are, and the first of them; "" for none."""
    first = ", ".join(sorted(names)[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    plural = "" if len(names) == 1 else "s"
    return f"{len(names)} {noun}{plural} {relation} ({first})" if names else ""


def _attached(flavor: Mapping[str, Any]) -> str:
    """The Topology that a ResourceFlavor names, "" for none."""
    spec = flavor.get("spec")
    return str(spec.get("topologyName") or "") if isinstance(spec, Mapping) else ""


def _levels(topology: Mapping[str, Any]) -> list[str]:
    """The label keys of a Topology's levels; what is malformed has none."""
    spec = topology.get("spec")
    levels = spec.get("levels") if isinstance(spec, Mapping) else None
    rows = levels if isinstance(levels, list) else []
    return [str(row.get("nodeLabel")) for row in rows if isinstance(row, Mapping)]
