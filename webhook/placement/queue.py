"""Plans the queue: the waiting gangs and a newly applied one, in turn. Pure.

The controller, and admission of a new gang, use the same rules. Gangs are planned in the order of
`fair_order`, each on the capacity that the gangs before it leave. For the first gang without a place, a place
is kept (`planner.planning.first_place`), which no gang behind it may use. A gang behind it that uses nothing
of that place does not delay it, and may start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.names import namespace_of
from planner.model.natural_order import natural
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.words import listed
from planner.planning.first_place import FirstPlace, first_place
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from webhook.placement.fair_order import (
    NO_RULES,
    QueuePlace,
    QueueRules,
    WaitingGang,
    in_order,
    why_before,
)
from webhook.placement.hold_limits import HOLD_LIMIT, Limits, no_limits, over_limit, within_limits
from webhook.placement.planning import plan_workload
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload
from webhook.workloads.keys.annotation_keys import QUEUED_GATE

MAX_WAITING_PLANNED = 32
"""Maximum number of waiting gangs that are planned before a new gang. Those further back in the queue are
ignored, so that a long queue does not use up the deadline of the admission call."""


MOST_NAMED = 3
"""Maximum number of gangs or nodes that a message names."""


@dataclass(frozen=True, slots=True)
class QueueTurn:
    """The result of planning one gang of the queue. `reservation`: that of the gang, None if the gang is not
    admitted. `after`: the snapshot with this reservation, or with the place that is kept for the gang."""

    answer: Answer
    reservation: Reservation | None
    after: Snapshot


def foreign_gates(group: PodGroup) -> tuple[str, ...]:
    """Returns the scheduling gates of a gang's pods apart from Bayplan's. Until they are removed the gang
    cannot run, and holds nothing."""
    gates = (gate for pod_set in group.pod_sets for gate in pod_set.shape.gates)
    return tuple(dict.fromkeys(gate for gate in gates if gate != QUEUED_GATE))


def plan_queue(
    snapshot: Snapshot, groups: Iterable[PodGroup], limits: Limits = no_limits
) -> tuple[list[QueueTurn], Snapshot]:
    """Returns the results of planning these gangs in this order, and the snapshot after the last.

    A gang can use neither the places of the gangs admitted before it nor the place that is kept for the first
    gang without one. Small gangs therefore never delay that gang, however many arrive. No place is kept for a
    gang whose namespace may not hold it."""

    def place(around: Snapshot, group: PodGroup) -> tuple[Answer, Reservation | None]:
        answer = plan(around, group)
        return answer, reservation_for(around, group, answer) if answer.decision == "admitted" else None

    turns = []
    guarded = False  # a place is kept for a gang of the queue already
    for group in groups:
        answer, reservation = place(snapshot, group)
        bounds = limits(namespace_of(group.name))
        answer, reservation = within_limits(snapshot, group, answer, bounds, place, reservation)
        kept = reservation
        if answer.decision == "queued" and answer.reason != HOLD_LIMIT and not guarded:
            first = first_place(snapshot, group)
            guarded = first is not None and not over_limit(snapshot, first.reservation, bounds)
            if first is not None and guarded:
                kept, answer = first.reservation, replace(answer, message=_with_first(answer.message, first))
        if kept is not None:
            snapshot = snapshot.with_reservation(kept)
        turns.append(QueueTurn(answer, reservation, snapshot))
    return turns, snapshot


def _with_first(message: str, first: FirstPlace) -> str:
    """Returns the message extended by the place that is kept for the gang, and by the gangs that must end
    there."""
    where = _place_of(first.reservation)
    if not first.ends:
        return f"{message} Kept for it: {where}."
    gang_words = [f"{name} ({gpus} GPUs)" for name, gpus in first.ends[:MOST_NAMED]]
    rest = len(first.ends) - len(gang_words)
    rest_words = f" and {rest} more" if rest else ""
    verb = "ends" if len(first.ends) == 1 else "end"
    return f"{message} It gets {where} first, once {', '.join(gang_words)}{rest_words} {verb} there."


def plan_in_turn(
    snapshot: Snapshot,
    workload: Workload,
    waiting: Callable[[], Sequence[WaitingGang]],
    rivals: int = 0,
    limits: Limits = no_limits,
    rules: QueueRules = NO_RULES,
) -> WorkloadPlan:
    """Returns the plan of a workload, with its new gangs planned behind those waiting gangs that go first.

    `waiting`: returns the waiting gangs; called only if a gang of the workload needs a new place, and the
    workload would be admitted if no gang waited. A gang that holds a place keeps it. A new gang that has a
    place only if the waiting gangs are ignored is queued."""
    own = limits(namespace_of(workload.name))
    straight = _until_opened(snapshot, workload, plan_workload(snapshot, workload, rivals, own))
    newcomers = [gang_plan.group for gang_plan in straight.placed if not gang_plan.answer.replayed]
    if not newcomers or straight.decision != "admitted" or not (queue := waiting()):
        return straight
    ahead, own_place = _ahead(snapshot, newcomers, queue, rules)
    if not ahead:
        return straight
    turned = plan_workload(with_waiting_gangs(snapshot, ahead, limits), workload, rivals, own)
    placed = tuple(
        _behind(before, after, ahead, own_place)
        for before, after in zip(straight.placed, turned.placed, strict=True)
    )
    for gang_plan in placed:
        if gang_plan.reservation is not None:
            snapshot = snapshot.with_reservation(gang_plan.reservation)
    return replace(straight, placed=placed, snapshot=snapshot)


def _ahead(
    snapshot: Snapshot, newcomers: Sequence[PodGroup], waiting: Sequence[WaitingGang], rules: QueueRules
) -> tuple[list[QueuePlace], QueuePlace]:
    """Returns the waiting gangs that are before the object's last gang in the queue, and that gang's
    position.

    An object is planned as a whole, even if it has many gangs. If some of them could go earlier by
    themselves, they do when the controller plans each."""
    since = {gang.group.name: gang.created for gang in waiting}
    # A gang that is not stored yet is younger than every stored one. The clocks do not show it: the replica's
    # follows the Date header of the API server, in whole seconds, and so is up to a second behind the server
    # that writes the creation times.
    applied = max(rules.now, math.nextafter(max(since.values()), math.inf))
    names = {group.name for group in newcomers}
    others = (g for g in waiting if g.group.name not in names and snapshot.holding(g.group.name) is None)
    own = (WaitingGang(group, since.get(group.name, applied)) for group in newcomers)
    queue = in_order(snapshot, [*others, *own], rules)
    last = max(number for number, place in enumerate(queue) if place.gang.group.name in names)
    return [place for place in queue[:last] if place.gang.group.name not in names], queue[last]


def _until_opened(snapshot: Snapshot, workload: Workload, planned: WorkloadPlan) -> WorkloadPlan:
    """Returns the plan in which gangs with scheduling gates of others (`foreign_gates`) get no new
    reservation."""
    if not workload.holds or not any(map(foreign_gates, workload.gangs)):
        return planned
    placed = tuple(map(_gated_by_others, planned.placed))
    for gang_plan in placed:
        if gang_plan.reservation is not None:
            snapshot = snapshot.with_reservation(gang_plan.reservation)
    return replace(planned, placed=placed, snapshot=snapshot)


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


def with_waiting_gangs(snapshot: Snapshot, ahead: Iterable[QueuePlace], limits: Limits) -> Snapshot:
    """Returns the snapshot with reservations for the places that the gangs `ahead` get or that are kept for
    them."""
    groups = (place.gang.group for place in islice(ahead, MAX_WAITING_PLANNED))
    return plan_queue(snapshot, groups, limits)[1]


def _behind(before: GangPlan, after: GangPlan, ahead: Sequence[QueuePlace], own: QueuePlace) -> GangPlan:
    """Returns the plan of one gang behind the queue; if it would have a place without the queue, the answer
    says so.

    `before`: its plan without the gangs `ahead`; `after`: its plan behind them."""
    if before.answer.decision != "admitted" or after.answer.decision == "admitted":
        return after
    first = ahead[0]
    others = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    where = "/".join(before.answer.domain) or "the free nodes"
    message = (
        f"would fit in {where}, which is kept for those that wait already: {first.gang.group.name} "
        f"({why_before(first, own)}){others}"
    )
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


def _place_of(reservation: Reservation) -> str:
    """Returns a place as text: its domain, or its nodes."""
    nodes = sorted({assigned.node for assigned in reservation.assignments}, key=natural)
    return "/".join(reservation.domain) or listed(nodes, MOST_NAMED)
