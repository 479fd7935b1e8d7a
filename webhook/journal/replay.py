"""Entries decided again in their order, each in the cluster that the ones before it leave behind. Pure.

What is decided is what the webhook decides (`admission.decision.decide`). Holds begin and expire by the times
of the entries; a claim, a deletion and the end of a reservation are followed where the entries tell of them;
gangs that wait are let in by the controller's queue whenever something is given back. A gang that begins
later or earlier than it did runs as long as it did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation, reservation_id
from webhook.admission.configuration.settings import queue_rules
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment, PolicySet
from webhook.admission.ledger_steps import ReservationRelease, Reserve, releasing
from webhook.journal.courses import ClusterCourse, gangs_of
from webhook.journal.entries import Answered, JournalEntry, answered
from webhook.journal.run_lengths import RunLengths
from webhook.placement.fair_order import WaitingGang, in_order
from webhook.placement.hold import hold_of
from webhook.placement.hold_limits import HoldLimits
from webhook.placement.queue import plan_queue
from webhook.placement.workload_plan import short_of_place
from webhook.wire.request import AdmissionRequest
from webhook.workloads.options import MODE


@dataclass(slots=True)
class Replay:
    """`snapshot`: the cluster without what the entries hold, None for policies alone. `environment`: the
    surroundings, with the parameters in force.

    `waiting` are the gangs that wait now, and `let_in` those that waited and have a place since, with the
    seconds that they waited. `course` is told of all of it, where there is one. `lengths`: how long gangs
    run that begin earlier here; of one that it does not tell of the place is given back when it was.
    """

    policies: PolicySet
    snapshot: Snapshot | None
    environment: Environment
    waiting: dict[str, WaitingGang] = field(default_factory=dict)
    let_in: dict[str, float] = field(default_factory=dict)
    course: ClusterCourse | None = None
    lengths: RunLengths = field(default_factory=RunLengths)
    _since: dict[str, float] = field(default_factory=dict)
    """By reservation when it was made, as the entries tell it."""
    _lengths: dict[str, float] = field(default_factory=dict)
    """By reservation how long it was held, of gangs that begin later here and have not ended yet."""
    _early: set[str] = field(default_factory=set)
    """Reservations that end here before they did."""
    _over: dict[str, str] = field(default_factory=dict)
    """Those that have ended here, not there yet, with their gangs: calls about these begin nothing anew."""

    def answer(self, entry: JournalEntry) -> Answered | None:
        """What is answered now; None for a call that only claims or gives back."""
        self._since.update((held.id, entry.begun(held)) for held in entry.came if held.id not in self._since)
        self.until(entry.time, entry.gone)
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

    def until(self, moment: float, gone: Collection[str] = ()) -> None:
        """Give back what has ended by then, each at its time, and `gone`, reservations by id; let in who has
        room."""
        while due := min(self._ends(), default=0.0):
            if due > moment:
                break
            ended = [held for held in self._book() if held.expires == due]
            self._over |= {held.id: held.gang for held in ended if held.id in self._early}
            self._give_back(ended, due)
        for name in gone:
            self._ended(name, moment)
        self._give_back(self._of(set(gone) - self._lengths.keys()), moment)

    def _ends(self) -> Iterator[float]:
        return (held.expires for held in self._book() if held.expires is not None)

    def _book(self) -> tuple[Reservation, ...]:
        return self.snapshot.reservations if self.snapshot is not None else ()

    def _ended(self, name: str, moment: float) -> None:
        """A gang's place was given back. Here it may have begun later, or wait still: then it runs as long as
        it did, from when it begins here."""
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
            for held in self._of({name}):
                self._hold(replace(held, expires=begun + moment - since), moment)

    def _forget(self, name: str) -> None:
        """A reservation has ended there too."""
        self._early.discard(name)
        self._over.pop(name, None)

    def _end_of(self, name: str, begun: float) -> float | None:
        """When a gang ends that begins here before it did; None for one that has begun there."""
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
        assert self.snapshot is not None, "who holds was planned"
        before = self.snapshot.holding(reservation.gang)
        self.snapshot = self.snapshot.with_reservation(reservation)
        unmoved = before is not None and before.assignments == reservation.assignments
        if self.course is not None and not unmoved:
            self.course.hold(reservation, now)

    def _in_its_namespace(self, entry: JournalEntry) -> AdmissionRequest:
        """The request in the mode that its namespace had, where the cluster does not tell the Namespace."""
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
        if self.snapshot is None or not self.waiting:
            return replace(self.environment, now=now)
        waiting = tuple(self.waiting.values())
        return replace(self.environment, waiting=lambda: waiting, now=now)

    def _carried_out(self, decision: Decision, entry: JournalEntry) -> None:
        """Hold what the decision reserves, claimed at once where the object is known to be stored."""
        for step in decision.steps:
            if isinstance(step, Reserve) and step.reservation.id not in self._over:
                held = hold_of(step.reservation, entry.time)
                held = replace(held, expires=None, state="claimed") if entry.stored else held
                self._hold(held, entry.time)
            elif isinstance(step, ReservationRelease):
                self._give_back(self._of({step.reservation}), entry.time)
        for placed in decision.plan.placed if decision.plan is not None else ():
            name = placed.answer.gang
            if reservation_id(name) in self._over:
                continue
            if placed.answer.decision == "queued":
                self.waiting.setdefault(name, WaitingGang(placed.asked, entry.time))
                if self.course is not None:
                    self.course.wait(name, placed.asked.gpus, entry.time)
            else:
                self.waiting.pop(name, None)

    def _claimed(self, claims: Iterable[str], request: AdmissionRequest, now: float) -> None:
        """The object is stored: it keeps what it holds here, and so do those that it claimed."""
        metadata = (request.object or {}).get("metadata") or {}
        own = set(gangs_of(request, (held.gang for held in self._book() if held.state == "held")))
        claimed = {*claims, *map(reservation_id, own)}
        for held in self._of(claimed):
            if held.state == "held":
                uid, ends = str(metadata.get("uid") or ""), self._end_of(held.id, held.created)
                self._hold(replace(held, expires=ends, state="claimed", owner_uid=uid), now)

    def _deleted(self, request: AdmissionRequest, now: float) -> None:
        """The object is gone, and what it holds; where its gang had ended before, it only clears up."""
        if request.dry_run:
            return
        for name in list(gangs_of(request, self.waiting)):
            if reservation_id(name) not in self._lengths:
                del self.waiting[name]
                if self.course is not None:
                    self.course.leave(name, now)
        steps = releasing(request, self.snapshot)
        ended = {step.reservation for step in steps if isinstance(step, ReservationRelease)}
        ended -= self._lengths.keys()
        gone = {*ended, *map(reservation_id, gangs_of(request, self._over.values()))}
        for name in gone:
            self._since.pop(name, None)
            self._forget(name)
        self._give_back(self._of(ended), now)

    def _of(self, names: Collection[str]) -> list[Reservation]:
        return [held for held in self._book() if held.id in names]
