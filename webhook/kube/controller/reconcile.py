"""Decides what the controller does in one round: from the state of the world to a list of actions. Pure: no
I/O, no clock.

The rules:
1. A reservation is released if its gang is finished or deleted, if no bound pod has used it for too long, or
   if all pods of its gang wait at Kueue's gate, because Kueue has evicted them. A hold whose gang exists is
   claimed for the gang. The nodes that Kueue has assigned to a Workload are reserved for it until Kueue takes
   them back, or all pods of a pod group have ended while Kueue waits for replacements. Gated pods of a gang
   that Kueue places are admitted without a pin (Kueue pins them), and rules 2 to 5 do not apply to the gang.
   In a namespace that is not enforced, a reservation that no bound pod uses is released, gated pods are
   admitted, and rules 2 to 5 do not apply.
2. A gang is planned again, with as few moved pods as possible, if it holds a node that it cannot use any
   more, because of the node or of pods without a reservation, or that is outside the flavor in which Kueue
   has admitted its pods. If pods were bound elsewhere than planned, the reservation follows them. A place
   that was not written onto the workload is written again.
3. A gang that was admitted and whose reservation has vanished gets its place again.
4. Gated pods of a gang that holds a place are admitted once they have passed Kueue's gate; gated pods of a
   gang with `on-unavailable: admit`, or that has started and holds nothing by choice, at once, with or
   without a place; those of a gang for which its scheduler evicts others once the nodes that no other gang is
   about to use are enough for it. A late member gets room beside what its gang holds, before the queue, and
   so do pods by which a gang was scaled up, or that a rolling update starts; the surplus is released. KAI is
   told if a Job's gang has become smaller, even if Kueue places it.
5. Waiting gangs are planned in turn, by the rules of `webhook.placement.queue`: no later gang delays the
   first gang without a place.

Pods that a scheduler leaves unbound, or that wait at another controller's gate, are reported, not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from planner.cluster.snapshot import Snapshot
from planner.model.names import kind_of, namespace_of
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.planning.plan import plan
from planner.planning.replay import answer_of
from planner.planning.reservation import headroom
from webhook.kube.controller.evictions import evictions
from webhook.kube.controller.kueue.rounds import kueue_round, no_longer_assigned
from webhook.kube.controller.late_members import beside_held, waits_for_kueue, with_seats
from webhook.kube.controller.memory import NO_MEMORY, Memory, lacks_reservation, patience
from webhook.kube.controller.noted_places import names_another_place, of_former_place
from webhook.kube.controller.ownerless import GRACE_SECONDS, is_ownerless
from webhook.kube.controller.replanning.follow import followed
from webhook.kube.controller.replanning.replan import Move, lost_nodes, replan, shrunk_nodes
from webhook.kube.controller.replanning.restore import restored
from webhook.kube.controller.replanning.taken import taken_nodes
from webhook.kube.controller.steps import (
    Action,
    Admit,
    Beside,
    ClaimFor,
    Follow,
    LeftUnbound,
    LetIn,
    MoveTo,
    NotePlace,
    Release,
    Restore,
    Stuck,
    TellSize,
    Ungate,
)
from webhook.kube.controller.unbound_pods import held_at_a_gate, left_unbound
from webhook.kube.controller.waiting.queue import queue
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import Gang, on_seats
from webhook.kube.state.kueue_flavors import (
    of_bound_pods,
    of_pods,
    outside_flavors,
    within_flavors,
    without_labels,
)
from webhook.placement.hold import bound_seats, is_used
from webhook.placement.pod_affinity import (
    PlacementTerms,
    terms_of_annotation,
    terms_of_reservation,
    without_placement_affinity,
)
from webhook.placement.pod_gang import GROWING_KINDS, SURGING_KINDS
from webhook.placement.resized import further_pods, resized_within, surplus_seats, with_surge
from webhook.placement.shared_gangs.gang_members import GangMember


def reconcile(world: World, memory: Memory = NO_MEMORY) -> list[Action]:
    """Returns the actions that are due, in the order in which they are to be carried out."""
    gangs = world.gangs
    due = _Due(world.snapshot, memory)
    for reservation in world.snapshot.reservations:  # rule 1, up to `kueue_round`
        due.end_or_claim(world, reservation, gangs.get(reservation.gang))
    due.actions += _ungated(world, gangs)
    due.actions += _sizes_to_tell(world)
    enforced = {name: gang for name, gang in gangs.items() if namespace_of(name) not in world.observed}
    by_kueue = kueue_round(due.snapshot, enforced, world.kueue, world.observed, world.unbound_uids)
    due.snapshot = by_kueue.snapshot
    due.actions += by_kueue.actions
    due.actions += _left_by_schedulers(
        due.snapshot, world.now, (enforced[name] for name in enforced if name in by_kueue.gangs)
    )
    planned = {name: gang for name, gang in enforced.items() if name not in by_kueue.gangs}
    for reservation in due.snapshot.reservations:  # rules 2 and 4
        if (holder := planned.get(reservation.gang)) is not None:
            due.keep_place(world, holder, reservation)
            due.actions += _left_by_schedulers(due.snapshot, world.now, [holder])
    due.actions += _held_at_gates(world, planned.values())
    for gang in planned.values():  # rule 3
        if (
            gang.name in memory.missing
            and gang.name not in memory.idle
            and lacks_reservation(gang, due.snapshot)
        ):
            due.restore(gang)
    without = [
        gang for gang in planned.values() if not gang.finished and due.snapshot.holding(gang.name) is None
    ]
    due.actions += _let_in_without_place(without)  # rule 4
    evicting = [gang for gang in without if gang.awaits_evictions and not gang.held_back]
    due.actions += evictions(due.snapshot, map(due.unbound, evicting), world.now)
    waiting = [due.unbound(gang) for gang in without if gang.waits]
    # Rule 5.
    return due.actions + queue(due.snapshot, waiting, world.limits, world.rules, memory.rounds)


@dataclass(slots=True)
class _Due:
    """The actions so far, and the cluster as it will be after them, on which the following actions are
    planned.
    """

    snapshot: Snapshot
    memory: Memory
    actions: list[Action] = field(default_factory=list)

    def unbound(self, gang: Gang) -> Gang:
        """Returns a gang without a place as it is planned: free of its former place, with known members."""
        return _as_known(self.snapshot, _freed(self.snapshot, gang))

    def end_or_claim(self, world: World, reservation: Reservation, gang: Gang | None) -> None:
        """Rule 1: releases a reservation that is not needed any more, and claims a hold whose gang exists."""
        why = _over(world, self.memory, reservation, gang)
        if why:
            self._release(reservation, why, gang)
        elif gang is not None and reservation.expires is not None and gang.ref.uid:
            self.actions.append(ClaimFor(reservation, gang))
        elif gang is not None and gang.name in self.memory.idle:
            self.actions += _left_by_schedulers(self.snapshot, world.now, [gang])
            self._release(reservation, _unused_for(world, gang), gang)

    def keep_place(self, world: World, gang: Gang, reservation: Reservation) -> None:
        """Rules 2 and 4: replaces the reservation of a gang that lost a node or was bound elsewhere, admits
        the gang's gated pods, and makes room for late members.
        """
        all_refs = gang.refs
        gang, late = with_seats(self.snapshot, gang, reservation)
        late_uids = {member.uid for member in late}
        seated = tuple(pod for pod in gang.pods if pod.brought_by not in late_uids)
        former, reservation = reservation, self._moved(replace(gang, pods=seated), reservation, world.now)
        gated = tuple(pod for pod in seated if pod.gated and not pod.awaits_kueue)
        if kind_of(gang.name) in GROWING_KINDS:
            gated = self._scaled(world, replace(gang, pods=seated), reservation, gated)
        if gated:
            self.actions.append(LetIn(gang, reservation, gated))
        elif reservation is former and names_another_place(world, self.snapshot, gang):
            self.actions.append(NotePlace(gang, reservation))
        for member in late:
            own = (ref for ref in all_refs if ref.uid == member.uid)
            pods = tuple(pod for pod in gang.pods if pod.brought_by == member.uid)
            self._join(world, replace(gang, refs=(*gang.refs, *own), pods=pods), member)

    def _scaled(
        self, world: World, gang: Gang, held: Reservation, gated: tuple[Unbound, ...]
    ) -> tuple[Unbound, ...]:
        """Rule 4: reserves as many seats as a scaled gang needs, and admits its gated pods, or reports that
        there is no room. Returns the gated pods that have seats already.

        A reservation that is new may be for an update that the watch does not show yet.
        """
        group = _freed(self.snapshot, gang).group
        if gang.ref.kind in SURGING_KINDS:
            group = with_surge(self.snapshot, group, held, len(gang.pods))
        is_new = not gated and world.now - held.created < GRACE_SECONDS
        if is_new or not (further_pods(group, held) or surplus_seats(group, held)):
            return gated
        outcome = resized_within(self.snapshot, group, held, world.limits(namespace_of(gang.name)))
        if isinstance(outcome, Reservation):
            self.snapshot = self.snapshot.with_reservation(outcome)
            room, answer = headroom(self.snapshot, outcome), answer_of(outcome)
            self.actions.append(Admit(replace(gang, pods=gated), answer, outcome, room))
            return ()
        if outcome is None or group.on_unavailable == "admit":
            return gated
        self.actions.append(Beside(gang, gang.name, outcome))
        taken = bound_seats(self.snapshot, held, "") + sum(not pod.gated for pod in gang.pods)
        return gated[: max(0, held.seats - taken)]

    def restore(self, gang: Gang) -> None:
        """Rule 3: reserves a place again for a gang whose reservation has vanished, or reports that there is
        none.
        """
        gang = _in_flavors(self.snapshot, gang)
        outcome = restored(self.snapshot, gang.group, _freed(self.snapshot, gang).group)
        if isinstance(outcome, Reservation):
            self.snapshot = self.snapshot.with_reservation(outcome)
            self.actions.append(Restore(gang, outcome, headroom(self.snapshot, outcome)))
        else:
            self.actions.append(Stuck(gang, "its reservation", outcome))

    def _release(self, reservation: Reservation, why: str, gang: Gang | None) -> None:
        self.actions.append(Release(reservation, why, gang))
        self.snapshot = self.snapshot.without(reservation.gang)

    def _moved(self, gang: Gang, reservation: Reservation, now: float) -> Reservation:
        """Returns the gang's reservation after rule 2, and adds the action that replaces the former one: a
        new plan if nodes are lost, or the nodes where the pods are if they were bound elsewhere. If there is
        no place, adds a report, and returns the former reservation.
        """
        selections = of_pods(gang.group, gang.pods)
        outside = outside_flavors(self.snapshot, reservation, selections)
        left = left_unbound(gang.pods, now)
        taken = taken_nodes(self.snapshot, reservation, left) if left else {}
        if lost := taken | lost_nodes(self.snapshot, reservation) | outside:
            gang = _in_flavors(self.snapshot, gang)
            why = ", ".join(f"{name} ({reason})" for name, reason in lost.items())
            free = _free(self.snapshot, gang, reservation)
            keeping = without_labels(free, selections)  # the bound pods may be in another flavor
            # Pods that run on a node go on there if the node only lacks room for the gang's other pods.
            crowded = (shrunk_nodes(self.snapshot, reservation).keys() | taken.keys()) - outside.keys()
            outcome = replan(self.snapshot, free, reservation, lost, keeping, crowded)
            if not isinstance(outcome, Move):
                self.actions.append(Stuck(gang, why, outcome))
                return reservation
            self.snapshot = self.snapshot.with_reservation(outcome.reservation)
            self.actions.append(MoveTo(gang, outcome, why, headroom(self.snapshot, outcome.reservation)))
            return outcome.reservation
        where = followed(self.snapshot, gang.group, reservation)
        if where is None:
            return reservation
        self.snapshot = self.snapshot.with_reservation(where)
        self.actions.append(Follow(gang, where))
        return where

    def _join(self, world: World, gang: Gang, member: GangMember) -> None:
        """Makes room for a late member beside what its gang holds, or reports that there is none. `gang`: the
        gang with the unbound pods of this member only.

        The member does not wait in the queue, because its gang has started.
        """
        if waits_for_kueue(member, gang.pods):
            return
        held = self.snapshot.holding(gang.name)
        assert held is not None, "it holds a place"
        limits = world.limits(namespace_of(gang.name))
        freed = _freed(self.snapshot, gang).group
        planned, seats = beside_held(self.snapshot, held, freed, member, gang.pods, limits)
        if planned.reservation is None:
            self.actions.append(Beside(gang, member.workload.name, planned.answer))
            return
        self.snapshot = self.snapshot.with_reservation(planned.reservation)
        joined = replace(gang, group=planned.group, pods=on_seats(gang.pods, {member.uid: seats}))
        room = headroom(self.snapshot, planned.reservation)
        self.actions.append(Admit(joined, planned.answer, planned.reservation, room))


def _sizes_to_tell(world: World) -> Iterator[Action]:
    """Yields the actions of rule 4 that tell KAI that the gang of a Job has become smaller."""
    for work in world.works:
        if work.size_left and not work.finished and work.ref.namespace not in world.observed:
            yield TellSize(work.ref, work.size_left)


def _held_at_gates(world: World, gangs: Iterable[Gang]) -> Iterator[Action]:
    """Yields reports about gangs whose pods wait at a scheduling gate of another controller."""
    for gang in gangs:
        if gang.held_back and not gang.finished and (pods := held_at_a_gate(gang.pods, world.now)):
            yield LeftUnbound(gang, pods)


def _let_in_without_place(gangs: Iterable[Gang]) -> Iterator[Action]:
    """Yields actions that admit the pods of gangs that start with or without a place."""
    for gang in gangs:
        if not (gang.group.on_unavailable == "admit" or gang.is_advised) or gang.awaits_evictions:
            continue
        if gated := tuple(pod for pod in gang.pods if pod.gated):
            yield LetIn(gang, None, gated)


def _left_by_schedulers(snapshot: Snapshot, now: float, gangs: Iterable[Gang]) -> Iterator[Action]:
    for gang in gangs:
        if pods := left_unbound(gang.pods, now):
            yield LeftUnbound(gang, pods, of_former_place(snapshot, snapshot.holding(gang.name), pods))


def _unused_for(world: World, gang: Gang) -> str:
    return f"no pod was bound to it for {patience(world, gang.name):g} s; it is held again once one is"


def _over(world: World, memory: Memory, reservation: Reservation, gang: Gang | None) -> str:
    """Returns why a reservation is not needed any more; "" while it is."""
    used = is_used(world.snapshot, reservation)
    # `finished` ignores bound pods, which may be members of a gang of several objects themselves.
    if gang is not None and gang.finished and not (used and gang.members):
        return "finished"
    if gang is not None and gang.queued and gang.name == gang.ref.key:
        is_of_former = reservation.owner_uid not in ("", gang.ref.uid)
        if is_of_former and gang.requests_other_seats(reservation):
            return "it was for a former object of this name"
    # A reservation that was made by hand holds for no gang of a workload, and so is in no namespace.
    if kind_of(reservation.gang) and namespace_of(reservation.gang) in world.observed and not used:
        return "its namespace is not enforced"
    if ended := no_longer_assigned(reservation, world.kueue, world.unbound_uids, world.snapshot):
        return ended
    if gang is not None and not used and _given_up_by_kueue(gang, world.now):
        return "Kueue has taken its admission back"
    # Checked again, because the watches were read again after `deleted` was determined.
    deleted = memory.deleted.get(reservation.id) == reservation and is_ownerless(world, reservation)
    return "deleted" if deleted else ""


def _given_up_by_kueue(gang: Gang, now: float) -> bool:
    """Returns whether all pods of a gang that queues (`on-unavailable`) have waited at Kueue's gate for more
    than `GRACE_SECONDS`.

    Then the place is released, because Kueue may have evicted the gang to give the same nodes to another one.
    The pods of a restarted pod group pass the gate before `GRACE_SECONDS` end. False if a member of the gang
    has no unbound pod: it may be about to create pods without Kueue's gate, as a Job does.
    """
    if not {member.uid for member in gang.members} <= {pod.brought_by for pod in gang.pods}:
        return False
    waits = all(pod.awaits_kueue and now - pod.created > GRACE_SECONDS for pod in gang.pods)
    return bool(gang.pods) and waits and gang.group.on_unavailable == "queue"


def _ungated(world: World, gangs: Mapping[str, Gang]) -> Iterator[Ungate]:
    """Yields actions that admit the gated pods of namespaces that are not enforced: those of each gang, then
    those without a gang.
    """
    gated = {pod.ref: pod for pod in world.pods if pod.gated and pod.ref.namespace in world.observed}
    for gang in gangs.values():
        pods = tuple(gated.pop(pod.ref) for pod in gang.pods if pod.ref in gated)
        if pods:
            yield Ungate(gang.ref, pods, gang.refs)
    for pod in gated.values():
        yield Ungate(pod.ref, (pod,))


def _free(snapshot: Snapshot, gang: Gang, held: Reservation) -> PodGroup:
    """Returns the gang without its pins: the node affinity that plans wrote into its templates, which still
    name the first place after the gang has moved, and the node affinity for the reservation `held`.
    """
    return without_placement_affinity(_freed(snapshot, gang).group, terms_of_reservation(snapshot, held))


def _in_flavors(snapshot: Snapshot, gang: Gang) -> Gang:
    """Returns the gang restricted to the nodes of the Kueue flavors of its pods.

    For each PodSet, the unbound pods determine the flavor, because the planned seats are for them; the bound
    pods do only if all are bound. Bound pods may be in a former flavor: if they always counted, the gang
    would move in each round. `gangs_of` has added the flavors of unbound pods already, but for a gang of
    several objects, `with_seats` builds the PodSets again from the objects' templates, which have no flavor.
    """
    to_come = {name: stated for name, stated in of_pods(gang.group, gang.pods).items() if stated}
    selections = {**of_bound_pods(snapshot, gang.group), **to_come}
    return replace(gang, group=within_flavors(gang.group, selections))


def _as_known(snapshot: Snapshot, gang: Gang) -> Gang:
    """Returns the gang; without the members that are known only by number (a group's size counts them, but
    their objects do not exist yet) if it could never run with them.

    As in admission (`without_unknown_members` in `webhook/placement/planning.py`), such members get room if
    there is any, but never block the gang: their requests are unknown.
    """
    if gang.smaller is None or plan(snapshot, gang.group).decision != "rejected":
        return gang
    return replace(gang, group=gang.smaller, smaller=None)


def _freed(snapshot: Snapshot, gang: Gang) -> Gang:
    """Returns the gang without the node affinity that plans wrote into its templates: plans of the gang
    itself, or of the other gangs (replicas) of its object.
    """
    pins = reduce(or_, (terms_of_annotation(snapshot, note) for note in gang.notes), PlacementTerms())
    smaller = gang.smaller and without_placement_affinity(gang.smaller, pins)
    return replace(gang, group=without_placement_affinity(gang.group, pins), smaller=smaller)
