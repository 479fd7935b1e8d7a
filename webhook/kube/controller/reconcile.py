"""What the controller should do now: from what is to a list of actions. Pure: no I/O, no clock.

The rules, in their order:
1. A reservation whose gang is finished or gone is released, and so is a claimed place of which no pod is on a
   node for too long; a hold whose gang is there is claimed for it.
   What Kueue has assigned to a Workload is its gang's place, as long as that stands; none of the rules below
   but the first is for the gangs that Kueue places.
   In a namespace that is not enforced (any more) what no running pod uses is released, gated pods are let go,
   and none of the rules below is for its gangs.
2. A gang that uses a node which it can use no more is planned again, with the fewest moved pods. Its place
   follows pods that were bound elsewhere than planned.
3. A gang that was admitted and whose reservation has vanished is given its place again.
4. Gated pods of a gang that holds a place are let in. KAI is told of a Job's gang that is smaller now.
5. Gangs that wait are planned in turn, by the rules of `webhook.placement.queue`: the first that has no place
   yet is never delayed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import NO_HEADROOM
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation, reservation_id
from planner.planning.plan import plan
from planner.planning.reservation import headroom
from webhook.kube.controller.follow import followed
from webhook.kube.controller.kueue_rounds import KueuePlaces, kueue_round, no_longer_assigned
from webhook.kube.controller.late_members import beside_held, with_seats
from webhook.kube.controller.replan import Move, lost_nodes, replan
from webhook.kube.controller.restore import restored
from webhook.kube.controller.scheduler_words import held_at_a_gate, left_unbound
from webhook.kube.controller.steps import (
    Action,
    Admit,
    Beside,
    ClaimFor,
    Follow,
    LeftUnbound,
    LetIn,
    MoveTo,
    Release,
    Restore,
    Stuck,
    TellSize,
    Ungate,
    WaitAction,
)
from webhook.kube.state.gangs import Unbound, Work
from webhook.kube.state.gathering import Gang, gangs_of, on_seats
from webhook.placement.fair_order import NO_RULES, QueuePlace, QueueRules, WaitingGang, in_order
from webhook.placement.gang_members import GangMember
from webhook.placement.hold import is_used, stands
from webhook.placement.hold_limits import Limits, no_limits
from webhook.placement.pod_affinity import (
    PlacementTerms,
    terms_of_annotation,
    terms_of_reservation,
    without_placement_affinity,
)
from webhook.placement.queue import plan_queue
from webhook.placement.workload_plan import short_of_place
from webhook.workloads.annotation_keys import POD_GANGS, kind_of, namespace_of

GRACE_SECONDS = 10.0
"""How long a claimed reservation may be there before the leader sees its workload: whoever claimed it has
seen the workload in a watch of its own, which may be ahead of the leader's by a moment."""


MAX_PLANNED = 64
"""Waiting gangs that one pass plans, so that a pass ends within seconds; those behind them are told their
position only."""


@dataclass(frozen=True, slots=True)
class World:
    """What is known at one moment. `kinds`: the workload kinds that are watched and whole.

    `seen`: the ids of reservations whose gang was once seen.
    `missing`: the gangs that have named a reservation for a while which is not in the book (`bereft`).
    `observed`: the namespaces that are not enforced. `left`: by gang the nodes that it was moved off.
    `idle`: the gangs whose place no pod has been on for longer than their namespace has patience (`unused`);
    `patience`: by namespace for how many seconds such a place is kept; 0 is for ever.
    `limits`: what the gangs of a namespace may hold. `rules`: those of the queue's order.
    `kueue`: the places that Kueue has assigned; None where that is not known.
    """

    snapshot: Snapshot
    works: tuple[Work, ...]
    pods: tuple[Unbound, ...]
    kinds: frozenset[str]
    seen: frozenset[str]
    now: float
    missing: frozenset[str] = frozenset()
    observed: frozenset[str] = frozenset()
    left: Mapping[str, frozenset[str]] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
    patience: Mapping[str, float] = field(default_factory=dict)
    limits: Limits = no_limits
    rules: QueueRules = NO_RULES
    kueue: KueuePlaces | None = None


