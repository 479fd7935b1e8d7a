"""The code that a worker runs: one decision after another, until the serving process closes the link or
ends.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from planner.cluster import plan_cache
from planner.cluster.delta import apply_delta
from planner.cluster.snapshot import Snapshot
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.placement.workload_plan import WorkloadPlan
from webhook.policy.model.policy import PolicySet
from webhook.server.workers.link import LinkLost, WorkerLink
from webhook.server.workers.messages import DecisionJob, Done, EnvironmentReply, Failed, Question
from webhook.server.workers.worker_environment import WorkerMemory, worker_environment


@dataclass(slots=True)
class Child:
    """The state of a worker process.

    `late`: reports whether the serving process wants the current decision to end.
    """

    link: WorkerLink
    policies: PolicySet
    snapshot: Snapshot | None
    late: Callable[[], bool]
    memory: WorkerMemory = field(default_factory=WorkerMemory)

    def run(self) -> None:
        """Answers jobs until the other end of the link is closed."""
        with plan_cache.in_own_lane(), suppress(LinkLost):
            while True:
                self._answer(self.link.receive())

    def _answer(self, job: DecisionJob) -> None:
        began = time.thread_time()
        try:
            decision = self._decided(job)
            self.link.send(Done(decision, time.thread_time() - began))
        except LinkLost:
            raise
        except Exception:  # an internal error, or an object that is nested too deeply to be sent
            self.link.send(Failed(traceback.format_exc()))

    def _decided(self, job: DecisionJob) -> Decision:
        if self.snapshot is not None and job.difference is not None:
            self.snapshot = apply_delta(self.snapshot, job.difference)
        environment = worker_environment(job.surroundings, self.memory, self._ask, self.late)
        decision = decide(job.request, self.policies, self.snapshot, job.phase, environment)
        return decision if decision.plan is None else replace(decision, plan=_bare(decision.plan))

    def _ask(self, question: Question) -> Any:
        self.link.send(question)
        reply: EnvironmentReply = self.link.receive()
        if reply.error is not None:
            raise reply.error
        return reply.value


def _bare(plan: WorkloadPlan) -> WorkloadPlan:
    """Returns the plan without its snapshot, which the serving process adds again (`with_snapshot`), and
    without its resolved requests, which are not needed after the plan.
    """
    placed = tuple(replace(gang, answer=replace(gang.answer, request=None)) for gang in plan.placed)
    return replace(plan, placed=placed, snapshot=None)  # type: ignore[arg-type]
