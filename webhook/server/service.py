"""One admission call: decided, and its reservations made in the ledger.

The decision is pure and made in a thread; only here does it meet the ledger. On a conflict (somebody else
took the place meanwhile) a new snapshot is decided on again, as long as there is time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from planner.cluster import plan_cache
from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, Ledger, LedgerUnavailable, Occupied, Taken
from planner.model.reservation import Book
from webhook.admission.configuration.parameters import NO_PARAMETERS
from webhook.admission.configuration.settings import Settings
from webhook.admission.decision import decide, in_mode
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import Environment
from webhook.admission.ledger_steps import (
    ReservationClaim,
    ReservationRelease,
    Reserve,
    reservation_identity,
    reservations_of,
)
from webhook.placement.hold import HOLD_SECONDS, hold_of
from webhook.policy.loading.files import PolicyStore
from webhook.policy.model.policy import PolicySet
from webhook.server.cluster_source import ClusterSource, NoCluster
from webhook.server.in_flight import InFlight, InFlightReservations, settled
from webhook.server.parameters_store import ParametersStore
from webhook.server.precedence import Precedence
from webhook.server.seats import Crowded, Seats
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import Response

TRY_SECONDS = 3.0
"""How long a call whose place was taken is decided again: less than the deadline of a call (`http.DEADLINE`),
so that there is time to answer "apply again". `bayplan serve --deadline` keeps the proportion."""


RIVALS_BY_LOSS = 4
"""For how many rivals a place that was lost stands, beside the calls in flight here: it tells that other
replicas have some as well."""


LOOKS, LOOK_PAUSE = 50, 0.02
"""How often a pod's owner, or a namespace, is looked for, and seconds between two looks. A watch is seldom
behind at all; what is gone by now costs the whole second."""


GONE_LOOKS = (0.1, 0.2, 0.4)
"""Seconds after which a call is decided again whose name a workload has that holds a place: it may just have
been deleted, and the watch not have told of it yet. What is really there is refused after the last."""


THREADS = 2
"""Threads that decide in this process. More would make each decision slower, since Python runs one at a time,
and would keep the event loop waiting between them; the second is there so that one slow decision does not
hold up all. Where other processes decide (`webhook.server.workers`), a thread for each waits for it."""


ANSWER_SHARE = 1 / 8
"""Of the time that a call has left, how much its answer is given: half a second of four, for the ledger and
the way back. A decision that would need it is ended, and answered in words."""


BUSY_SHARE = 1 / 4
"""Of the time that a decision had, how much of a core it had at least where it is the object that asks for
too much. With less it is the machine that is busy, or this process: another time the object is decided."""


@dataclass(slots=True)
class CallTime:
    """Until when a call is worth deciding, by the monotonic clock.

    `ended`: the caller has gone, or was answered. Decisions ask it inside all long work. `worked`: seconds of
    a core that its decisions had.
    """

    until: float = math.inf
    ended: bool = False
    worked: float = 0.0

    def over(self) -> bool:
        """Whether a decision for it is to end now."""
        return self.ended or time.monotonic() > self.until


Decider = Callable[[AdmissionRequest, PolicySet, Snapshot | None, Phase, Environment], tuple[Decision, float]]
"""`decide`, and the seconds of a core that another process took for it."""


def decide_here(
    request: AdmissionRequest,
    policies: PolicySet,
    snapshot: Snapshot | None,
    phase: Phase,
    environment: Environment,
) -> tuple[Decision, float]:
    """In the thread that asks."""
    return decide(request, policies, snapshot, phase, environment), 0.0


def deciding_threads(count: int = THREADS) -> ThreadPoolExecutor:
    """Threads in which calls are decided, or wait for a process that decides them."""
    return ThreadPoolExecutor(count, thread_name_prefix="decide")


def _again() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="decide-again")


def _steady() -> Callable[[], float]:
    """Seconds since the epoch as the machine's clock has them now, and from now on as time passes: holds
    neither expire nor outlive their time when somebody sets the clock."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


