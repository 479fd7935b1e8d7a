"""Gangs that wait are served before one that is applied now, if it would take a place from them. Pure.

The rules are the controller's (`webhook.kube.controller.reconcile`), for one newcomer: the gangs ahead of it,
in order of priority and age, first get what they could have now; for the first of them that can have nothing
yet, what it would take on the emptied cluster is kept free. The newcomer chooses from the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from webhook.placement.workload_plan import GangPlan, WorkloadPlan, plan_workload
from webhook.workloads import Workload

MAX_WAITING_PLANNED = 32
"""Waiting gangs that are planned for one newcomer; those behind them are left aside, so that a long queue
does not use up the deadline of the call."""


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """A gang that waits for a place. `created`: since when, seconds since the epoch."""

    group: PodGroup
    priority: int = 0
    created: float = 0.0


def in_order(waiting: Iterable[WaitingGang]) -> tuple[WaitingGang, ...]:
    """The queue: by priority, then age, then name."""
    return tuple(sorted(waiting, key=lambda one: (-one.priority, one.created, one.group.name)))


def plan_in_turn(
    snapshot: Snapshot, workload: Workload, waiting: Callable[[], Sequence[WaitingGang]]
) -> WorkloadPlan:
    """The plan of a workload's gangs, where those that `waiting` gives are in the queue already, in order.

    A gang that holds its place keeps it. One that would fit if nobody were ahead is queued behind them.
    """
    straight = plan_workload(snapshot, workload)
    newcomers = [gang_plan.group for gang_plan in straight.placed if not gang_plan.answer.replayed]
    if not newcomers or straight.decision != "admitted":
        return straight
    names = {gang_plan.group.name for gang_plan in straight.placed}
    stated = max(map(_priority, newcomers))
    ahead = [
        gang
        for gang in waiting()
        if gang.priority >= stated
        and gang.group.name not in names
        and snapshot.holding(gang.group.name) is None
    ]
    if not ahead:
        return straight
    turned = plan_workload(with_waiting_gangs(snapshot, ahead), workload)
    placed = tuple(
        _behind(before, after, ahead) for before, after in zip(straight.placed, turned.placed, strict=True)
    )
    for gang_plan in placed:
        if gang_plan.reservation is not None:
            snapshot = snapshot.with_reservation(gang_plan.reservation)
    return WorkloadPlan(placed, snapshot)


def with_waiting_gangs(snapshot: Snapshot, ahead: Iterable[WaitingGang]) -> Snapshot:
    """The snapshot in which waiting gangs hold what must not be taken from them."""
    guarded = False
    for gang in list(ahead)[:MAX_WAITING_PLANNED]:
        answer = plan(snapshot, gang.group)
        if answer.decision == "admitted":
            held = reservation_for(snapshot, gang.group, answer)
        elif answer.decision == "queued" and not guarded:
            held, guarded = reservation_when_empty(snapshot, gang.group), True
        else:
            held = None
        if held is not None:
            snapshot = snapshot.with_reservation(held)
    return snapshot


_Asked = tuple[str, str, str, str]

_WHEN_EMPTY: DerivedSection[_Asked, Reservation | None] = DerivedSection(
    "reservations when empty", max_keys=1
)
"""By what is asked, for the nodes as they are. Only the first queued gang is asked for, so one is enough."""


def reservation_when_empty(snapshot: Snapshot, group: PodGroup) -> Reservation | None:
    """What the gang would take on the emptied cluster.

    It depends on the nodes alone, so the last answer is cached with them (`snapshot.base`)."""
    key = (group.name, fingerprint(group), repr(group.constraint), group.reserve)
    return snapshot.base.derived.get(_WHEN_EMPTY, key, lambda: _on_emptied_cluster(snapshot, group))


def _on_emptied_cluster(snapshot: Snapshot, group: PodGroup) -> Reservation | None:
    emptied = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.daemon), reservations=())
    return reservation_for(emptied, group, plan(emptied, group))


def _behind(before: GangPlan, after: GangPlan, ahead: Sequence[WaitingGang]) -> GangPlan:
    """The plan of one gang; where only the queue keeps it from a place, the answer says so."""
    if before.answer.decision != "admitted" or after.answer.decision == "admitted":
        return after
    first = ahead[0].group.name
    others = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    where = "/".join(before.answer.domain) or "the free nodes"
    message = f"would fit in {where}, which is kept for those that wait already: {first}{others}"
    answer = Answer(
        gang=before.answer.gang,
        decision="queued",
        reason="BehindOthers",
        message=message,
        warnings=before.answer.warnings,
        obstacles=after.answer.obstacles,
        attempts=after.answer.attempts,
    )
    return GangPlan(before.group, answer)


def _priority(group: PodGroup) -> int:
    return max((pod_set.shape.priority for pod_set in group.pod_sets), default=0)
