"""Decides entries again in their order, each in the cluster that results from the decisions before it. Pure.

Decisions are made by the webhook's own function (`admission.decision.decide`), with the times of the entries.
Claims, deletions and ends of reservations are taken from the entries. When a reservation is released, waiting
gangs are admitted in the order of the queue, as the controller does. A gang that starts earlier or later than
recorded runs as long as recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.model.reservation import Reservation, reservation_id
from webhook.admission.configuration.settings import queue_rules
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.admission.ledger_steps import ReservationRelease, releasing
from webhook.journal.courses import ClusterCourse, gangs_of
from webhook.journal.entries import Answered, JournalEntry, answered
from webhook.journal.run_lengths import RunLengths
from webhook.journal.shared_gangs import MembersInReplay
from webhook.placement.fair_order import WaitingGang, in_order
from webhook.placement.hold import hold_of
from webhook.placement.hold_limits import HoldLimits
from webhook.placement.queue import plan_queue
from webhook.placement.replicas.joint import short_of_place
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import AdmissionRequest
from webhook.workloads.options import MODE


@dataclass(slots=True)
class Replay:
    """The state of a replay. `snapshot`: the cluster, at first without the gangs of the entries; None to
    replay only policies. `environment`: includes the parameters in force.

    `waiting`: the gangs that wait now, by name. `let_in`: by name, the seconds that a gang waited until it
    got a place from the queue. `course`: if given, records which gangs hold GPUs or wait over time.
    `lengths`: how long gangs run that start earlier than recorded; a gang without a length ends at its
    recorded end.
    """

    policies: PolicySet
    snapshot: Snapshot | None
    environment: Environment
    waiting: dict[str, WaitingGang] = field(default_factory=dict)
    let_in: dict[str, float] = field(default_factory=dict)
    course: ClusterCourse | None = None
    lengths: RunLengths = field(default_factory=RunLengths)
    _since: dict[str, float] = field(default_factory=dict)
    """The recorded start, in seconds since the epoch, of each reservation without a recorded end so far, by
    id.
    """
    _lengths: dict[str, float] = field(default_factory=dict)
    """By id, the recorded lengths (seconds) of reservations that have ended in the record, but in the replay
    start later than recorded and have not ended yet.
    """
    _members: MembersInReplay = field(default_factory=MembersInReplay)
    _early: set[str] = field(default_factory=set)
    """The ids of reservations that end earlier in the replay than recorded."""
    _ended_gangs: dict[str, str] = field(default_factory=dict)
    """The gangs of reservations that have ended in the replay, but not in the record, by reservation id.
    Recorded calls for these gangs must not start them again.
    """

    def answer(self, entry: JournalEntry) -> Answered | None:
        """Replays an entry, and returns the new answer. Returns None for a call that is not decided again: a
        validating call, a deletion, or a call about a subresource.
        """
        self._since.update((held.id, entry.begun(held)) for held in entry.came if held.id not in self._since)
        self.release_until(entry.time, entry.gone)
        request = self._in_its_namespace(entry)
        if request.sub_resource:
            return None
        if request.operation == "DELETE":
            self._deleted(request, entry.time)
            return None
        if entry.phase == "validate":
            if entry.answer.allowed:
                self._claimed(entry.claims, request, entry.time)
            return None
        decision = decide(request, self.policies, self.snapshot, "mutate", self._environment(entry.time))
        if decision.mode == "enforce" and decision.response.allowed and not request.dry_run:
            self._carried_out(decision, entry)
        return answered(decision, request.kind.kind)

    def release_until(self, moment: float, gone: Collection[str] = ()) -> None:
        """Releases the reservations that end by `moment`, each at its end, and then those with ids in `gone`,
        at `moment`, unless they start later than recorded. After each release, admits waiting gangs that fit.
        """
        while due := min(self._ends(), default=0.0):
            if due > moment:
                break
            ended = [held for held in self._book() if held.expires == due]
            self._ended_gangs |= {held.id: held.gang for held in ended if held.id in self._early}
            self._give_back(ended, due)
        for name in gone:
            self._ended(name, moment)
        # Reservations in `_lengths` started later than recorded, so they end later than recorded too.
        self._give_back(self._with_ids(set(gone) - self._lengths.keys()), moment)

    def _ends(self) -> Iterator[float]:
        return (held.expires for held in self._book() if held.expires is not None)

    def _book(self) -> tuple[Reservation, ...]:
        return self.snapshot.reservations if self.snapshot is not None else ()

    def _ended(self, name: str, moment: float) -> None:
        """Handles the recorded end of a reservation. If its gang started later in the replay, or still waits,
        the gang does not end now, but after its recorded length.
        """
        since = self._since.pop(name, None)
        self._forget(name)
        if since is None:
            return
        own = {reservation_id(gang): gang for gang in self.waiting}
        begun = next((held.created for held in self._book() if held.id == name), None)
        if name in own:
            self._lengths[name] = moment - since
        elif begun is not None and begun > since:
            self._lengths[name] = moment - since
            for held in self._with_ids({name}):
                self._hold(replace(held, expires=begun + moment - since), moment)

    def _forget(self, name: str) -> None:
        """Removes the notes about a reservation that has ended in the record too."""
        self._early.discard(name)
        self._ended_gangs.pop(name, None)

    def _end_of(self, name: str, begun: float) -> float | None:
        """Returns when the reservation `name` ends, if its gang starts at `begun`, earlier than recorded.

        Returns None if the gang does not start earlier, or if its length is unknown: `_ended` then handles
        its recorded end.
        """
        seconds = None if name in self._since else self.lengths.next_from(name, begun)
        if seconds is None:
            return None
        self._early.add(name)
        return begun + seconds

    def _give_back(self, ended: Iterable[Reservation], now: float) -> None:
        snapshot, ended = self.snapshot, list(ended)
        if snapshot is None or not ended:
            return
        for held in ended:
            snapshot = snapshot.without(held.gang)
            self._lengths.pop(held.id, None)
            if self.course is not None:
                self.course.end(held.id, now)
        self.snapshot = snapshot
        rules = queue_rules(self.environment.settings, now)
        queue = [place.gang for place in in_order(snapshot, self.waiting.values(), rules)]
        turns, _ = plan_queue(snapshot, (gang.group for gang in queue), self._limits)
        asked = [(gang.group, turn.answer) for gang, turn in zip(queue, turns, strict=True)]
        short = short_of_place(asked)
        for gang, turn in zip(queue, turns, strict=True):
            if turn.reservation is not None and gang.group.joint not in short:
                name = turn.reservation.id
                ends = now + self._lengths[name] if name in self._lengths else self._end_of(name, now)
                self._hold(replace(turn.reservation, created=now, state="claimed", expires=ends), now)
                self.let_in[gang.group.name] = now - gang.created
                del self.waiting[gang.group.name]

    def _limits(self, namespace: str) -> HoldLimits:
        return self.environment.settings(namespace).holds

    def _hold(self, reservation: Reservation, now: float) -> None:
        assert self.snapshot is not None, "reservations come from plans, which need a snapshot"
        before = self.snapshot.holding(reservation.gang)
        self.snapshot = self.snapshot.with_reservation(reservation)
        unmoved = before is not None and before.assignments == reservation.assignments
        if self.course is not None and not unmoved:
            self.course.hold(reservation, now)

    def _in_its_namespace(self, entry: JournalEntry) -> AdmissionRequest:
        """Returns the request; if the cluster lacks its namespace, with a Namespace object that has the
        recorded mode. An audit log records no mode.
        """
        request = entry.request
        if (
            not request.namespace
            or request.namespace in self.environment.namespaces
            or not entry.answer.whole
        ):
            return request
        labels = {MODE: entry.answer.mode}
        space = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": request.namespace, "labels": labels},
        }
        return replace(request, namespace_object=space)

    def _environment(self, now: float) -> Environment:
        environment = replace(self.environment, stored_members=self._members.of, now=now)
        if self.snapshot is None or not self.waiting:
            return environment
        waiting = tuple(self.waiting.values())
        return replace(environment, waiting=lambda: waiting)

    def _carried_out(self, decision: Decision, entry: JournalEntry) -> None:
        """Carries out the ledger steps of a decision, and notes which of its gangs wait.

        Reservations are claimed immediately if the object is known to be stored.
        """
        self._members.store(decision, entry.request, self.environment.podgroups)
        for step in decision.steps:
            if isinstance(step, Wish) and step.reservation.id not in self._ended_gangs:
                held = hold_of(step.reservation, entry.time)
                held = replace(held, expires=None, state="claimed") if entry.stored else held
                self._hold(held, entry.time)
            elif isinstance(step, ReservationRelease):
                self._give_back(self._with_ids({step.reservation}), entry.time)
        for placed in decision.plan.placed if decision.plan is not None else ():
            name = placed.answer.gang
            if reservation_id(name) in self._ended_gangs:
                continue
            if placed.answer.decision == "queued":
                self.waiting.setdefault(name, WaitingGang(placed.asked, entry.time))
                if self.course is not None:
                    self.course.wait(name, placed.asked.gpus, entry.time)
            else:
                self.waiting.pop(name, None)

    def _claimed(self, claims: Iterable[str], request: AdmissionRequest, now: float) -> None:
        """Makes the reservations of a stored object permanent: those that its gangs hold in the replay, and
        those that the recorded call claimed.
        """
        metadata = (request.object or {}).get("metadata")
        uid = str(metadata.get("uid") or "") if isinstance(metadata, Mapping) else ""
        own = set(gangs_of(request, (held.gang for held in self._book() if held.state == "held")))
        claimed = {*claims, *map(reservation_id, own)}
        for held in self._with_ids(claimed):
            if held.state == "held":
                ends = self._end_of(held.id, held.created)
                self._hold(replace(held, expires=ends, state="claimed", owner_uid=uid), now)

    def _deleted(self, request: AdmissionRequest, now: float) -> None:
        """Releases what a deleted object holds, and removes its waiting gangs.

        A gang that starts later in the replay than recorded is not affected: it runs for its recorded length.
        """
        if request.dry_run:
            return
        self._members.delete(request.display_name)
        for name in list(gangs_of(request, self.waiting)):
            if reservation_id(name) not in self._lengths:
                del self.waiting[name]
                if self.course is not None:
                    self.course.leave(name, now)
        steps = releasing(request, self.snapshot)
        ended = {step.reservation for step in steps if isinstance(step, ReservationRelease)}
        ended -= self._lengths.keys()
        gone = {*ended, *map(reservation_id, gangs_of(request, self._ended_gangs.values()))}
        for name in gone:
            self._since.pop(name, None)
            self._forget(name)
        self._give_back(self._with_ids(ended), now)

    def _with_ids(self, names: Collection[str]) -> list[Reservation]:
        return [held for held in self._book() if held.id in names]