def reconcile(world: World) -> list[Action]:
    """Everything that is to be done now, in order."""
    gangs = gangs_of(world.works, world.pods)
    actions: list[Action] = []
    snapshot = world.snapshot
    for reservation in world.snapshot.reservations:
        gang = gangs.get(reservation.gang)
        why = _over(world, reservation, gang)
        if why:
            actions.append(Release(reservation, why, gang))
            snapshot = snapshot.without(reservation.gang)
        elif gang is not None and reservation.expires is not None and gang.ref.uid:
            actions.append(ClaimFor(reservation, gang))
        elif gang is not None and gang.name in world.idle:
            if pods := left_unbound(gang.pods, world.now):
                actions.append(LeftUnbound(gang, pods))
            actions.append(Release(reservation, _unused_for(world, gang), gang))
            snapshot = snapshot.without(gang.name)
    actions += _ungated(world, gangs)
    actions += [
        TellSize(work.ref, work.size_left)
        for work in world.works
        if work.size_left and not work.finished and work.ref.namespace not in world.observed
    ]
    gangs = {name: gang for name, gang in gangs.items() if namespace_of(name) not in world.observed}
    by_kueue = kueue_round(snapshot, gangs, world.kueue, world.observed)
    snapshot = by_kueue.snapshot
    actions += by_kueue.actions
    actions += _left_by_schedulers(world, (gang for name, gang in gangs.items() if name in by_kueue.gangs))
    gangs = {name: gang for name, gang in gangs.items() if name not in by_kueue.gangs}
    for reservation in snapshot.reservations:
        gang = gangs.get(reservation.gang)
        if gang is not None:
            snapshot, actions_due = _kept(snapshot, gang, reservation, world)
            actions += actions_due
            actions += _left_by_schedulers(world, [gang])
    actions += [
        LeftUnbound(gang, pods)
        for gang in gangs.values()
        if gang.held_back and not gang.finished and (pods := held_at_a_gate(gang.pods, world.now))
    ]
    for gang in gangs.values():
        if gang.name in world.missing and _bereft(gang, snapshot) and gang.name not in world.idle:
            snapshot, action = _restored(snapshot, gang)
            actions.append(action)
    left = [gang for gang in gangs.values() if not gang.finished and snapshot.holding(gang.name) is None]
    actions += [
        LetIn(gang, None, gated)
        for gang in left
        if gang.group.on_unavailable == "admit" and (gated := tuple(pod for pod in gang.pods if pod.gated))
    ]
    waiting = [gang for gang in left if gang.waits]
    ready = [_as_known(snapshot, _freed(snapshot, gang)) for gang in waiting]
    return actions + queue(snapshot, ready, world.limits, world.rules)


def _left_by_schedulers(world: World, gangs: Iterable[Gang]) -> Iterator[Action]:
    for gang in gangs:
        if pods := left_unbound(gang.pods, world.now):
            yield LeftUnbound(gang, pods)


def bereft(world: World) -> frozenset[str]:
    """The gangs that name a reservation which the book does not have now.

    It may only seem so: a workload that is deleted gives its place back before the watch tells that it is
    gone. So the controller acts on what stays so for a while (`World.missing`).
    """
    gangs = gangs_of(world.works, world.pods).values()
    return frozenset(gang.name for gang in gangs if _bereft(gang, world.snapshot))


def patience(world: World, gang: str) -> float:
    """For how many seconds a gang's place is kept that is `unused`."""
    return world.patience.get(namespace_of(gang)) or math.inf


def _unused_for(world: World, gang: Gang) -> str:
    return f"no pod was bound to it for {patience(world, gang.name):g} s; it is held again once one is"


def _bereft(gang: Gang, snapshot: Snapshot) -> bool:
    if gang.finished or snapshot.holding(gang.name) is not None:
        return False
    return reservation_id(gang.name) in gang.ids


def _restored(snapshot: Snapshot, gang: Gang) -> tuple[Snapshot, Action]:
    outcome = restored(snapshot, gang.group, _freed(snapshot, gang).group)
    if isinstance(outcome, Reservation):
        snapshot = snapshot.with_reservation(outcome)
        return snapshot, Restore(gang, outcome, headroom(snapshot, outcome))
    return snapshot, Stuck(gang, "its reservation", outcome)


