"""Entries decided again in their order, each in the cluster that the ones before it leave behind. Pure.

What is decided is what the webhook decides (`admission.decision.decide`). Holds begin and expire by the times
of the entries; a claim, a deletion and the end of a reservation are followed where the entries tell of them;
gangs that wait are let in by the controller's queue whenever something is given back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from webhook.admission.decision import Decision, decide
from webhook.admission.environment import Environment
from webhook.admission.ledger_steps import ReservationRelease, Reserve, releasing
from webhook.admission.settings import queue_rules
from webhook.journal.entries import Answered, JournalEntry, answered
from webhook.placement.fair_order import WaitingGang, in_order
from webhook.placement.hold import hold_of
from webhook.placement.queue import plan_queue
from webhook.policy.engine.model import PolicySet
from webhook.wire.request import AdmissionRequest
from webhook.workloads.options import MODE


@dataclass(slots=True)
class Replay:
    """`snapshot`: the cluster without what the entries hold, None for policies alone. `environment`: the
    surroundings, with the parameters in force.

    `waiting` are the gangs that wait now, and `let_in` those that waited and have a place since, with the
    seconds that they waited.
    """

    policies: PolicySet
    snapshot: Snapshot | None
    environment: Environment
    waiting: dict[str, WaitingGang] = field(default_factory=dict)
    let_in: dict[str, float] = field(default_factory=dict)

    def answer(self, entry: JournalEntry) -> Answered | None:
        """What is answered now; None for a call that only claims or gives back."""
        self.until(entry.time, entry.gone)
        request = self._in_its_namespace(entry)
        if request.sub_resource:
            return None
        if request.operation == "DELETE":
            self._deleted(request, entry.time)
            return None
        if entry.phase == "validate":
            self._claimed(entry.claims, request)
            return None
        decision = decide(request, self.policies, self.snapshot, "mutate", self._environment(entry.time))
        if decision.mode == "enforce" and decision.response.allowed and not request.dry_run:
            self._carried_out(decision, entry)
        return answered(decision)

    def until(self, moment: float, gone: Collection[str] = ()) -> None:
        """Give back what has ended by then, and `gone`, reservations by id; let in who has room now."""
        snapshot = self.snapshot
        if snapshot is None:
            return
        ended = [
            held
            for held in snapshot.reservations
            if held.id in gone or (held.expires is not None and held.expires <= moment)
        ]
        self._give_back(ended, moment)

    def _give_back(self, ended: Iterable[Reservation], now: float) -> None:
        snapshot = self.snapshot
        names = [held.gang for held in ended]
        if snapshot is None or not names:
            return
        for name in names:
            snapshot = snapshot.without(name)
        self.snapshot = snapshot
        rules = queue_rules(self.environment.settings, now)
        queue = [place.gang for place in in_order(snapshot, self.waiting.values(), rules)]
        turns, _ = plan_queue(snapshot, (gang.group for gang in queue))
        for gang, turn in zip(queue, turns, strict=True):
            if turn.reservation is not None:
                self._hold(replace(turn.reservation, created=now, state="claimed"))
                self.let_in[gang.group.name] = now - gang.created
                del self.waiting[gang.group.name]

    def _hold(self, reservation: Reservation) -> None:
        assert self.snapshot is not None, "who holds was planned"
        self.snapshot = self.snapshot.with_reservation(reservation)

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
            return self.environment
        waiting = tuple(self.waiting.values())
        return replace(self.environment, waiting=lambda: waiting, now=now)

    def _carried_out(self, decision: Decision, entry: JournalEntry) -> None:
        """Hold what the decision reserves, claimed at once where the object is known to be stored."""
        for step in decision.steps:
            if isinstance(step, Reserve):
                held = hold_of(step.reservation, entry.time)
                self._hold(replace(held, expires=None, state="claimed") if entry.stored else held)
            elif isinstance(step, ReservationRelease):
                self._give_back(self._of({step.reservation}), entry.time)
        for placed in decision.plan.placed if decision.plan is not None else ():
            name = placed.answer.gang
            if placed.answer.decision == "queued":
                self.waiting.setdefault(name, WaitingGang(placed.asked, entry.time))
            else:
                self.waiting.pop(name, None)

    def _claimed(self, claims: Iterable[str], request: AdmissionRequest) -> None:
        metadata = (request.object or {}).get("metadata") or {}
        for held in self._of(set(claims)):
            self._hold(replace(held, expires=None, state="claimed", owner_uid=str(metadata.get("uid") or "")))

    def _deleted(self, request: AdmissionRequest, now: float) -> None:
        if request.dry_run:
            return
        gang = f"{request.namespace}/{request.kind.kind}/{request.name}"
        for name in [name for name in self.waiting if name == gang or name.startswith(f"{gang}/")]:
            del self.waiting[name]
        steps = releasing(request, self.snapshot)
        ended = {step.reservation for step in steps if isinstance(step, ReservationRelease)}
        self._give_back(self._of(ended), now)

    def _of(self, names: set[str]) -> list[Reservation]:
        return [held for held in self.snapshot.reservations if held.id in names] if self.snapshot else []
