"""Decides when a workload in a Kueue queue is planned, and whether it gets a place. Pure.

    a kind that Kueue suspends                     planned when it is resumed; holds nothing until then
    pods, if a flavor of the queue has a topology  refused if they can never run; Kueue assigns their nodes
    other pods                                     planned when Kueue has removed its gate; gated until then

Nothing is held for a workload that waits for quota in Kueue: a gang with quota could need the same place, and
both would wait for each other (Kueue ff69552e, pkg/controller/jobs/pod/pod_webhook.go).
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.schedulers import KUEUE, SchedulersSeen
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload


def in_kueues_queue(workload: Workload, seen: SchedulersSeen, operation: str) -> Workload:
    """Returns the workload marked with how Kueue treats it (see the table of this module); unchanged if the
    cluster has no Kueue.
    """
    if KUEUE not in seen.shown:
        return workload
    if workload.suspends:  # suspended by Kueue's own webhook, called before or after Bayplan's
        return replace(workload, suspended=True, holds=False) if operation == "CREATE" else workload
    if seen.queue_topologies.get(workload.kueue):
        return replace(workload, kueue_places=True)
    return replace(workload, awaits_kueue=workload.holds)


def until_admitted(plan: WorkloadPlan, before: Snapshot) -> WorkloadPlan:
    """Returns the plan of a workload that Kueue has not admitted: gangs that hold no place yet are queued,
    and get none.

    `before`: the snapshot in which it was planned. A gang that can never run is still rejected. The plan of a
    gang whose `on-unavailable` is `reject` or `admit` is unchanged."""
    placed = tuple(map(_waiting, plan.placed))
    for gang_plan in placed:
        if gang_plan.reservation is not None:
            before = before.with_reservation(gang_plan.reservation)
    return replace(plan, placed=placed, snapshot=before)


def comes_to_kueues_gate(workload: Workload, operation: str) -> bool:
    """Returns whether this is a new pod that Kueue gates.

    Kueue gates the pods of every owner, known or unknown, unless it manages the owner itself and has
    suspended that (Kueue v0.19.2, pkg/controller/jobs/pod/pod_webhook.go, FindAncestorJobManagedByKueue).
    """
    return workload.awaits_kueue and operation == "CREATE" and not workload.owner_suspends


def at_kueues_gate(plan: WorkloadPlan) -> WorkloadPlan:
    """Returns the plan of a new pod whose gang holds a place: the pod gets Bayplan's gate until Kueue has
    admitted it.

    Kueue may admit the pod in another flavor than the pods before it. If the pod were pinned already, no node
    would take it then. The controller removes the gate."""

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
