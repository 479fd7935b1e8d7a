"""One worker as the serving process sees it: a fork of itself.

The serving process has several threads, and only the one that forks exists in the worker. A lock that another
thread holds at that moment would stay locked there for ever. That is no problem for a worker: `decide` takes
only the locks of the plan cache and of the capacity cache, and the forking thread holds both during the fork.
The worker never uses the parts of the plan cache that other threads had at that moment, nor the event loop,
TLS, the watches and logging, and it closes their files. A worker that hangs in spite of this is killed, like
any other that does not answer in time.
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
"""Seconds between two checks of the waiting thread whether its call is over."""

GRACE_SECONDS = 0.4
"""Seconds that a worker has to end a decision whose call is over, before it is killed. A decision checks
every few milliseconds whether its call is over. The grace is shorter than the time that is reserved for the
answer, half a second of four (`service.ANSWER_SHARE`).
"""

MOST_CHANGES = 2000
"""The number of changed records of the snapshot after which a worker is replaced by a new fork, because with
each change it shares less memory with the serving process. In a cluster of 5,000 nodes with 50,000 pods, a
new worker has 17 MB of its own, and 54 MB after 3,000 changes; a fork takes 30 ms.
"""


class Overdue(Exception):  # noqa: N818 - an outcome, not a fault
    """The worker did not end its decision within `GRACE_SECONDS` after the call was over."""


@dataclass(slots=True)
class WorkerProcess:
    """A worker process, and the data that it has. Used by one thread at a time.

    `policies`: the policies at its fork; `snapshot`: the cluster of its last decision; `changes`: the number
    of records of the snapshot that have changed since its fork.
    """

    pid: int
    link: WorkerLink
    over: mmap.mmap
    """A byte of shared memory: 1 if the current decision should end."""
    policies: PolicySet
    snapshot: Snapshot | None
    knowledge: Knowledge = field(default_factory=Knowledge)
    changes: int = 0
    difference: SnapshotDelta | None = None
    """The change of the cluster that is sent with the next decision; set by `unfit`."""

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
        """Returns why the worker cannot decide with these policies on this cluster; "" if it can.

        The result is the label `reason` of the metric `bayplan_worker_starts_total`. If it is "", the next
        call of `decide` must be for this cluster.
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
        """Has the worker decide on one request, and returns its answer. `unfit` must have returned "" before.

        Raises `LinkLost` if the worker has ended, `Overdue` if it does not end the decision in time, and the
        error of `pickle` for a request that cannot be sent. After each of these the worker must be killed.
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
        """Kills the process, waits for its end, and closes the link."""
        self.link.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _fork(snapshot: Snapshot | None) -> int:
    with ExitStack() as held, warnings.catch_warnings():
        # Python 3.12 and later warn of each fork of a process with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        held.enter_context(plan_cache.without_lane_changes())
        if snapshot is not None:
            held.enter_context(snapshot.base.capacities.lock)
        return os.fork()


def _live(child: Child) -> NoReturn:
    """Runs the worker in the forked process, and exits. Never returns to the code of the serving process."""
    status = 1
    try:
        # Otherwise a signal to the worker would wake the event loop of the serving process.
        signal.set_wakeup_fd(-1)
        # The serving process ends its workers itself, by SIGKILL after its calls have ended.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        gc.freeze()  # a collection would write to inherited objects, so that their memory is no longer shared
        _close_all_but(child.link.fileno())
        child.run()
        status = 0
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _close_all_but(kept: int) -> None:
    """Closes all inherited files apart from `kept` and the standard streams.

    The ports and connections of the serving process must not stay open when that process has closed them.
    """
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):
                os.close(int(name))
