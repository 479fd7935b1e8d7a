"""The state of each gang in a cluster: which hold a place, which wait and for what. Pure.

`standings` asks the rules of the controller, so the result is what the controller decides in its next round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from planner.cluster.census.domains import gpus_of
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.priority import priority_of
from planner.model.reservation import Reservation
from webhook.kube.controller import reconcile as rules
from webhook.kube.controller import steps
from webhook.kube.controller.evictions import BehindUnstarted
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import Gang
from webhook.placement.fair_order import QueuePlace

State = Literal["running", "starting", "admitted", "waiting", "stuck"]
"""`running`: pods of the gang are bound, and none of its existing pods is unbound. `starting`: the gang holds
a place, and has no bound pod, or some unbound ones. `admitted`: the gang waits, and the controller places it
in its next round. `waiting`: the gang is in the queue, or its scheduler may not evict others for it yet.
`stuck`: the gang lost nodes of its place, and there is no other place.
"""


@dataclass(frozen=True, slots=True)
class GangStanding:
    """The state of one gang. `group`: its request; None if only its reservation is known. `created`: when its
    object was created, in seconds since the epoch; 0 if only its reservation is known.

    `position`: its position in the queue, from 1; 0 if the gang is not queued. `place`: why it has this
    position; None if it is not queued. `bound`: the number of its pods on nodes, at most its size.
    `surplus`: the number of pods on nodes beyond its size, for example one that terminates while its
    replacement has started. `gated`: the number of pods that wait at Bayplan's scheduling gate.

    `unbound`: the pods of a gang with a place that have been on no node for long, as in `steps.LeftUnbound`;
    `outdated`: those of them that are pinned to a former place.

    `reservation`: what the gang holds, or will hold if it is `admitted`; None if it is `waiting`. `answer`:
    the planner's answer, for example why it waits or is stuck; None if it was not planned.
    """

    name: str
    state: State
    group: PodGroup | None = None
    priority: int = 0
    created: float = 0.0
    position: int = 0
    bound: int = 0
    surplus: int = 0
    gated: int = 0
    unbound: tuple[Unbound, ...] = ()
    outdated: tuple[Unbound, ...] = ()
    reservation: Reservation | None = None
    answer: Answer | None = None
    place: QueuePlace | None = None

    @property
    def pods(self) -> int:
        """The number of pods that the gang requests, or for which it holds a place if only its reservation is
        known.
        """
        if self.group is not None:
            return self.group.size
        held = self.reservation.assignments if self.reservation is not None else ()
        return sum(part.count for part in held)

    @property
    def gpus(self) -> int:
        """The number of whole GPUs that the gang requests, or holds if only its reservation is known."""
        if self.group is not None:
            return self.group.gpus
        held = self.reservation
        if held is None:
            return 0
        per_pod = {pod_set: gpus_of(amounts) for pod_set, amounts in held.requests}
        return sum(per_pod.get(part.pod_set, 0) * part.count for part in held.assignments)

    def waits_for(self, *, wide: bool) -> str:
        """Returns the answer's message up to the first semicolon, or with `wide` all of it; without an
        answer, that the gang has not been planned yet.
        """
        if self.answer is None:
            return "its turn: it is planned when it is nearer to the front"
        message = self.answer.message
        return message if wide else message.split("; ")[0]

    def to_json(self) -> dict[str, object]:
        """Returns plain JSON for `queue -o json`, `why -o json` and the live page."""
        held, answer = self.reservation, self.answer
        created = datetime.fromtimestamp(self.created, UTC).isoformat() if self.created else None
        entry: dict[str, object] = {
            "name": self.name,
            "state": self.state,
            "position": self.position or None,
            "pods": {
                "wanted": self.pods,
                "bound": self.bound,
                "gated": self.gated,
                **({"surplus": self.surplus} if self.surplus else {}),
                **({"unbound": len(self.unbound)} if self.unbound else {}),
            },
            "gpus": self.gpus,
            "priority": self.priority,
            "created": created,
        }
        if self.place is not None:
            entry["namespaceWouldHave"] = {"gpus": self.place.with_it, "of": self.place.total}
        if held is not None:
            domains = [list(domain) for domain in held.domains]
            entry["holds"] = {
                "mode": held.mode,
                "domains": domains,
                "nodes": held_nodes(held),
                "id": held.id,
            }
        if answer is not None:
            attempts = [
                {"level": attempt.level or None, "fits": attempt.fits, "wanted": attempt.wanted}
                for attempt in answer.attempts
            ]
            entry |= {"reason": answer.reason, "message": answer.message}
            entry |= {"obstacles": dict(answer.obstacles), "levels": attempts}
        return entry


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """The cluster at one moment. `gangs`: gangs with a place by name, then admitted ones, those that wait
    before their scheduler may evict others, and the queue in order.

    `snapshot` contains the reservations. `leader`: the replica whose controller works, "" for none. `unread`:
    the paths that the user may not read. `now`: seconds since the epoch.
    """

    snapshot: Snapshot
    gangs: tuple[GangStanding, ...]
    leader: str
    unread: tuple[str, ...]
    now: float

    @property
    def queue(self) -> tuple[GangStanding, ...]:
        """The queued gangs, in order."""
        return tuple(gang for gang in self.gangs if gang.position)


def standings(world: World) -> tuple[GangStanding, ...]:
    """Returns every gang with a place by name, then those that the controller admits in its next round, those
    that wait before their scheduler may evict others for them, and the queue in order.
    """
    actions = rules.reconcile(world)
    released = {action.reservation.id for action in actions if isinstance(action, steps.Release)}
    stuck = {action.gang.name: action.answer for action in actions if isinstance(action, steps.Stuck)}
    left = {action.gang.name: action for action in actions if isinstance(action, steps.LeftUnbound)}
    holding = [
        _holding(world, held, stuck, left)
        for held in sorted(world.snapshot.reservations, key=lambda held: held.gang)
        if held.id not in released
    ]
    admitted = [
        _waiting(
            world.snapshot, action.gang, "admitted", answer=action.answer, reservation=action.reservation
        )
        for action in actions
        if isinstance(action, steps.Admit)
    ]
    behind = (action for action in actions if isinstance(action, BehindUnstarted))
    at_gate = [_waiting(world.snapshot, own.gang, "waiting", answer=own.answer) for own in behind]
    waiting = [
        _waiting(world.snapshot, action.gang, "waiting", action.position, action.answer, place=action.place)
        for action in actions
        if isinstance(action, steps.WaitAction)
    ]
    return (*holding, *admitted, *at_gate, *waiting)


def _holding(
    world: World,
    held: Reservation,
    stuck: Mapping[str, Answer],
    left: Mapping[str, steps.LeftUnbound],
) -> GangStanding:
    snapshot, gang = world.snapshot, world.gangs.get(held.gang)
    bound = sum(1 for _ in snapshot.bound.of_gang(held.gang, held.id))
    unbound = len(gang.pods) if gang is not None else 0
    state: State = "stuck" if held.gang in stuck else "running" if bound and not unbound else "starting"
    left_pods = left.get(held.gang)
    size = gang.group.size if gang is not None else sum(part.count for part in held.assignments)
    return GangStanding(
        held.gang,
        state,
        gang.group if gang is not None else None,
        priority_of(snapshot.base.priorities, gang.group) if gang is not None else 0,
        gang.created if gang is not None else 0.0,
        bound=min(bound, size),
        surplus=max(bound - size, 0),
        gated=sum(pod.gated for pod in gang.pods) if gang is not None else 0,
        unbound=left_pods.pods if left_pods is not None else (),
        outdated=left_pods.outdated if left_pods is not None else (),
        reservation=held,
        answer=stuck.get(held.gang),
    )


def _waiting(
    snapshot: Snapshot,
    gang: Gang,
    state: State,
    position: int = 0,
    answer: Answer | None = None,
    reservation: Reservation | None = None,
    place: QueuePlace | None = None,
) -> GangStanding:
    return GangStanding(
        gang.name,
        state,
        gang.group,
        priority_of(snapshot.base.priorities, gang.group),
        gang.created,
        position,
        gated=sum(pod.gated for pod in gang.pods),
        reservation=reservation,
        answer=answer,
        place=place,
    )


def holding(held: Reservation) -> str:
    """Returns a reservation as text: the paths of whole domains, or the number of nodes of which it holds a
    part.
    """
    if held.mode == "domain":
        return ", ".join("/".join(filter(None, domain)) for domain in held.domains)
    nodes = held_nodes(held)
    return f"a part of {nodes[0]}" if len(nodes) == 1 else f"parts of {len(nodes)} nodes"


def held_nodes(held: Reservation) -> list[str]:
    """Returns the names of the nodes of the gang's pods, in order."""
    return sorted({part.node for part in held.assignments})
