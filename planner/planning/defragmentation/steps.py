"""The order in which moves are carried out: which movable leaves next, where it goes, and when to stop. Pure.

The caller first cordons the nodes to free, so that no new pod arrives. Bayplan's controller, in the leading
replica, then moves the reservations of gangs off the cordoned nodes. Each step is decided from the current
snapshot, because the state may have changed since the moves were found. Any unexpected change is a
`UnexpectedChange`, which ends the moves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from planner.model.words import listed
from planner.planning.defragmentation.evacuation import WithoutPlace, evacuate, largest_first
from planner.planning.defragmentation.joint_plan import Plan
from planner.planning.defragmentation.movable import Movable
from planner.planning.defragmentation.occupants import Occupants

_SHOWN = 4
"""Maximum number of nodes, pods or gangs that a message names."""


@dataclass(frozen=True, slots=True)
class MoveTask:
    """The nodes to free, with the names of the pods and of the movables (`names`) that are to leave them.

    `holds`: by movable, its reservation, if it has one. The reservation has left these nodes already: it
    holds the new place before a pod is evicted.
    """

    nodes: frozenset[str]
    pods: frozenset[str]
    names: frozenset[str]
    holds: Mapping[str, Reservation]


@dataclass(frozen=True, slots=True)
class Step:
    """The next movable to move: its pods to evict (`evicts`) and its new place.

    `reserved`: whether the movable has a reservation, which holds the place; if not, the place was only found
    free. `pods_of_controller`: for a single pod, the number of bound single pods of the same controller,
    itself included.
    """

    movable: Movable
    evicts: tuple[BoundPod, ...]
    place: Reservation
    reserved: bool
    pods_of_controller: int = 0


@dataclass(frozen=True, slots=True)
class UnexpectedChange:
    """An unexpected change, which ends the moves; `message`: the change, as a sentence without full stop."""

    message: str


@dataclass(frozen=True, slots=True)
class NotYet:
    """The moves have to wait; `message`: for what, as the end of a sentence that begins with "waiting"."""

    message: str


def move_task(
    snapshot: Snapshot,
    movables: Iterable[Movable],
    nodes: Iterable[str],
    planned: Collection[str] | None = None,
) -> MoveTask | NotYet | UnexpectedChange:
    """Returns the task if the nodes are cordoned and all reservations have left them; until then `NotYet`.

    Returns a `UnexpectedChange` if something on the nodes cannot be moved. `planned`: the names of the
    movables for which moves were found; any other movable on the nodes is a `UnexpectedChange` too. None
    allows all movables.
    """
    closed = sorted(nodes)
    if any(name in snapshot.nodes and not snapshot.nodes[name].cordoned for name in closed):
        return NotYet("for the cordons to be seen")
    if holders := _holders(snapshot, closed):
        return NotYet(f"for the leader to move the reservations of {listed(holders, _SHOWN)}")
    occupants = Occupants.of(snapshot, _as_if_allowed(movables))
    names, why = occupants.leaving(closed)
    if why:
        return UnexpectedChange(why)
    if planned is not None and names - frozenset(planned):
        return UnexpectedChange(f"{min(names - frozenset(planned))} has come since the moves were found")
    pods = frozenset(pod.name for name in names for pod in occupants.movables[name].pods)
    holds = {name: held for name in names if (held := snapshot.holding(name)) is not None}
    return MoveTask(frozenset(closed), pods, names, holds)


def _holders(snapshot: Snapshot, nodes: Iterable[str]) -> list[str]:
    """Returns the gangs whose reservation holds or uses one of these nodes, sorted by name."""
    return sorted({held.gang for node in nodes for held, _ in snapshot.holds.on(node)})


def next_step(
    snapshot: Snapshot, movables: Collection[Movable], task: MoveTask, plan: Plan, done: Iterable[str] = ()
) -> Step | NotYet | UnexpectedChange | None:
    """Returns the step that evicts one of the movables that are still on the nodes: the largest that
    PodDisruptionBudgets allow to evict now. Returns None if all have left.

    Returns `NotYet` if the budgets allow none of the evictions, and a `UnexpectedChange` after an unexpected
    change. `done`: the names of movables that have left.
    """
    kept = {movable.name: movable.kept_because for movable in movables if movable.kept_for_now}
    occupants = Occupants.of(snapshot, _as_if_allowed(movables))
    absent = task.names - frozenset(done) - occupants.movables.keys()
    if absent:
        return UnexpectedChange(f"{min(absent)} is gone")
    disturbed = _unexpected_change(snapshot, task)
    if disturbed is not None:
        return disturbed
    names, why = occupants.leaving(sorted(task.nodes))
    if why:
        return UnexpectedChange(why)
    if not names:
        return None
    ready = names - kept.keys()
    if not ready:
        return NotYet(f"to evict {min(names)}, which {kept[min(names)]}")
    largest = largest_first(occupants.movables[name] for name in ready)[0]
    return _step(snapshot, occupants, largest, task, plan)


def arrived(
    snapshot: Snapshot, movables: Iterable[Movable], task: MoveTask, step: Step
) -> NotYet | UnexpectedChange | None:
    """Returns None if the evicted pods of the step have left the nodes and as many are bound again; until
    then `NotYet`, or a `UnexpectedChange` if a pod of the gang is bound outside its reserved place.
    """
    evicted, before = {pod.name for pod in step.evicts if pod.node in task.nodes}, step.movable
    still = [p.name for node in sorted(task.nodes) for p in snapshot.bound.on(node) if p.name in evicted]
    if still:
        return NotYet(f"for {listed(still, _SHOWN)} to end")
    if before.maker:
        count, wanted = sum(other.maker == before.maker for other in movables), step.pods_of_controller
    else:
        gang = next((other for other in movables if other.name == before.name), None)
        outside = sorted(gang.nodes - step.place.touched) if gang is not None and step.reserved else []
        if outside:
            place = listed(sorted(step.place.touched), _SHOWN)
            return UnexpectedChange(f"{before.name} has a pod on {outside[0]}; its place is {place}")
        count, wanted = len(gang.pods) if gang is not None else 0, len(before.pods)
    return None if count >= wanted else NotYet(f"for {before.name}: {count} of {wanted} pods are on nodes")


def _unexpected_change(snapshot: Snapshot, task: MoveTask) -> UnexpectedChange | None:
    """Returns an unexpected change of the nodes since they were cordoned; None if there is none."""
    for node in sorted(task.nodes):
        if node not in snapshot.nodes:
            return UnexpectedChange(f"node {node} is gone")
        if not snapshot.nodes[node].cordoned:
            return UnexpectedChange(f"node {node} is not cordoned any more")
        for pod in snapshot.bound.on(node):
            if not pod.daemon and pod.name not in task.pods:
                return UnexpectedChange(f"pod {pod.name} has come to {node}")
    return None


def _as_if_allowed(movables: Iterable[Movable]) -> list[Movable]:
    """Returns the movables as if every PodDisruptionBudget allowed all evictions."""
    return [replace(movable, kept_because="") if movable.kept_for_now else movable for movable in movables]


def _step(
    snapshot: Snapshot, occupants: Occupants, movable: Movable, task: MoveTask, plan: Plan
) -> Step | UnexpectedChange:
    """Returns the step that evicts the movable. Its new place is that of its reservation; a movable without
    a reservation gets a place that is free now.
    """
    pods_of_controller = sum(
        bool(movable.maker) and m.maker == movable.maker for m in occupants.movables.values()
    )
    held = snapshot.holding(movable.name)
    if held is None and movable.name not in task.holds:
        moves = evacuate(snapshot, [movable], task.nodes, plan)
        if isinstance(moves, WithoutPlace):
            return UnexpectedChange(f"{movable.name} has no other place now: {moves.answer.message}")
        return Step(
            movable, movable.pods, moves[0].reservation, reserved=False, pods_of_controller=pods_of_controller
        )
    before = task.holds.get(movable.name)
    if held is None or before is None or _seats(held) != _seats(before):
        return UnexpectedChange(f"the reservation of {movable.name} has changed")
    leaving = tuple(pod for pod in movable.pods if pod.node not in held.touched)
    return Step(movable, leaving, held, reserved=True, pods_of_controller=pods_of_controller)


def _seats(held: Reservation) -> object:
    return held.nodes, held.assignments
