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
from planner.model.labels import Toleration
from planner.model.pod import PodShape
from planner.model.podgroup import PodSet
from planner.model.schedulers import KUEUE, SchedulersSeen
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload


def in_kueues_queue(workload: Workload, seen: SchedulersSeen, operation: str) -> Workload:
    """Returns the workload marked with how Kueue treats it (see the table of this module); unchanged if the
    cluster has no Kueue.
    """
    if KUEUE not in seen.shown:
        return workload
    if workload.suspends and operation != "CREATE":
        return workload
    workload = with_flavor_tolerations(workload, seen)
    if workload.suspends:  # suspended by Kueue's own webhook, called before or after Bayplan's
        return replace(workload, suspended=True, holds=False)
    if seen.queue_topologies.get(workload.kueue):
        return replace(workload, kueue_places=True)
    return replace(workload, awaits_kueue=workload.holds)


def with_flavor_tolerations(workload: Workload, seen: SchedulersSeen) -> Workload:
    """Returns the workload with the tolerations of all flavors of its queue: Kueue adds those of the flavor
    that it chooses when it admits the workload. Without them, tainted nodes would count as closed to it.
    """
    tolerations = seen.queue_tolerations.get(workload.kueue, ())
    if not tolerations:
        return workload
    # By identity, because the replicas of an object share their PodSets.
    changed: dict[int, tuple[PodSet, ...]] = {}

    def tolerant(sets: tuple[PodSet, ...]) -> tuple[PodSet, ...]:
        if id(sets) not in changed:
            changed[id(sets)] = tuple(replace(own, shape=_tolerant(own.shape, tolerations)) for own in sets)
        return changed[id(sets)]

    share = workload.share
    if share is not None:
        share = replace(share, own=tolerant(share.own), known_sets=tolerant(share.known_sets))
    gangs = tuple(replace(group, pod_sets=tolerant(group.pod_sets)) for group in workload.gangs)
    return replace(workload, gangs=gangs, share=share)


def _tolerant(shape: PodShape, tolerations: tuple[Toleration, ...]) -> PodShape:
    return replace(shape, tolerations=tuple(dict.fromkeys((*shape.tolerations, *tolerations))))


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
