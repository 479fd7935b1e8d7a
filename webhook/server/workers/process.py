"""One worker as the serving process sees it: a fork of it.

It is forked from a thread of a process that has others, and that is sound for what it runs: `decide` takes no
lock but those of the plan cache and of the pool of capacities, which are held here during the fork, so that
none is left held by a thread that the worker does not have. In lanes of the cache that other threads had at
that moment it never looks. What it does not run (the event loop, TLS, the watches, logging) it never touches,
and it closes all their files. A worker that is stuck all the same is killed as any other that does not
answer.
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
"""Between two looks of the thread that waits whether its call is over."""

GRACE_SECONDS = 0.4
"""How long a worker may take to end a decision that is over: it asks every few milliseconds, and the answer
has an eighth of the call's time, half a second of four."""

MOST_CHANGES = 2000
"""Changed records after which a worker is forked anew: it shares less of the picture with each. At 5,000
nodes with 50,000 pods a new one has 16 MB of its own, after 3,000 changes it has 58; a fork takes 30 ms."""


class Overdue(Exception):  # noqa: N818 - an outcome, not a fault
    """The worker did not end a decision that was over."""


@dataclass(slots=True)
class WorkerProcess:
    """A worker, and what it knows. One thread at a time uses it."""

    pid: int
    link: WorkerLink
    over: mmap.mmap
    """A byte that both see: 1 where the decision is to end."""
    policies: PolicySet
    snapshot: Snapshot | None
    knowledge: Knowledge = field(default_factory=Knowledge)
    changes: int = 0
    difference: SnapshotDelta | None = None
    """What it is to be sent with the next decision."""

    @classmethod
    def forked(cls, policies: PolicySet, snapshot: Snapshot | None) -> WorkerProcess:
        """A new one, which decides by these policies. Raises `OSError` where there is none to be had."""
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
        """Why it cannot decide by these policies, or follow to this cluster: a reason of
        `bayplan_worker_starts_total`. "" where it can; the next decision is on that cluster."""
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
        """Have one request decided on a cluster that it fits.

        Raises `LinkLost` where it has ended, `Overdue` where it does not end in time, and what `pickle`
        raises for a request that cannot be sent. After each of them it is to be killed.
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
        """At once; nothing is left of it."""
        self.link.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _fork(snapshot: Snapshot | None) -> int:
    with ExitStack() as held, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
        held.enter_context(plan_cache.still())
        if snapshot is not None:
            held.enter_context(snapshot.base.capacities.lock)
        return os.fork()


def _live(child: Child) -> NoReturn:
    """The worker's life. It never returns into what the serving process was doing."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        # The serving process stops it, when its calls have ended, by closing the link.
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
    """Ports and connections of the serving process: they are to end with it."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):
                os.close(int(name))