def alive(world: World) -> frozenset[str]:
    """The ids of the reservations whose gang is there now: the controller remembers them as seen."""
    names = {gang.name for gang in gangs_of(world.works, world.pods).values()}
    held = world.snapshot.reservations
    return frozenset(r.id for r in held if r.gang in names or is_used(world.snapshot, r))


def unused(world: World) -> dict[str, float]:
    """The gangs whose claimed place no pod on a node makes use of, those among them whose place is gone, and
    since when at least: where a scheduler has left all pods of a gang, since those are there, else since now.
    """
    gangs = gangs_of(world.works, world.pods)
    claimed = (held for held in world.snapshot.reservations if held.expires is None)
    since = {held.gang: held.created for held in claimed if not is_used(world.snapshot, held)}
    left = (gang for gang in gangs.values() if _bereft(gang, world.snapshot))
    since |= {gang.name: 0.0 for gang in left if not stands(world.snapshot, gang.group)}
    for name, held_since in since.items():
        pods = gangs[name].pods if name in gangs else ()
        left_all = len(left_unbound(pods, world.now)) == len(pods) > 0
        since[name] = max(held_since, *(pod.created for pod in pods)) if left_all else world.now
    return since


def queue(
    snapshot: Snapshot, waiting: Iterable[Gang], limits: Limits = no_limits, rules: QueueRules = NO_RULES
) -> list[Action]:
    """Who of those that wait is let in, and the position of the others."""
    ready = {gang.name: gang for gang in waiting}
    places = in_order(snapshot, (WaitingGang(gang.group, gang.created) for gang in ready.values()), rules)
    ordered = [(ready[place.gang.group.name], place) for place in places]
    planned, behind = ordered[:MAX_PLANNED], ordered[MAX_PLANNED:]
    turns, _ = plan_queue(snapshot, (gang.group for gang, _ in planned), limits)
    admits: list[Action] = []
    left: list[tuple[Gang, QueuePlace, Answer | None]] = []
    short = short_of_place((gang.group, turn.answer) for (gang, _), turn in zip(planned, turns, strict=True))
    short |= {gang.group.joint for gang, _ in behind}
    for (gang, place), turn in zip(planned, turns, strict=True):
        if turn.answer.decision == "admitted" and gang.group.joint and gang.group.joint in short:
            left.append((gang, place, None))
        elif turn.answer.decision == "admitted":
            taken = turn.reservation
            room = headroom(turn.after, taken) if taken is not None else NO_HEADROOM
            admits.append(Admit(gang, turn.answer, taken, room))
        elif turn.answer.grows and (gated := tuple(pod for pod in gang.pods if pod.gated)):
            admits.append(LetIn(gang, None, gated))  # no autoscaler adds a node for a gated pod
        else:
            left.append((gang, place, turn.answer))
    left += [(gang, place, None) for gang, place in behind]
    waits = (
        WaitAction(gang, position, len(left), answer, place)
        for position, (gang, place, answer) in enumerate(left, 1)
    )
    return [*admits, *waits]


def _over(world: World, reservation: Reservation, gang: Gang | None) -> str:
    """Why a reservation has no more use; "" while it has."""
    kind = kind_of(reservation.gang)
    used = is_used(world.snapshot, reservation)
    if gang is not None and gang.finished and not (used and gang.members):
        return "finished"
    if namespace_of(reservation.gang) in world.observed and not used:
        return "its namespace is not enforced"
    if ended := no_longer_assigned(reservation, world.kueue):
        return ended
    if gang is not None or used:
        return ""
    if kind not in POD_GANGS and kind not in world.kinds:
        return ""
    if any(reservation.id in pod.ids for pod in world.pods):
        return ""
    # A gang of several objects lives as long as any of them: between two tries a Job has no pod at all.
    space = namespace_of(reservation.gang)
    alive = (w for w in world.works if w.ref.namespace == space and not (w.finished or w.leaving))
    if kind in POD_GANGS and any(reservation.id in work.ids for work in alive):
        return ""
    settled = reservation.id in world.seen or world.now - reservation.created > GRACE_SECONDS
    return "deleted" if settled and reservation.expires is None else ""


