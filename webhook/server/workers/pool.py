"""The worker processes of a server, and the choice of a worker for each decision.

`Pool.decide` is called instead of `decide`: the calling thread gives the decision to an idle worker and
waits. If that worker cannot make it (there is no worker yet, or policies or topologies have changed), the
serving process decides itself and then forks a new worker, which shares the results in its caches. A server
that rarely has concurrent calls therefore has one worker.

A worker that was killed or has ended is replaced, and a new one makes its decision again. If the new one is
lost too, the call is refused with a message. The serving process never makes such a decision itself, because
it might be killed as well, for example for the memory that the decision takes.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pickle import PicklingError

from prometheus_client import Counter as Metric
from prometheus_client import Gauge

from planner.cluster.snapshot import Snapshot
from webhook.admission.decision import decide, in_mode
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import Environment
from webhook.policy.model.policy import PolicySet
from webhook.server.workers.conversation import with_snapshot
from webhook.server.workers.link import LinkLost
from webhook.server.workers.messages import Done, Failed
from webhook.server.workers.process import LOOK_SECONDS, Overdue, WorkerProcess
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import Response

log = logging.getLogger("bayplan")

ATTEMPTS = 2
"""The maximum number of workers that may be lost for one decision."""


def started_workers() -> Metric:
    """Returns a new counter of started workers, without a registry."""
    meaning = (
        "Processes that decide, started, by why: asked, policies (changed), cluster (other places), changes "
        "(too many to share the picture still), lost (killed, or ended)"
    )
    return Metric("bayplan_worker_starts", meaning, ["reason"], registry=None)


def living_workers() -> Gauge:
    """Returns a new gauge of running workers, without a registry."""
    return Gauge("bayplan_workers", "Processes that decide (`serve --workers`)", registry=None)


class Pool:
    """A pool of at most `count` workers. Thread-safe. `close` must be called after the last decision."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.problem = ""
        """Why there are fewer workers than requested; "" if there are enough."""
        self.idle: queue.Queue[WorkerProcess | None] = queue.LifoQueue()
        """The workers that have no decision, None for each that is not started. The one that was used last is
        taken first, because it has missed the fewest changes of the cluster.
        """
        for _ in range(count):
            self.idle.put(None)
        self.pids: set[int] = set()
        """The process ids of all running workers."""
        self._lock = threading.Lock()
        self.starts = started_workers()
        self.workers = living_workers()
        self.workers.set_function(lambda: len(self.pids))

    def decide(
        self,
        request: AdmissionRequest,
        policies: PolicySet,
        snapshot: Snapshot | None,
        phase: Phase,
        environment: Environment,
    ) -> tuple[Decision, float]:
        """Returns the decision as `decide` makes it, and the core seconds that a worker took for it (0 if
        this process decided). Raises `WorkerFault` if `decide` raised an unexpected error in the worker.
        """
        # `break` leaves the decision to this process, at the end.
        for attempt in range(ATTEMPTS):
            with self._slot(environment) as slot:
                if slot is None:  # the call's time was over before a worker was idle
                    break
                unfit = slot.unfit(policies, snapshot)
                if unfit and not attempt:
                    decision = decide(request, policies, snapshot, phase, environment)
                    slot.fork(policies, snapshot, unfit)
                    return decision, 0.0
                if unfit and not slot.fork(policies, snapshot, "lost"):
                    return _lost(request, policies, environment), 0.0
                try:
                    answer = slot.decided(request, snapshot, phase, environment)
                except LinkLost as lost:
                    log.warning(
                        "a worker was lost while it decided on %s: %s",
                        request.display_name or request.kind.kind,
                        lost,
                    )
                    continue
                except Overdue:
                    log.warning(
                        "a worker did not end its decision on %s, and was killed",
                        request.display_name or request.kind.kind,
                    )
                    # This process must not take as long: it refuses the request at the first check.
                    environment = replace(environment, late=lambda: True)
                    break
                except (PicklingError, RecursionError):  # nested too deeply to be sent
                    break
            if isinstance(answer, Failed):
                raise WorkerFault(answer.traceback)
            return with_snapshot(answer.decision, request, snapshot, environment), answer.worked
        else:
            return _lost(request, policies, environment), 0.0
        return decide(request, policies, snapshot, phase, environment), 0.0

    def close(self) -> None:
        """Waits until all workers are idle, and ends them."""
        for _ in range(self.count):
            worker = self.idle.get()
            if worker is not None:
                self.end(worker)

    @contextmanager
    def _slot(self, environment: Environment) -> Iterator[_Slot | None]:
        """A context that reserves a slot; yields None if the call's time is over before a slot is free."""
        while True:
            try:
                worker = self.idle.get(timeout=LOOK_SECONDS)
                break
            except queue.Empty:
                if environment.late():
                    yield None
                    return
        slot = _Slot(self, worker)
        try:
            yield slot
        finally:
            self.idle.put(slot.worker)

    def start(self, policies: PolicySet, snapshot: Snapshot | None, reason: str) -> WorkerProcess | None:
        """Starts a new worker; returns None and sets `problem` if that fails."""
        try:
            worker = WorkerProcess.forked(policies, snapshot)
        except OSError as error:
            self.problem = (
                f"no process that decides can be started ({error.strerror}): the server decides itself"
            )
            return None
        self.problem = ""
        with self._lock:
            self.pids.add(worker.pid)
        self.starts.labels(reason).inc()
        return worker

    def end(self, worker: WorkerProcess) -> None:
        """Kills the worker's process."""
        with self._lock:
            self.pids.discard(worker.pid)
        worker.kill()


class WorkerFault(Exception):  # noqa: N818 - the server logs it with the traceback
    """An unexpected error in a worker; contains its traceback."""


class _Slot:
    """The place of one worker in the pool, reserved for one decision; `worker` is None if no worker is
    started.
    """

    def __init__(self, pool: Pool, worker: WorkerProcess | None) -> None:
        self._pool = pool
        self.worker = worker

    def unfit(self, policies: PolicySet, snapshot: Snapshot | None) -> str:
        """Returns why this slot's worker cannot decide with these policies on this cluster; "" if it can."""
        return "asked" if self.worker is None else self.worker.unfit(policies, snapshot)

    def fork(self, policies: PolicySet, snapshot: Snapshot | None, reason: str) -> bool:
        """Replaces this slot's worker by a new one; returns whether that succeeded."""
        self._emptied()
        self.worker = self._pool.start(policies, snapshot, reason)
        return self.worker is not None

    def decided(
        self, request: AdmissionRequest, snapshot: Snapshot | None, phase: Phase, environment: Environment
    ) -> Done | Failed:
        """Returns the answer of this slot's worker.

        Raises the errors of `WorkerProcess.decide`, after it has killed the worker.
        """
        assert self.worker is not None, "whoever asks has made sure that it fits"
        try:
            return self.worker.decide(request, snapshot, phase, environment)
        except BaseException:
            self._emptied()
            raise

    def _emptied(self) -> None:
        if self.worker is not None:
            self._pool.end(self.worker)
            self.worker = None


def _lost(request: AdmissionRequest, policies: PolicySet, environment: Environment) -> Decision:
    """Returns the refusal of a request for which `ATTEMPTS` workers were lost."""
    message = (
        f"{ATTEMPTS} processes in turn were killed or ended while they decided on it; apply again, and if it "
        "happens again look for their end in the node's log (memory?)"
    )
    response = Response(False, code=500, reason="InternalError", message=message)
    refused = Decision(response, request.object, revision=policies.revision)
    return in_mode(environment.mode(request), refused)
