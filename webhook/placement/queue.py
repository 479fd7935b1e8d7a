"""Gangs that wait are served before one that is applied now, if it would take a place from them. Pure.

The rules of the queue, for the controller and for one newcomer alike: gangs are planned in order of priority
and age, each in what those before it left; for the first that has no place yet, what it would take on the
emptied cluster is kept free of all that come behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.priority import PriorityClasses, priority_of
from planner.model.reservation import Reservation
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from webhook.placement.hold_limits import HOLD_LIMIT, Limits, no_limits, within_limits
from webhook.placement.workload_plan import GangPlan, WorkloadPlan, plan_workload
from webhook.workloads import Workload
from webhook.workloads.annotation_keys import QUEUED_GATE, namespace_of

MAX_WAITING_PLANNED = 32
"""Waiting gangs that are planned for one newcomer; those behind them are left aside, so that a long queue
does not use up the deadline of the call."""


PlaceWhenEmpty = Callable[[Snapshot, PodGroup], Reservation | None]
"""What a gang would take on the emptied cluster: `place_when_empty`, or one that remembers."""


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """A gang that waits for a place. `created`: since when, seconds since the epoch."""

    group: PodGroup
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueTurn:
    """What came of a gang's turn. `reservation`: what it takes, None where it is not admitted. `after`: the
    snapshot that it leaves behind."""

    answer: Answer
    reservation: Reservation | None
    after: Snapshot


def queue_key(classes: PriorityClasses, group: PodGroup, created: float) -> tuple[int, float, str]:
    """The order of the queue: the higher priority first, then the older, then by name (a total order)."""
    return (-priority_of(classes, group), created, group.name)


def in_order(waiting: Iterable[WaitingGang], classes: PriorityClasses) -> tuple[WaitingGang, ...]:
    """The queue in its order."""
    return tuple(sorted(waiting, key=lambda gang: queue_key(classes, gang.group, gang.created)))


def foreign_gates(group: PodGroup) -> tuple[str, ...]:
    """The scheduling gates of a gang's pods that others open: until then it cannot run, and holds nothing."""
    gates = (gate for pod_set in group.pod_sets for gate in pod_set.shape.gates)
    return tuple(dict.fromkeys(gate for gate in gates if gate != QUEUED_GATE))


def plan_queue(
    snapshot: Snapshot, groups: Iterable[PodGroup], when_empty: PlaceWhenEmpty, limits: Limits = no_limits
) -> tuple[list[QueueTurn], Snapshot]:
    """The turns of gangs that stand in the queue in this order, and the snapshot that they leave behind.

    What an admitted gang takes is taken from those behind it, and so is what the first gang without a place
    would take on the emptied cluster: however many small gangs come, it is never delayed by them. Nothing is
    kept for one that waits for its own namespace's limits.
    """

    def place(around: Snapshot, group: PodGroup) -> tuple[Answer, Reservation | None]:
        answer = plan(around, group)
        return answer, reservation_for(around, group, answer) if answer.decision == "admitted" else None

    turns = []
    guarded = False
    for group in groups:
        answer, reservation = place(snapshot, group)
        bounds = limits(namespace_of(group.name))
        answer, reservation = within_limits(snapshot, group, answer, bounds, place, reservation)
        kept = reservation
        if answer.decision == "queued" and answer.reason != HOLD_LIMIT and not guarded:
            kept, guarded = when_empty(snapshot, group), True
        if kept is not None:
            snapshot = snapshot.with_reservation(kept)
        turns.append(QueueTurn(answer, reservation, snapshot))
    return turns, snapshot


def plan_in_turn(
    snapshot: Snapshot,
    workload: Workload,
    waiting: Callable[[], Sequence[WaitingGang]],
    rivals: int = 0,
    limits: Limits = no_limits,
) -> WorkloadPlan:
    """The plan of a workload's gangs, where those that `waiting` gives are in the queue already, in order.

    A gang that holds its place keeps it. One that would fit if nobody were ahead is queued behind them.
    """
    own = limits(workload.name.partition("/")[0])
    straight = _until_opened(snapshot, workload, plan_workload(snapshot, workload, rivals, own))
    newcomers = [gang_plan.group for gang_plan in straight.placed if not gang_plan.answer.replayed]
    if not newcomers or straight.decision != "admitted":
        return straight
    names = {gang_plan.group.name for gang_plan in straight.placed}
    classes = snapshot.base.priorities
    highest = max(priority_of(classes, group) for group in newcomers)
    ahead = [
        gang
        for gang in waiting()
        if priority_of(classes, gang.group) >= highest
        and gang.group.name not in names
        and snapshot.holding(gang.group.name) is None
    ]
    if not ahead:
        return straight
    turned = plan_workload(with_waiting_gangs(snapshot, ahead, limits), workload, rivals, own)
    placed = tuple(
        _behind(before, after, ahead) for before, after in zip(straight.placed, turned.placed, strict=True)
    )
    for gang_plan in placed:
        if gang_plan.reservation is not None:
            snapshot = snapshot.with_reservation(gang_plan.reservation)
    return WorkloadPlan(placed, snapshot)


def _until_opened(snapshot: Snapshot, workload: Workload, planned: WorkloadPlan) -> WorkloadPlan:
    """The plan in which gangs that wait for others' gates hold nothing that they do not hold already."""
    if not workload.holds or not any(map(foreign_gates, workload.gangs)):
        return planned
    placed = tuple(map(_gated_by_others, planned.placed))
    for gang_plan in placed:
        if gang_plan.reservation is not None:
            snapshot = snapshot.with_reservation(gang_plan.reservation)
    return WorkloadPlan(placed, snapshot)


def _gated_by_others(gang_plan: GangPlan) -> GangPlan:
    answer, gates = gang_plan.answer, foreign_gates(gang_plan.group)
    if not gates or answer.decision != "admitted" or answer.replayed:
        return gang_plan
    where = "/".join(answer.domain) or "the free nodes"
    message = (
        f"its pods have the scheduling gate {', '.join(gates)}, which others open: it holds nothing until "
        f"then, and is planned then. Now it would fit in {where}"
    )
    waits = Answer(answer.gang, "queued", reason="GatedByOthers", message=message, warnings=answer.warnings)
    return GangPlan(gang_plan.group, waits)


def with_waiting_gangs(
    snapshot: Snapshot, ahead: Iterable[WaitingGang], limits: Limits = no_limits
) -> Snapshot:
    """The snapshot in which waiting gangs hold what must not be taken from them."""
    groups = (gang.group for gang in islice(ahead, MAX_WAITING_PLANNED))
    return plan_queue(snapshot, groups, _remembered, limits)[1]


def place_when_empty(snapshot: Snapshot, group: PodGroup) -> Reservation | None:
    """What the gang would take if only DaemonSets' pods were in the cluster."""
    emptied = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.daemon), reservations=())
    return reservation_for(emptied, group, plan(emptied, group))


_Asked = tuple[str, str, str, str]

_WHEN_EMPTY: DerivedSection[_Asked, Reservation | None] = DerivedSection(
    "reservations when empty", max_keys=1
)
"""By what is asked, for the nodes as they are. Only the first queued gang is asked for, so one is enough."""


def _remembered(snapshot: Snapshot, group: PodGroup) -> Reservation | None:
    """`place_when_empty`, worked out once for the gang at the head: newcomers ask again and again.

    Kept with the snapshot's base, so that a change of any node forgets it.
    """
    key = (group.name, fingerprint(group), repr(group.constraint), group.reserve)
    return snapshot.base.derived.get(_WHEN_EMPTY, key, lambda: place_when_empty(snapshot, group))


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
