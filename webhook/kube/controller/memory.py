"""What the controller remembers between rounds, and the states of a world that it has to remember. Pure.

A state may be transient, for example a reservation that is gone or a place that no pod uses. `reconcile` acts
on such a state once it has lasted; `Memory` lists the states that have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.cluster.snapshot import Snapshot
from planner.model.names import namespace_of
from planner.model.reservation import Reservation, reservation_id
from webhook.kube.controller.unbound_pods import left_unbound
from webhook.kube.controller.world import World
from webhook.kube.state.gathering import Gang
from webhook.placement.hold import has_bound_pod, is_used


@dataclass(frozen=True, slots=True)
class Memory:
    """What former rounds have shown.

    `deleted`: the reservations whose object is deleted, as the API server has confirmed (`ownerless`), by id.
    `missing`: the gangs whose reservation has not been in the book for a while (`gangs_without_reservation`).
    `idle`: the gangs whose place no bound pod has used for longer than their namespace allows (`unused`).
    `rounds`: the number of former rounds.
    """

    deleted: Mapping[str, Reservation] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    idle: frozenset[str] = frozenset()
    rounds: int = 0


Claim = tuple[str, str]
"""The id of a reservation, and the UID of the object that claimed it. The id alone is not enough: a later
object of the same name has the same id.
"""


def claim_of(reservation: Reservation) -> Claim:
    """Returns the claim of a reservation."""
    return reservation.id, reservation.owner_uid


NO_MEMORY = Memory()
"""The memory of a first round, and of commands that only show the cluster."""


def alive(world: World) -> frozenset[Claim]:
    """Returns the claims of the reservations whose gang exists or has bound pods."""
    held = world.snapshot.reservations
    return frozenset(claim_of(r) for r in held if r.gang in world.gangs or is_used(world.snapshot, r))


def gangs_without_reservation(world: World) -> frozenset[str]:
    """Returns the gangs that name a reservation that is not in the book.

    That may be transient: a deleted workload releases its place before the watch shows the deletion. The
    controller therefore acts only if the state lasts (`Memory.missing`).
    """
    return frozenset(gang.name for gang in world.gangs.values() if lacks_reservation(gang, world.snapshot))


def lacks_reservation(gang: Gang, snapshot: Snapshot) -> bool:
    """Returns whether the gang names a reservation that is not in the book, and needs it: the gang has not
    finished, and does not wait at Kueue's gate to start again.
    """
    if gang.finished or snapshot.holding(gang.name) is not None or _begins_in_kueue(gang, snapshot):
        return False
    return reservation_id(gang.name) in gang.ids


def _begins_in_kueue(gang: Gang, snapshot: Snapshot) -> bool:
    """Returns whether Kueue manages all of the gang's pods, and each still has Kueue's gate or Bayplan's. The
    gang then starts like a new one, from Bayplan's queue, and its former place is not restored.
    """
    at_gates = all(pod.selection is not None and (pod.gated or pod.awaits_kueue) for pod in gang.pods)
    return bool(gang.pods) and at_gates and not has_bound_pod(snapshot, gang.group)


def unused(world: World) -> dict[str, float]:
    """Returns the gangs whose claimed place no bound pod uses, each with the time since which this world
    proves that (seconds since the epoch).

    In general that is the present: bound pods may have ended a moment ago. If a scheduler has left all pods
    of the gang unbound, it is when the place was reserved, or when the last of these pods was created if that
    is later. Gangs whose reservation is not in the book are included, so that `reconcile` does not restore a
    place that no pod has used for too long.
    """
    gangs = world.gangs
    claimed = (held for held in world.snapshot.reservations if held.expires is None)
    since = {held.gang: held.created for held in claimed if not is_used(world.snapshot, held)}
    bereft_gangs = (gang for gang in gangs.values() if lacks_reservation(gang, world.snapshot))
    since |= {gang.name: 0.0 for gang in bereft_gangs if not has_bound_pod(world.snapshot, gang.group)}
    for name, held_since in since.items():
        pods = gangs[name].pods if name in gangs else ()
        all_left = len(left_unbound(pods, world.now)) == len(pods) > 0
        since[name] = max(held_since, *(pod.created for pod in pods)) if all_left else world.now
    return since


def patience(world: World, gang: str) -> float:
    """Returns for how many seconds an `unused` place of a gang is kept; infinity to keep it forever (0 in the
    settings).
    """
    return world.patience.get(namespace_of(gang)) or math.inf
