"""How many equal replicas the empty cluster has room for, if not for all. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.names import first_replicas, object_of, replicas_of
from planner.model.podgroup import Constraint, PodGroup
from planner.planning.plan import plan
from webhook.placement.replicas.own_domains import domains_for, level_of
from webhook.placement.workload_plan import GangPlan


def limit_of_all(snapshot: Snapshot, placed: Sequence[GangPlan], unplanned: int) -> str:
    """Returns a sentence with the number of replicas that fit the empty cluster, if some are queued and not
    even the empty cluster has room for all of them; otherwise "".

    `unplanned`: number of further replicas, which the sentence does not count. Only equal replicas of one pod
    get it, and equal replicas with a domain each, because no search places several gangs at a time."""
    decisions, total = {gang_plan.answer.decision for gang_plan in placed}, len(placed)
    if total < 2 or "queued" not in decisions or "rejected" in decisions:
        return ""
    group = placed[0].group
    if any(gang_plan.group.pod_sets != group.pod_sets for gang_plan in placed):
        return ""
    if (
        group.size == 1
        and (answer := _all_as_one_gang(snapshot, group, total)).reason == "TooLargeForCluster"
    ):
        subject = "" if unplanned else "all "
        subject += first_replicas(object_of(group.name), total, total + unplanned)
        return f"{subject[0].upper()}{subject[1:]}: {answer.message}"
    room = domains_for(snapshot, [group], total)
    if room == total:
        return ""
    replicas, level = replicas_of(group.name, total), level_of(group)
    return f"The empty cluster has room for {room} of {replicas}, each in a domain of its own at {level}."


def _all_as_one_gang(snapshot: Snapshot, group: PodGroup, total: int) -> Answer:
    """Returns the answer for all replicas of one pod as a gang. A level that each requires for itself does
    not apply to all of them together."""
    anywhere = Constraint(group.constraint.topology)
    (pod_set,) = (pod_set for pod_set in group.pod_sets if pod_set.count)
    pods = (replace(pod_set, count=total, constraint=anywhere),)
    name = object_of(group.name)
    return plan(snapshot, replace(group, name=name, pod_sets=pods, constraint=anywhere, within=()))


def with_limit(gang_plan: GangPlan, limit: str) -> GangPlan:
    """Returns the plan of a replica; if it is queued, with the limit of all replicas in its message."""
    answer = gang_plan.answer
    if not limit or answer.decision != "queued":
        return gang_plan
    return replace(gang_plan, answer=replace(answer, message=f"{answer.message} {limit}"))
