"""Workloads in a queue of Kueue's: when they are planned, and whether at all. Pure.

    a kind that Kueue suspends               when it is resumed; nothing is held till then
    pods, where a flavor has a topology      not at all: Kueue assigns their nodes, and writes them onto each
    pods, in another queue                   when Kueue has opened its own gate; they wait at ours till then

A place that is held while Kueue still waits for quota may be the place that the gang needs which has the
quota: each would wait for the other (Kueue ff69552e, pkg/controller/jobs/pod/pod_webhook.go).
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.names import kind_of
from planner.model.schedulers import KUEUE, SchedulersSeen
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload

GATED_OWNERS = ("", "Pod", "ReplicaSet", "StatefulSet", "LeaderWorkerSet")
"""What makes the pods that Kueue gates, "" for a user (Kueue v0.19.2, pkg/controller/jobs)."""


def in_kueues_queue(workload: Workload, seen: SchedulersSeen, operation: str) -> Workload:
    """The workload as Kueue treats it, where the cluster shows Kueue."""
    if KUEUE not in seen.shown:
        return workload
    if workload.suspends:  # by Kueue's own webhook, before ours or after
        return replace(workload, suspended=True, holds=False) if operation == "CREATE" else workload
    if seen.queue_topologies.get(workload.kueue):
        return replace(workload, kueue_places=True)
    return replace(workload, awaits_kueue=workload.holds)


def until_admitted(plan: WorkloadPlan, before: Snapshot) -> WorkloadPlan:
    """The plan of a workload that Kueue has not admitted: gangs without a place wait, and hold nothing.

    `before`: the snapshot in which it was planned. What can never run is refused now; a gang that would
    rather be refused, or start, than wait is left as it was planned.
    """
    placed = tuple(map(_waiting, plan.placed))
    for gang_plan in placed:
        if gang_plan.reservation is not None:
            before = before.with_reservation(gang_plan.reservation)
    return replace(plan, placed=placed, snapshot=before)


def comes_to_kueues_gate(workload: Workload, operation: str) -> bool:
    """Whether this is a new pod that Kueue gates: of those of a Job, which it suspends, it gates none."""
    return workload.awaits_kueue and operation == "CREATE" and kind_of(workload.owner) in GATED_OWNERS


def at_kueues_gate(plan: WorkloadPlan) -> WorkloadPlan:
    """The plan of a new pod whose gang has its place: it waits at our gate until Kueue has admitted it.

    Kueue may admit it in another flavor than the pods before it, and a pod that is pinned already would be
    bound nowhere then. The controller lets it in.
    """

    def waits(gang_plan: GangPlan) -> GangPlan:
        gang = gang_plan.group.name
        message = f"pod of {gang}, which goes to its place when Kueue has admitted it"
        answer = Answer(gang, "queued", reason="WaitsForKueue", message=message)
        return GangPlan(replace(gang_plan.group, on_unavailable="queue"), answer)

    return replace(plan, placed=tuple(map(waits, plan.placed)))


def _waiting(gang_plan: GangPlan) -> GangPlan:
    group, answer = gang_plan.group, gang_plan.answer
    if answer.replayed or answer.decision == "rejected" or group.on_unavailable != "queue":
        return gang_plan
    message = (
        "Kueue has not admitted it yet, and it holds nothing until then. "
        f"Now it would be {answer.decision}: {answer.message}"
    )
    waits = Answer(answer.gang, "queued", reason="WaitsForKueue", message=message, warnings=answer.warnings)
    return replace(gang_plan, answer=waits, reservation=None)
