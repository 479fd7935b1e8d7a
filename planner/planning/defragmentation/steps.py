"""How moves are carried out: which movable leaves next, with which place, and what stops all of it. Pure.

The nodes to free are cordoned first. So whoever keeps reservations true to the cluster moves those of the
gangs there by itself, and no new pod comes. Each step is then looked at anew: what was true when the moves
were found may not be so any more, and the first thing that nobody expected is a `Surprise`, which ends it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from planner.model.words import listed
from planner.planning.defragmentation.evacuation import WithoutPlace, evacuate, largest_first
from planner.planning.defragmentation.movable import Movable
from planner.planning.defragmentation.occupants import Occupants

_SHOWN = 4
"""Nodes, pods or gangs that are named in a message."""


@dataclass(frozen=True, slots=True)
class Errand:
    """The nodes to free, the pods that are to leave them, and the movables whose they are.

    `holds`: what each of those that hold a place holds now, off these nodes: reserved before a pod goes.
    """

    nodes: frozenset[str]
    pods: frozenset[str]
    names: frozenset[str]
    holds: Mapping[str, Reservation]


@dataclass(frozen=True, slots=True)
class Step:
    """One movable's pods to evict, and the place that it gets.

    `reserved`: the place is held for it; else it was found free a moment ago. `siblings`: of a pod by itself,
    how many pods of its maker are on nodes.
    """

    movable: Movable
    evicts: tuple[BoundPod, ...]
    place: Reservation
    reserved: bool
    siblings: int = 0


@dataclass(frozen=True, slots=True)
class Surprise:
    """What nobody expected, as a sentence without its full stop."""

    message: str


@dataclass(frozen=True, slots=True)
class NotYet:
    """What is waited for, as the end of a sentence that begins with "waiting"."""

    message: str


def errand(
    snapshot: Snapshot,
    movables: Iterable[Movable],
    nodes: Iterable[str],
    planned: Collection[str] | None = None,
) -> Errand | NotYet | Surprise:
    """What is to be done, once the nodes are cordoned and the reservations have left them.

    `planned`: those that are to leave by the moves that were found; None for whoever is there.
    """
    closed = sorted(nodes)
    if any(name in snapshot.nodes and not snapshot.nodes[name].cordoned for name in closed):
        return NotYet("for the cordons to be seen")
    if holders := _holders(snapshot, closed):
        return NotYet(f"for the leader to move the reservations of {listed(holders, _SHOWN)}")
    occupants = Occupants.of(snapshot, _once_allowed(movables))
    names, why = occupants.on(closed)
    if why:
        return Surprise(why)
    if planned is not None and names - frozenset(planned):
        return Surprise(f"{min(names - frozenset(planned))} has come since the moves were found")
    pods = frozenset(pod.name for name in names for pod in occupants.movables[name].pods)
    holds = {name: held for name in names if (held := snapshot.holding(name)) is not None}
    return Errand(frozenset(closed), pods, names, holds)


def _holders(snapshot: Snapshot, nodes: Iterable[str]) -> list[str]:
    """The gangs whose reservation holds or uses one of these nodes, by name."""
    return sorted({held.gang for node in nodes for held, _ in snapshot.holds.on(node)})


def next_step(
    snapshot: Snapshot, movables: Collection[Movable], task: Errand, done: Iterable[str] = ()
) -> Step | NotYet | Surprise | None:
    """The largest of those that are still there, with its place; None once nobody is. `done`: those that have
    left."""
    kept = {movable.name: movable.keeps for movable in movables if movable.for_now}
    occupants = Occupants.of(snapshot, _once_allowed(movables))
    absent = task.names - frozenset(done) - occupants.movables.keys()
    if absent:
        return Surprise(f"{min(absent)} is gone")
    disturbed = _disturbed(snapshot, task)
    if disturbed is not None:
        return disturbed
    names, why = occupants.on(sorted(task.nodes))
    if why:
        return Surprise(why)
    if not names:
        return None
    ready = names - kept.keys()
    if not ready:
        return NotYet(f"to evict {min(names)}, which {kept[min(names)]}")
    return _step(snapshot, occupants, largest_first(occupants.movables[name] for name in ready)[0], task)


def arrived(
    snapshot: Snapshot, movables: Iterable[Movable], task: Errand, step: Step
) -> NotYet | Surprise | None:
    """None once the pods of a step have left the nodes, and as many are on nodes again."""
    evicted, before = {pod.name for pod in step.evicts if pod.node in task.nodes}, step.movable
    still = [p.name for node in sorted(task.nodes) for p in snapshot.bound.on(node) if p.name in evicted]
    if still:
        return NotYet(f"for {listed(still, _SHOWN)} to end")
    if before.maker:
        count, wanted = sum(other.maker == before.maker for other in movables), step.siblings
    else:
        gang = next((other for other in movables if other.name == before.name), None)
        outside = sorted(gang.nodes - step.place.touched) if gang is not None and step.reserved else []
        if outside:
            place = listed(sorted(step.place.touched), _SHOWN)
            return Surprise(f"{before.name} has a pod on {outside[0]}; its place is {place}")
        count, wanted = len(gang.pods) if gang is not None else 0, len(before.pods)
    return None if count >= wanted else NotYet(f"for {before.name}: {count} of {wanted} pods are on nodes")


def _disturbed(snapshot: Snapshot, task: Errand) -> Surprise | None:
    """What others did to the nodes since they were cordoned."""
    for node in sorted(task.nodes):
        if node not in snapshot.nodes:
            return Surprise(f"node {node} is gone")
        if not snapshot.nodes[node].cordoned:
            return Surprise(f"node {node} is not cordoned any more")
        for pod in snapshot.bound.on(node):
            if not pod.daemon and pod.name not in task.pods:
                return Surprise(f"pod {pod.name} has come to {node}")
    return None


def _once_allowed(movables: Iterable[Movable]) -> list[Movable]:
    """As if every PodDisruptionBudget allowed what it does not allow for now."""
    return [replace(movable, keeps="") if movable.for_now else movable for movable in movables]


def _step(snapshot: Snapshot, occupants: Occupants, movable: Movable, task: Errand) -> Step | Surprise:
    siblings = sum(bool(movable.maker) and m.maker == movable.maker for m in occupants.movables.values())
    held = snapshot.holding(movable.name)
    if held is None and movable.name not in task.holds:
        moves = evacuate(snapshot, [movable], task.nodes)
        if isinstance(moves, WithoutPlace):
            return Surprise(f"{movable.name} has no other place now: {moves.answer.message}")
        return Step(movable, movable.pods, moves[0].reservation, reserved=False, siblings=siblings)
    before = task.holds.get(movable.name)
    if held is None or before is None or _seats(held) != _seats(before):
        return Surprise(f"the reservation of {movable.name} has changed")
    leaving = tuple(pod for pod in movable.pods if pod.node not in held.touched)
    return Step(movable, leaving, held, reserved=True, siblings=siblings)


def _seats(held: Reservation) -> object:
    return held.nodes, held.assignments
