"""Warns when a Topology is deleted, loses a level or is detached while gangs use it or wait for it. Pure.

Running pods are not affected (Run:ai's documentation, "Known Limitations"). Gangs that wait, or are resumed
later, do not find the topology, and their scheduler only logs that, if anything. The user who removes the
topology is therefore warned.

A ResourceFlavor uses a Topology of Kueue by its `topologyName`; a change of that field detaches the Topology.
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
"""API groups of the Topology objects in which gangs are planned."""


MOST_NAMED = 3
"""Maximum number of gangs, and of queues, that a warning names."""


@dataclass(frozen=True, slots=True)
class _Loss:
    """What a request removes: the whole Topology (`levels` is empty), or these `levels` of it. `words`: text
    that names what is removed. `kueues`: whether it is Kueue's kind of Topology, which LocalQueues use by
    their flavors.
    """

    topology: str
    words: str
    levels: tuple[str, ...] = ()
    kueues: bool = False


def still_used(
    request: AdmissionRequest, snapshot: Snapshot, waiting: Callable[[], Iterable[WaitingGang]]
) -> str:
    """Returns a sentence that names the gangs and queues that use what a request removes of a Topology; "" if
    there are none, or if the request removes nothing.

    `waiting`: returns all waiting gangs; called only if the request removes something, because it is
    expensive.
    """
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
    """Returns what a request removes of a topology; None if it removes nothing."""
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
    """Returns text with the number of names and the first of them; "" if there are no names."""
    first = ", ".join(sorted(names)[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    plural = "" if len(names) == 1 else "s"
    return f"{len(names)} {noun}{plural} {relation} ({first})" if names else ""


def _attached(flavor: Mapping[str, Any]) -> str:
    """Returns the Topology that a ResourceFlavor names, "" for none."""
    spec = flavor.get("spec")
    return str(spec.get("topologyName") or "") if isinstance(spec, Mapping) else ""


def _levels(topology: Mapping[str, Any]) -> list[str]:
    """Returns the label keys of a Topology's levels; none if it is malformed."""
    spec = topology.get("spec")
    levels = spec.get("levels") if isinstance(spec, Mapping) else None
    rows = levels if isinstance(levels, list) else []
    return [str(row.get("nodeLabel")) for row in rows if isinstance(row, Mapping)]
