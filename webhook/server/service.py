"""Decides one admission call, and makes its reservations in the ledger.

The decision is a pure function. It runs in a thread, on the reservations that the ledger has at that moment
(the book); `LedgerSteps` carries out its steps afterwards. On a conflict (another caller reserved the place
meanwhile) the call is decided again on a new snapshot, as long as there is time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any

from planner.cluster import plan_cache
from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, Ledger, LedgerUnavailable, Occupied
from planner.model.reservation import Book
from webhook.admission.configuration.parameters import NO_PARAMETERS
from webhook.admission.configuration.settings import Settings
from webhook.admission.decision import decide, in_mode
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import Environment
from webhook.admission.ledger_steps import reservation_identity, reservations_of
from webhook.placement.hold import HOLD_SECONDS
from webhook.policy.loading.files import PolicyStore
from webhook.policy.model.policy import PolicySet
from webhook.server.carrying_out import LedgerSteps
from webhook.server.cluster_source import ClusterSource, NoCluster, surroundings_seen
from webhook.server.in_flight import InFlight, InFlightReservations, wait_until_settled
from webhook.server.parameters_store import ParametersStore
from webhook.server.permits import Crowded, Permits
from webhook.server.precedence import Precedence
from webhook.server.rivals import Rivals
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import Response

TRY_SECONDS = 3.0
"""Seconds from the start of a call during which it is decided again if another caller reserved the chosen
place first. Less than the deadline of a call (`http.DEADLINE`), so that there is time to answer "apply
again"; `bayplan serve --deadline` keeps the proportion.
"""


OCCUPIED_PAUSES = (0.1, 0.2, 0.4)
"""Pauses in seconds before a call is decided again because another workload of the same name holds a place:
that workload may just have been deleted, and the watch not have reported it yet. If it still exists after the
last pause, the call is refused.
"""


THREADS = 2
"""Threads that decide in this process. More would make each decision slower, since Python runs one at a time,
and delay the event loop. The second thread keeps one slow decision from blocking all others. With worker
processes (`webhook.server.workers`), there is one thread per worker, which waits for its answers.
"""


ANSWER_SHARE = 1 / 8
"""The share of a call's remaining time that is reserved for its answer, that is for the ledger and the
network: half a second of four. A decision that is not finished before that is stopped, and the call refused
with a message.
"""


BUSY_SHARE = 1 / 4
"""The minimum share of a core that a late decision must have had for the object to count as too expensive.
With a smaller share, the machine or this process is overloaded, and the user is told to apply again.
"""


@dataclass(slots=True)
class CallTime:
    """The time of one call, as its decisions see it from their threads.

    `until`: when the call's decisions must end, monotonic seconds. `ended`: the call was cancelled (its
    caller hung up, or its deadline passed). `worked`: core seconds that its decisions took.
    """

    until: float = math.inf
    ended: bool = False
    worked: float = 0.0

    def should_end(self) -> bool:
        """Reports whether a decision for the call should end now. All long loops of a decision ask this."""
        return self.ended or time.monotonic() > self.until


Decider = Callable[[AdmissionRequest, PolicySet, Snapshot | None, Phase, Environment], tuple[Decision, float]]
"""The type of a function that decides like `decide`, and also returns the core seconds that another process
took for it (`Pool.decide`).
"""


def decide_here(
    request: AdmissionRequest,
    policies: PolicySet,
    snapshot: Snapshot | None,
    phase: Phase,
    environment: Environment,
) -> tuple[Decision, float]:
    """Decides in the calling thread; returns 0 core seconds of other processes."""
    return decide(request, policies, snapshot, phase, environment), 0.0


def deciding_threads(count: int = THREADS) -> ThreadPoolExecutor:
    """Returns the threads in which calls are decided, or wait for a worker process."""
    return ThreadPoolExecutor(count, thread_name_prefix="decide")


def _again() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="decide-again")


def _steady() -> Callable[[], float]:
    """Returns a clock that reads the machine's time once, in seconds since the epoch, and advances
    monotonically.

    So no hold expires early or late if somebody sets the machine's clock.
    """
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


@dataclass(frozen=True, slots=True)
class Service:
    """Answers admission requests.

    `clock`: returns seconds since the epoch, and never jumps. `in_flight`: the reservations that calls are
    making now. `decider`: decides one request; it is called in `threads`. `try_seconds`: see `TRY_SECONDS`.
    `hold_seconds`: how long a reservation is held for an object that is not stored yet. `steps`: carries out
    the ledger steps of decisions.
    """

    policies: PolicyStore
    ledger: Ledger
    cluster: ClusterSource = field(default_factory=NoCluster)
    clock: Callable[[], float] = field(default_factory=_steady)
    parameters: ParametersStore = field(default_factory=ParametersStore)
    in_flight: InFlightReservations = field(default_factory=InFlightReservations)
    decider: Decider = decide_here
    threads: ThreadPoolExecutor = field(default_factory=deciding_threads)
    permits: Permits = field(default_factory=lambda: Permits(THREADS))
    """The queue for the threads."""
    rivals: Rivals = field(default_factory=lambda: Rivals(THREADS))
    """The estimate of how many other calls may choose the same places at the same moment."""
    precedence: Precedence = field(default_factory=Precedence)
    """Which of the running decisions continues."""
    again: ThreadPoolExecutor = field(default_factory=_again)
    """The thread for calls that are decided again after a conflict. They do not queue with new calls, which
    might reserve the place before them again.
    """
    try_seconds: float = field(default_factory=lambda: TRY_SECONDS)
    hold_seconds: InitVar[float] = HOLD_SECONDS
    steps: LedgerSteps = field(init=False)

    def __post_init__(self, hold_seconds: float) -> None:
        """Creates `steps` from the ledger and the clock."""
        object.__setattr__(self, "steps", LedgerSteps(self.ledger, self.clock, hold_seconds))

    async def answer(self, request: AdmissionRequest, phase: Phase, deadline: float = math.inf) -> Decision:
        """Decides on a request, and unless it is a dry run carries out the decision's ledger steps.

        `deadline`: the end of the call, monotonic seconds. A decision that takes too long is stopped before
        that (`ANSWER_SHARE`) and becomes a refusal with a message, as do an invalid object and an unavailable
        ledger: none of them raises an error.
        """
        await surroundings_seen(self.cluster, request)
        started = time.monotonic()
        holder, lost = "", 0
        pauses = iter(OCCUPIED_PAUSES)
        call = CallTime(deadline - (deadline - started) * ANSWER_SHARE if deadline < math.inf else deadline)
        while not holder or time.monotonic() - started < self.try_seconds:
            try:
                decision = await self._try(request, phase, lost, call)
            except Conflict as conflict:
                holder, lost = conflict.holder, lost + 1
                self.rivals.record_conflict()
                continue
            except Occupied as error:
                pause = next(pauses, None)
                if pause is None:
                    return self._refused(request, 409, "AlreadyExists", f"{error}; delete it first")
                await asyncio.sleep(pause)
                continue
            except LedgerUnavailable as error:
                action = "released" if request.operation == "DELETE" else "reserved"
                return self._refused(
                    request, 503, "ServiceUnavailable", f"no place can be {action} now: {error}"
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
        """Returns the refusal of a request for an internal reason; unless the mode of the namespace is
        `enforce`, the request is allowed nevertheless.
        """
        response = Response(False, code=code, reason=reason, message=message)
        refused = Decision(response, request.object, revision=self.policies.current.revision)
        _, environment = self.surroundings()
        return in_mode(environment.mode(request), refused)

    def out_of_time(self, request: AdmissionRequest, deadline: float) -> Decision:
        """Returns the refusal of a call whose decision or reservation did not finish within `deadline`
        seconds.
        """
        message = f"no decision within {deadline:g} s: the webhook or the API server has too much to do"
        return self._refused(request, 429, "TooManyRequests", f"{message}; apply again in a moment")

    def _too_busy(self, request: AdmissionRequest, call: CallTime, had: float) -> Decision:
        worked = f"{1000 * call.worked:.0f} ms of the {had:.1f} s that it may take were worked on it"
        message = f"the webhook has too much to do: {worked}; apply again in a moment"
        return self._refused(request, 429, "TooManyRequests", message)

    async def _try(self, request: AdmissionRequest, phase: Phase, lost: int, call: CallTime) -> Decision:
        """Makes one decision and carries it out.

        `lost`: the number of conflicts that the call had so far. Raises `Conflict`, `Occupied` or
        `LedgerUnavailable` if the ledger does not make a reservation, `Crowded` if the call gets no permit.
        """
        threads = self.again if lost else self.threads
        while True:
            read = time.monotonic()
            book = await self.ledger.book(self.clock(), reservations_of(request))
            work = partial(self._decide, request, phase, book, read, lost, call)
            # A call that is decided again after a conflict had its turn in the queue already.
            draft = await self._drafted(
                threads.submit(work)
                if lost
                else await self.permits.submit(threads, _flow(request), work, call.until),
                call,
            )
            if request.dry_run:
                return draft.decision
            if draft.relied:  # another call reserves the same gang: decide again with its result
                await wait_until_settled(draft.relied)
                continue
            kept = False
            try:
                await self.steps.carry_out(draft.decision)
                kept = True
            except Conflict:
                if draft.decision.unless_held is None:  # else the response for this case is already decided
                    raise
                return replace(draft.decision, response=draft.decision.unless_held, steps=())
            finally:
                self.in_flight.settle(draft.promised, kept=kept)
            return draft.decision

    def surroundings(self) -> tuple[PolicySet, Environment]:
        """Returns the current policies, and the environment for decisions, which has the parameters."""
        policies = self.policies.current
        return policies, self.parameters.in_force(self.cluster.environment(), policies)

    def settings(self) -> Callable[[str], Settings]:
        """Returns a function that returns the current settings of a namespace."""
        return self.surroundings()[1].settings

    def in_force(self) -> dict[str, Any]:
        """Returns the current settings of namespaces without settings of their own, the revision and sources
        of the parameters, and warnings, for /readyz and /metrics.
        """
        _, environment = self.surroundings()
        parameters = environment.parameters or NO_PARAMETERS
        settings = parameters.in_force(environment.settings(""), environment.namespaces)
        return {**settings, "warnings": [*settings["warnings"], *environment.wrong_labels()]}

    async def _drafted(self, deciding: Future[_Draft], call: CallTime) -> _Draft:
        """Waits for the decision of a thread. If the call is cancelled meanwhile, stops the decision, and
        removes its reservations from those in flight.
        """
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
        with plan_cache.own_lane(), self.precedence.running(call.should_end, _flow(request)) as late:
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
                snapshot, unread = self.in_flight.added_to(current.with_book(book), read)
            policies, environment = self.surroundings()
            rivals = self.rivals.assumed(len(unread), lost)
            environment = replace(environment, rivals=rivals, late=late, now=self.clock())
            worked = time.thread_time()
            decision, worker_seconds = self.decider(request, policies, snapshot, phase, environment)
            call.worked += time.thread_time() - worked + worker_seconds
            relied = _relied(decision, unread)
            new = [step for step in decision.steps if isinstance(step, Wish)]
            if request.dry_run or relied or not new:
                return _Draft(decision, relied)
            promised = self.in_flight.add(new, began)
            if promised is not None:
                return _Draft(decision, (), promised)
            # Another thread has added a conflicting reservation in the meantime: decide again with it.


@dataclass(frozen=True, slots=True)
class _Draft:
    """A decision whose steps are not carried out yet.

    `relied`: reservations of the decision's own gangs that another call is making, and that the ledger may
    still refuse. `promised`: the reservations in flight that this call is about to make.
    """

    decision: Decision
    relied: InFlight = ()
    promised: InFlight = ()


def _flow(request: AdmissionRequest) -> str:
    """Returns the flow of a call for the fair queue: its user and namespace, in words for messages."""
    return f"{request.user_info.username or 'somebody'} in {request.namespace or 'no namespace'}"


def _relied(decision: Decision, unread: InFlight) -> InFlight:
    """Returns the entries of `unread` that are reservations of the decision's own gangs, so that the
    decision's plan repeats them.
    """
    held = decision.plan.reservations if decision.plan is not None else ()
    replayed = [reservation_identity(reservation) for reservation in held]
    return tuple(promise for promise in unread if reservation_identity(promise.reservation) in replayed)