@dataclass(frozen=True, slots=True)
class Service:
    """What answers admission requests. `clock` gives seconds since the epoch, and never jumps."""

    policies: PolicyStore
    ledger: Ledger
    cluster: ClusterSource = field(default_factory=NoCluster)
    clock: Callable[[], float] = field(default_factory=_steady)
    parameters: ParametersStore = field(default_factory=ParametersStore)
    in_flight: InFlightReservations = field(default_factory=InFlightReservations)
    decider: Decider = decide_here
    threads: ThreadPoolExecutor = field(default_factory=deciding_threads)
    seats: Seats = field(default_factory=lambda: Seats(THREADS))
    """Whose turn it is at the threads."""
    precedence: Precedence = field(default_factory=Precedence)
    """Which of those that have their turn goes on."""
    again: ThreadPoolExecutor = field(default_factory=_again)
    """A call whose place was taken does not queue behind later calls, or they would always be faster."""
    try_seconds: float = field(default_factory=lambda: TRY_SECONDS)
    hold_seconds: float = HOLD_SECONDS
    """How long a place is held for an object that is not stored yet: longer than a call may take."""
    undoing: set[asyncio.Task[None]] = field(default_factory=set)
    """What gives back the places of calls that ended before their answers."""

    async def answer(self, request: AdmissionRequest, phase: Phase, deadline: float = math.inf) -> Decision:
        """Decide, and unless it is a dry run carry out the decision's ledger steps.

        `deadline`: when the call ends, by the monotonic clock. A decision that takes longer is a refusal in
        words before that.

        Never raises for an object or a ledger that is in a bad state: that becomes a refusal in words.
        """
        await self._surroundings_seen(request)
        started = time.monotonic()
        holder, lost = "", 0
        pauses = iter(GONE_LOOKS)
        call = CallTime(deadline - (deadline - started) * ANSWER_SHARE if deadline < math.inf else deadline)
        while not holder or time.monotonic() - started < self.try_seconds:
            try:
                decision = await self._try(request, phase, lost, call)
            except Conflict as conflict:
                holder, lost = conflict.holder, lost + 1
                continue
            except Occupied as error:
                pause = next(pauses, None)
                if pause is None:
                    return self._refused(request, 409, "AlreadyExists", f"{error}; delete it first")
                await asyncio.sleep(pause)
                continue
            except LedgerUnavailable as error:
                return self._refused(
                    request, 503, "ServiceUnavailable", f"no place can be reserved now: {error}"
                )
            except Crowded:
                message = f"too many calls of {_flow(request)} wait for a decision; apply again in a moment"
                return self._refused(request, 429, "TooManyRequests", message)
            if decision.late and call.worked < BUSY_SHARE * (call.until - started):
                return self._too_busy(request, call, call.until - started)
            return replace(decision, tries=lost + 1)
        message = (
            f"the place was taken again and again for {self.try_seconds:g} s while it was being reserved, "
            f"last by {holder}; apply again"
        )
        return replace(self._refused(request, 409, "Conflict", message), tries=lost)

    def _refused(self, request: AdmissionRequest, code: int, reason: str, message: str) -> Decision:
        """A refusal that is nobody's fault, where the mode of the namespace lets anything be refused."""
        response = Response(False, code=code, reason=reason, message=message)
        refused = Decision(response, request.object, revision=self.policies.current.revision)
        _, environment = self.surroundings()
        return in_mode(environment.mode(request), refused)

    def out_of_time(self, request: AdmissionRequest, deadline: float) -> Decision:
        """The answer to a call whose decision, or whose ledger, had no end in so many seconds."""
        message = f"no decision within {deadline:g} s: the webhook or the API server has too much to do"
        return self._refused(request, 429, "TooManyRequests", f"{message}; apply again in a moment")

    def _too_busy(self, request: AdmissionRequest, call: CallTime, had: float) -> Decision:
        worked = f"{1000 * call.worked:.0f} ms of the {had:.1f} s that it may take were worked on it"
        message = f"the webhook has too much to do: {worked}; apply again in a moment"
        return self._refused(request, 429, "TooManyRequests", message)

    async def _surroundings_seen(self, request: AdmissionRequest) -> None:
        """Wait until the request's namespace and its object's controller have been seen here as well.

        The namespace's label says whether anything is enforced there, and both may be applied at once; a
        Namespace itself comes with the request. A controller makes pods as soon as it sees their owner, and
        who is above a pod tells whether its gang waits, and whether it leaves the plan.
        """
        space = "" if request.kind.kind == "Namespace" else request.namespace
        owner = controller_of(request) if request.operation == "CREATE" else ""
        for _ in range(LOOKS):
            if self.cluster.knows_namespace(space) and (not owner or self.cluster.knows_owner(owner)):
                return
            await asyncio.sleep(LOOK_PAUSE)

    async def _try(self, request: AdmissionRequest, phase: Phase, lost: int, call: CallTime) -> Decision:
        """One decision, carried out. Raises `Conflict` where the ledger refuses it."""
        threads = self.again if lost else self.threads
        while True:
            read = time.monotonic()
            book = await self.ledger.book(self.clock(), reservations_of(request))
            work = partial(self._decide, request, phase, book, read, lost, call)
            # A call whose place was taken has had its turn.
            draft = await self._drafted(
                threads.submit(work)
                if lost
                else await self.seats.submit(threads, _flow(request), work, call.until),
                call,
            )
            if request.dry_run:
                return draft.decision
            if draft.relied:  # another call reserves the same gang: decide again with its outcome
                await settled(draft.relied)
                continue
            kept = False
            try:
                await self._do(draft.decision)
                kept = True
            except Conflict:
                if draft.decision.unless_held is None:
                    raise
                return replace(draft.decision, response=draft.decision.unless_held, steps=())
            finally:
                self.in_flight.settle(draft.promised, kept=kept)
            return draft.decision

    def surroundings(self) -> tuple[PolicySet, Environment]:
        """The policies that answer now, and what the cluster gives to their decisions, with parameters."""
        policies = self.policies.current
        return policies, self.parameters.in_force(self.cluster.environment(), policies)

    def settings(self) -> Callable[[str], Settings]:
        """Those that answer now, by namespace."""
        return self.surroundings()[1].settings

    def in_force(self) -> dict[str, Any]:
        """The settings that answer now, for people."""
        _, environment = self.surroundings()
        parameters = environment.parameters or NO_PARAMETERS
        settings = parameters.in_force(environment.settings(""), environment.namespaces)
        return {**settings, "warnings": [*settings["warnings"], *environment.wrong_labels()]}

    async def _drafted(self, deciding: Future[_Draft], call: CallTime) -> _Draft:
        """What a thread decides. Where the call ends before, the thread's work ends too, and its promises."""
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wrap_future(deciding)
        except asyncio.CancelledError:
            call.ended = True

            def forget(decided: Future[_Draft]) -> None:
                if not decided.cancelled() and decided.exception() is None:
                    promised = decided.result().promised
                    loop.call_soon_threadsafe(lambda: self.in_flight.settle(promised, kept=False))

            deciding.add_done_callback(forget)
            raise

    def _decide(
        self, request: AdmissionRequest, phase: Phase, book: Book, read: float, lost: int, call: CallTime
    ) -> _Draft:
        with plan_cache.apart(), self.precedence.running(call.over, _flow(request)) as late:
            return self._decided(request, phase, book, read, lost, call, late)

    def _decided(
        self,
        request: AdmissionRequest,
        phase: Phase,
        book: Book,
        read: float,
        lost: int,
        call: CallTime,
        late: Callable[[], bool],
    ) -> _Draft:
        while True:
            began = time.monotonic()
            current: Snapshot | None = self.cluster.snapshot()
            snapshot, unread = None, InFlight()
            if current is not None:
                snapshot, unread = self.in_flight.over(current.with_book(book), read)
            policies, environment = self.surroundings()
            rivals = len(unread) + RIVALS_BY_LOSS * lost
            environment = replace(environment, rivals=rivals, late=late, now=self.clock())
            worked = time.thread_time()
            decision, worker_seconds = self.decider(request, policies, snapshot, phase, environment)
            call.worked += time.thread_time() - worked + worker_seconds
            relied = _relied(decision, unread)
            new = [(step.reservation, step.headroom) for step in decision.steps if isinstance(step, Reserve)]
            if request.dry_run or relied or not new:
                return _Draft(decision, relied)
            promised = self.in_flight.add(new, began)
            if promised is not None:
                return _Draft(decision, (), promised)

    async def _do(self, decision: Decision) -> None:
        """Every step. Raises `Conflict` where the ledger refuses a place, or has lost one that is claimed."""
        now = self.clock()
        wishes = [
            Wish(hold_of(step.reservation, now, self.hold_seconds), step.planned_on, step.headroom)
            for step in decision.steps
            if isinstance(step, Reserve)
        ]
        if wishes:
            await self._reserve(wishes, now)
        for step in decision.steps:
            match step:
                case ReservationClaim(reservation_id, owner_uid):
                    if not await self.ledger.claim(reservation_id, owner_uid, now):
                        raise Conflict(reservation_id)
                case ReservationRelease(reservation_id):
                    await self.ledger.release(reservation_id)

    async def _reserve(self, wishes: Sequence[Wish], now: float) -> None:
        """Reserve all of these. If the call ends before its answer, what it was the first to hold is given
        back: nobody was told of it, and until it expired it would keep others out."""
        taking = asyncio.ensure_future(self.ledger.reserve_all(wishes, now))
        try:
            await asyncio.shield(taking)
        except asyncio.CancelledError:
            undoing = asyncio.ensure_future(self._give_back(taking))
            self.undoing.add(undoing)
            undoing.add_done_callback(self.undoing.discard)
            raise

    async def _give_back(self, taking: Awaitable[Taken]) -> None:
        with suppress(Conflict, LedgerUnavailable):
            taken = await taking
            for reservation in taken.reservations:
                if reservation.id in taken.new:
                    await self.ledger.give_back(reservation)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A decision before its steps. `relied`: reservations of its gangs that another call is making, which
    may yet be refused; `promised`: those that this call is about to make."""

    decision: Decision
    relied: InFlight = ()
    promised: InFlight = ()


def _flow(request: AdmissionRequest) -> str:
    """Whose calls wait behind each other: a user's in a namespace."""
    return f"{request.user_info.username or 'somebody'} in {request.namespace or 'no namespace'}"


def _relied(decision: Decision, unread: InFlight) -> InFlight:
    """Those in flight that the decision took for its own gangs' places."""
    held = decision.plan.reservations if decision.plan is not None else ()
    replayed = [reservation_identity(reservation) for reservation in held]
    return tuple(promise for promise in unread if reservation_identity(promise.reservation) in replayed)


def controller_of(request: AdmissionRequest) -> str:
    """NAMESPACE/KIND/NAME of the controller of the request's object; "" where none can be read."""
    metadata = (request.object or {}).get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, Mapping) and reference.get("controller") is True:
            kind, name = reference.get("kind"), reference.get("name")
            return f"{request.namespace}/{kind}/{name}"
    return ""
