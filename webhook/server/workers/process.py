"""One worker as the serving process sees it: a fork of it.

The fork happens in a thread of a process with other threads. That is safe for what the worker runs: `decide`
takes only the locks of the plan cache and of the capacity pool, which are held during the fork, so none is
left locked by a thread that the worker does not have. The worker never uses the cache lanes that other
threads had at that moment, nor the event loop, TLS, the watches and logging, and it closes their files. A
worker that still gets stuck is killed like any other that does not answer.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import socket
import sys
import warnings
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from planner.cluster import plan_cache
from planner.cluster.delta import SnapshotDelta, delta
from planner.cluster.snapshot import Snapshot
from webhook.admission.decision_record import Phase
from webhook.admission.environment import Environment
from webhook.policy.model.policy import PolicySet
from webhook.server.workers.child import Child
from webhook.server.workers.conversation import Knowledge, reply_to, surroundings
from webhook.server.workers.link import WorkerLink
from webhook.server.workers.messages import DecisionJob, Done, Failed, Question
from webhook.wire.request import AdmissionRequest

LOOK_SECONDS = 0.02
"""Interval at which the waiting thread checks whether its call is over."""

GRACE_SECONDS = 0.4
"""How long a worker may take to end a decision that is over: it checks every few milliseconds, and the answer
has an eighth of the call's time, half a second of four.
"""

MOST_CHANGES = 2000
"""Changed records after which a worker is forked again, because it shares less memory with each. At 5,000
nodes with 50,000 pods a new worker has 16 MB of its own, after 3,000 changes 58 MB; a fork takes 30 ms.
"""


class Overdue(Exception):  # noqa: N818 - an outcome, not a fault
    """The worker did not end a decision that was over."""


@dataclass(slots=True)
class WorkerProcess:
    """A worker, and what it knows. Used by one thread at a time."""

    pid: int
    link: WorkerLink
    over: mmap.mmap
    """A byte that both processes see: 1 if the decision should end."""
    policies: PolicySet
    snapshot: Snapshot | None
    knowledge: Knowledge = field(default_factory=Knowledge)
    changes: int = 0
    difference: SnapshotDelta | None = None
    """The change of the cluster that is sent with the next decision."""

    @classmethod
    def forked(cls, policies: PolicySet, snapshot: Snapshot | None) -> WorkerProcess:
        """Forks a new worker that decides with these policies. Raises `OSError` if that fails."""
        parent_end, child_end = socket.socketpair()
        try:
            over = mmap.mmap(-1, 1)
            pid = _fork(snapshot)
        except OSError:
            parent_end.close()
            child_end.close()
            raise
        if pid == 0:
            _live(Child(WorkerLink(child_end), policies, snapshot, lambda: over[0] != 0))
        child_end.close()
        return cls(pid, WorkerLink(parent_end), over, policies, snapshot)

    def unfit(self, policies: PolicySet, snapshot: Snapshot | None) -> str:
        """Returns why it cannot decide with these policies, or cannot follow to this cluster.

        The result is a reason of `bayplan_worker_starts_total`; "" if it can, and the next decision is then
        on that cluster.
        """
        if self.policies is not policies:
            return "policies"
        if self.changes > MOST_CHANGES:
            return "changes"
        if self.snapshot is None or snapshot is None:
            return "cluster" if self.snapshot is not snapshot else ""
        self.difference = delta(self.snapshot, snapshot)
        return "cluster" if self.difference is None else ""

    def decide(
        self, request: AdmissionRequest, snapshot: Snapshot | None, phase: Phase, environment: Environment
    ) -> Done | Failed:
        """Decides one request on a cluster that the worker fits.

        Raises `LinkLost` if the worker has ended, `Overdue` if it does not end in time, and the error of
        `pickle` for a request that cannot be sent. After each of these the worker must be killed.
        """
        difference, self.difference = self.difference, None
        if difference is not None:
            self.snapshot, self.changes = snapshot, self.changes + difference.changes
        self.over[0] = 0
        self.link.send(
            DecisionJob(request, phase, difference, surroundings(request, environment, self.knowledge))
        )
        while True:
            message = self._next(environment)
            if not isinstance(message, Question):
                answer: Done | Failed = message
                return answer
            self.link.send(reply_to(message, environment, self.knowledge))

    def _next(self, environment: Environment) -> Any:
        while not self.link.has_message(LOOK_SECONDS):
            if environment.late():
                self.over[0] = 1
                if not self.link.has_message(GRACE_SECONDS):
                    raise Overdue
        return self.link.receive()

    def kill(self) -> None:
        """Kills the process and releases everything."""
        self.link.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _fork(snapshot: Snapshot | None) -> int:
    with ExitStack() as held, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # for forks of multi-threaded processes, from Python 3.12 on
        held.enter_context(plan_cache.still())
        if snapshot is not None:
            held.enter_context(snapshot.base.capacities.lock)
        return os.fork()


def _live(child: Child) -> NoReturn:
    """Runs the worker. It never returns to the code of the serving process."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        # The serving process stops it by closing the link, after its calls have ended.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        gc.freeze()
        _close_all_but(child.link.fileno())
        child.run()
        status = 0
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _close_all_but(kept: int) -> None:
    """Closes the ports and connections of the serving process, which must end with that process."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):
                os.close(int(name))
