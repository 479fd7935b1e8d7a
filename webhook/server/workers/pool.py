"""The workers of a server, and which of them decides.

`Pool.decide` takes the place of `decide`: a thread that has a decision to make gives it to an idle worker and
waits. Where there is none that fits (the first of all, other policies, a cluster of other places) the serving
process decides itself, and forks a worker after it, which shares what was worked out; so a server that is
seldom asked twice at once has one worker.

A worker that is lost, killed from outside or ended, is replaced: its decision is made again by a new one, and
a second time lost it is answered in words, never made in the serving process.
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
"""How many workers a decision may cost."""


def started_workers() -> Metric:
    """The counter, on no registry so far."""
    meaning = (
        "Processes that decide, started, by why: asked, policies (changed), cluster (other places), changes "
        "(too many to share the picture still), lost (killed, or ended)"
    )
    return Metric("bayplan_worker_starts", meaning, ["reason"], registry=None)


def living_workers() -> Gauge:
    """The gauge, on no registry so far."""
    return Gauge("bayplan_workers", "Processes that decide (`serve --workers`)", registry=None)


class Pool:
    """At most `count` workers. Safe in any thread; `close` it after use, when nobody decides any more."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.problem = ""
        """Why there are fewer workers than asked for, "" where nothing is wrong."""
        self.idle: queue.Queue[WorkerProcess | None] = queue.LifoQueue()
        """Places, empty ones among them. Who was used last is taken first: it has least to follow."""
        for _ in range(count):
            self.idle.put(None)
        self.pids: set[int] = set()
        """The processes that there are now."""
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
        """What `decide` answers, and the seconds of a core that a worker took for it."""
        for attempt in range(ATTEMPTS):
            with self._slot(environment) as slot:
                if slot is None:  # the time is over before one was idle
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
                        request.label or request.kind.kind,
                        lost,
                    )
                    continue
                except Overdue:
                    log.warning(
                        "a worker did not end its decision on %s, and was killed",
                        request.label or request.kind.kind,
                    )
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
        """End all of them."""
        for _ in range(self.count):
            worker = self.idle.get()
            if worker is not None:
                self.end(worker)

    @contextmanager
    def _slot(self, environment: Environment) -> Iterator[_Slot | None]:
        """A place among the workers for the length of a decision; None where its time ends before."""
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
        """A new worker, None where there is none to be had."""
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
        """At once."""
        with self._lock:
            self.pids.discard(worker.pid)
        worker.kill()


class WorkerFault(Exception):  # noqa: N818 - the server's log has it whole
    """A decision raised in a worker what nobody expects of it; its traceback there."""


class _Slot:
    """A worker's place; `worker` None where none is in it."""

    def __init__(self, pool: Pool, worker: WorkerProcess | None) -> None:
        self._pool = pool
        self.worker = worker

    def unfit(self, policies: PolicySet, snapshot: Snapshot | None) -> str:
        """Why what is in this place cannot decide by these policies on this cluster, "" where it can."""
        return "asked" if self.worker is None else self.worker.unfit(policies, snapshot)

    def fork(self, policies: PolicySet, snapshot: Snapshot | None, reason: str) -> bool:
        """Put a new worker in this place; whether there is one to be had."""
        self._emptied()
        self.worker = self._pool.start(policies, snapshot, reason)
        return self.worker is not None

    def decided(
        self, request: AdmissionRequest, snapshot: Snapshot | None, phase: Phase, environment: Environment
    ) -> Done | Failed:
        """The answer of the worker in this place. Raises what `WorkerProcess.decide` does."""
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
    """The answer where each worker was lost over the request."""
    message = (
        f"{ATTEMPTS} processes in turn were killed or ended while they decided on it; apply again, and if it "
        "happens again look for their end in the node's log (memory?)"
    )
    response = Response(False, code=500, reason="InternalError", message=message)
    refused = Decision(response, request.object, revision=policies.revision)
    return in_mode(environment.mode(request), refused)