def _ungated(world: World, gangs: Mapping[str, Gang]) -> Iterator[Ungate]:
    """The pods that wait in namespaces that are not enforced, gang by gang, then those of no gang."""
    left = {pod.ref: pod for pod in world.pods if pod.gated and pod.ref.namespace in world.observed}
    for gang in gangs.values():
        pods = tuple(left.pop(pod.ref) for pod in gang.pods if pod.ref in left)
        if pods:
            yield Ungate(gang.ref, pods)
    for pod in left.values():
        yield Ungate(pod.ref, (pod,))


def _kept(
    snapshot: Snapshot, gang: Gang, reservation: Reservation, world: World
) -> tuple[Snapshot, list[Action]]:
    """What a gang that holds a place needs: another place, its pods let in, room for a member that came
    later, or nothing."""
    actions: list[Action] = []
    left = world.left.get(gang.name, frozenset())
    refs = {member.uid: tuple(ref for ref in gang.refs if ref.uid == member.uid) for member in gang.members}
    gang, late = with_seats(snapshot, gang, reservation)
    lost = lost_nodes(snapshot, reservation)
    if lost:
        why = ", ".join(f"{name} ({reason})" for name, reason in lost.items())
        outcome = replan(snapshot, free(snapshot, gang, reservation), reservation, lost)
        if isinstance(outcome, Move):
            snapshot = snapshot.with_reservation(outcome.reservation)
            reservation = outcome.reservation
            actions.append(MoveTo(gang, outcome, why, headroom(snapshot, reservation)))
        else:
            actions.append(Stuck(gang, why, outcome))
    elif (where := followed(snapshot, gang.group, reservation, left)) is not None:
        snapshot, reservation = snapshot.with_reservation(where), where
        actions.append(Follow(gang, where))
    beside = {member.uid for member in late}
    gated = tuple(pod for pod in gang.pods if pod.gated and pod.brought_by not in beside)
    if gated:
        actions.append(LetIn(gang, reservation, gated))
    for member in late:
        joining = replace(gang, refs=(*gang.refs, *refs[member.uid]))
        snapshot, action = _joins(snapshot, joining, member, world)
        actions.append(action)
    return snapshot, actions


def _joins(snapshot: Snapshot, gang: Gang, member: GangMember, world: World) -> tuple[Snapshot, Action]:
    """Room for a member that waits beside what its gang holds: what has begun goes before the queue."""
    held = snapshot.holding(gang.name)
    assert held is not None, "it holds a place"
    limits = world.limits(namespace_of(gang.name))
    planned, seats = beside_held(snapshot, held, _freed(snapshot, gang).group, member, limits)
    own = tuple(pod for pod in gang.pods if pod.brought_by == member.uid)
    if planned.reservation is None:
        return snapshot, Beside(gang, member.workload.name, planned.answer)
    snapshot = snapshot.with_reservation(planned.reservation)
    joined = replace(gang, group=planned.group, pods=on_seats(own, {member.uid: seats}))
    return snapshot, Admit(
        joined, planned.answer, planned.reservation, headroom(snapshot, planned.reservation)
    )


def free(snapshot: Snapshot, gang: Gang, held: Reservation) -> PodGroup:
    """The gang without what any of its plans wrote: its templates mostly tell the first one's for ever."""
    return without_placement_affinity(_freed(snapshot, gang).group, terms_of_reservation(snapshot, held))


def _as_known(snapshot: Snapshot, gang: Gang) -> Gang:
    """The gang without members that are known by number alone, where with them it could never run: as
    admission has it, they keep room, and keep nobody out (`members_known`)."""
    if gang.smaller is None or plan(snapshot, gang.group).decision != "rejected":
        return gang
    return replace(gang, group=gang.smaller, smaller=None)


def _freed(snapshot: Snapshot, gang: Gang) -> Gang:
    """The gang without the places that its templates tell: where it was, or where other replicas are."""
    pins = reduce(or_, (terms_of_annotation(snapshot, note) for note in gang.notes), PlacementTerms())
    smaller = gang.smaller and without_placement_affinity(gang.smaller, pins)
    return replace(gang, group=without_placement_affinity(gang.group, pins), smaller=smaller)
