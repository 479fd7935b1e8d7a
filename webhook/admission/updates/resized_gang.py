"""Plans the gang of an updated object that holds a place: its pods run already, and stay there. Pure.

    the gang asks for    what it gets
    fewer pods           the seats that it still needs
    more pods            its seats, and further ones beside them
    other levels         its seats, if they satisfy the levels

If there is no place for that, the gang keeps its seats, the update is allowed, and a warning says what is
lacking. The owner of a running gang may resize it without Bayplan, so it is never refused, unless it states
`on-unavailable: reject`. A gang without bound pods that asks for more pods than the cluster can ever take is
refused, as a new one is. Further pods do not wait in the queue, because their gang has started. They count
towards the limits of the namespace.
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.words import counted
from planner.planning.plan import plan
from planner.planning.replay import answer_of, replay
from webhook.placement.hold_limits import HoldLimits
from webhook.placement.resized import further_pods, resized_within
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload


def plan_resized(snapshot: Snapshot, workload: Workload, limits: HoldLimits) -> WorkloadPlan | None:
    """Returns the plan of an updated object whose gang holds a place; None if it is to be planned as a new
    object: it has several gangs, its gang holds nothing or asks for other pods, or the place serves as it is.
    """
    if workload.share is not None or len(workload.gangs) != 1 or not workload.holds:
        return None
    (group,) = workload.gangs
    held = snapshot.holding(group.name)
    if held is None or replay(snapshot, group, held) is not None:
        return None
    outcome = resized_within(snapshot, group, held, limits)
    if outcome is None:
        return None
    further = further_pods(group, held)
    if isinstance(outcome, Reservation):
        return _placed(snapshot.with_reservation(outcome), group, outcome, further)
    never = outcome.decision == "rejected" and not snapshot.runs(held)
    if further and (never or group.on_unavailable == "reject"):
        return WorkloadPlan((GangPlan(group, outcome),), snapshot)
    return _kept(snapshot, group, held, outcome, further)


def _placed(after: Snapshot, group: PodGroup, reservation: Reservation, further: int) -> WorkloadPlan:
    """Returns the plan of the gang with its new seats. `after`: the cluster with them."""
    answer = plan(after, group)  # repeats the place, with the warnings about the request
    if further:
        message = (
            f"{counted(further, 'more pod')} got a place beside those of the gang, which stay where they are."
        )
        answer = replace(answer, reason="Placed", message=message)
    return WorkloadPlan((GangPlan(group, answer, reservation),), after)


def _kept(
    snapshot: Snapshot, group: PodGroup, held: Reservation, answer: Answer, further: int
) -> WorkloadPlan:
    """Returns the plan of the gang on the seats that it has, with a warning that says what is lacking.

    `answer`: why the gang gets nothing else."""
    where = f" in {'/'.join(held.domain)}" if held.domain else ""
    lack = (
        f"and has no place beside it for {counted(further, 'more pod')}"
        if further
        else "which does not serve as asked"
    )
    warning = f"{group.name} keeps its place{where}, {lack}: {answer.message}"
    kept = replace(answer_of(held, "AlreadyReserved", warning), warnings=(*group.warnings, warning))
    return WorkloadPlan((GangPlan(group, kept, held),), snapshot)
