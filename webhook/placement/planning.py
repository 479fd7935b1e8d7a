"""Plans a workload: one gang after the other, each on the capacity that the ones before it leave. Pure.

Within one request, the snapshot contains the first plan as a tentative reservation. If policies change the
object afterwards, the planner repeats that plan (*replay*) as long as it still fits, instead of planning
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.planning.aside import plan_aside
from planner.planning.reservation import reservation_for
from planner.request.device_claims import with_devices
from planner.request.validation import Refusal
from webhook.placement.hold_limits import NO_LIMITS, HoldLimits, within_limits
from webhook.placement.replicas.joint import held_back, never_together, short_of_place
from webhook.placement.replicas.limit import limit_of_all, with_limit
from webhook.placement.replicas.own_domains import has_running_pods, level_of, running_groups, with_note
from webhook.placement.schedulers.kai_preemption import makes_room
from webhook.placement.shared_gangs.gang_seat import with_whole_sets
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload

NO_ROOM_BESIDE = "NoRoomBeside"
"""The reason of an answer for pods that do not fit beside the seats that their gang holds."""


def with_claims(snapshot: Snapshot | None, workload: Workload) -> Workload:
    """Returns the workload with the requests of its device claims resolved in this cluster. The workload is
    unchanged without a snapshot, without claims, and if the claims cannot be resolved.
    """
    if snapshot is None or not workload.claims:
        return workload
    try:
        return replace(workload, gangs=tuple(with_devices(snapshot, group) for group in workload.gangs))
    except Refusal:  # the plan will report it
        return workload


def plan_workload(
    snapshot: Snapshot, workload: Workload, rivals: int = 0, limits: HoldLimits = NO_LIMITS
) -> WorkloadPlan:
    """Returns the plan of all gangs of a workload.

    `rivals`: the estimated number of other calls that plan at the same time (`plan_aside`). `limits`: how
    much the gangs of the workload's namespace may hold."""

    def place(snapshot: Snapshot, group: PodGroup) -> tuple[Answer, Reservation | None]:
        answer = plan_aside(snapshot, group, rivals)
        return answer, reservation_for(snapshot, group, answer) if workload.holds else None

    placed: list[GangPlan] = []
    before = snapshot
    asked: PodGroup | None = None  # the request of the last gang, if this has no place and a search showed it
    groups = with_claims(snapshot, workload).gangs
    running = cache(lambda: running_groups(before))  # looks at each bound pod: only if it matters
    for group in _in_order(groups):
        if asked is not None and _lacks_place_too(snapshot, group, asked, placed[-1].answer, running):
            placed.append(_with_name(group.name, placed[-1]))
            continue
        asked = group
        answer, reservation = place(snapshot, group)
        # Members that are known only by number must not cause a rejection: a rejected gang is planned again
        # with them on any nodes, and if that is rejected too, without them.
        smaller = without_unknown_members(workload, group)
        if answer.decision == "rejected" and smaller is not group:
            group = with_unknown_members_unpinned(workload, group)
            answer, reservation = place(snapshot, group)
        if answer.decision == "rejected" and smaller is not group:
            group = smaller
            answer, reservation = place(snapshot, group)
        if answer.decision == "rejected" and workload.share is not None and workload.share.adds_seats:
            answer = _none_beside(answer)
        if answer.decision == "queued" and makes_room(snapshot, group):
            answer = replace(answer, waits_for_eviction=True)
        answer, reservation = within_limits(snapshot, group, answer, limits, place, reservation)
        if workload.share is not None and workload.share.adds_seats:
            group, answer, reservation = with_whole_sets(group, answer, reservation)
        if reservation is not None:
            snapshot = snapshot.with_reservation(reservation)
        if reservation is not None or answer.decision == "admitted":
            asked = None
        placed.append(GangPlan(group, with_note(snapshot, group, answer), reservation))
    place_of = {group.name: place for place, group in enumerate(groups)}
    placed.sort(key=lambda gang_plan: place_of[gang_plan.group.name])
    if short_of_place((gang_plan.group, gang_plan.answer) for gang_plan in placed):
        return WorkloadPlan(never_together(before, placed) or held_back(placed), before)
    limit = limit_of_all(before, placed, workload.unplanned) if workload.holds else ""
    limited = tuple(with_limit(gang_plan, limit) for gang_plan in placed)
    return WorkloadPlan(limited, snapshot, unplanned=workload.unplanned)


def _in_order(groups: Sequence[PodGroup]) -> list[PodGroup]:
    """Returns gangs that start together in the order in which they are planned: first those that get a domain
    of their own, the larger ones first, because the others leave fewer domains free. Other gangs keep their
    order."""
    return sorted(groups, key=lambda group: (not level_of(group), -group.gpus) if group.joint else (False, 0))


def _lacks_place_too(
    snapshot: Snapshot,
    group: PodGroup,
    asked: PodGroup,
    answer: Answer,
    running: Callable[[], frozenset[str]],
) -> bool:
    """Returns whether a gang gets the answer of another that has no place in the same cluster, because their
    requests differ only in the name.

    A search for each would be quadratic: each counts what all other replicas reserve. `asked`: the request of
    the other gang. A gang that holds a place or has `running` pods is always planned, and so is each if the
    answer names one."""
    held = snapshot.holding(group.name) or snapshot.holding(asked.name)
    if held is not None or asked.name in answer.message or replace(asked, name=group.name) != group:
        return False
    return not (has_running_pods(group, running()) or has_running_pods(asked, running()))


def _with_name(name: str, gang_plan: GangPlan) -> GangPlan:
    """Returns the plan of an equal gang of this name."""
    answer = replace(gang_plan.answer, gang=name)
    return replace(gang_plan, group=replace(gang_plan.group, name=name), answer=answer)


def _none_beside(answer: Answer) -> Answer:
    """Returns the queued answer for pods that do not fit beside the seats that their gang holds.

    They are queued and not rejected because they may fit when the gang moves."""
    message = f"its gang holds a place, and beside that there is none for these pods: {answer.message}"
    return Answer(answer.gang, "queued", reason=NO_ROOM_BESIDE, message=message, warnings=answer.warnings)


def with_unknown_members_unpinned(workload: Workload, group: PodGroup) -> PodGroup:
    """Returns the gang with the required node affinity removed from PodSets whose members are all unknown.

    Unknown members are assumed to be like a known member. The affinity of that member may pin it to its own
    seat, so it must not apply to them."""
    present = {own.name for own in workload.share.known_sets} if workload.share is not None else set()
    sets = (
        own if own.name in present else replace(own, shape=replace(own.shape, affinity=()))
        for own in group.pod_sets
    )
    return replace(group, pod_sets=tuple(sets))


def without_unknown_members(workload: Workload, group: PodGroup) -> PodGroup:
    """Returns the gang without the members that are known only by number.

    Unknown members get seats if there is room, but never cause a refusal, because their requests are unknown.
    The gang is unchanged if there are no such members, or if the workload does not share it."""
    share = workload.share
    if share is None:
        return group
    counts = {pod_set.name: pod_set.count for pod_set in share.known_sets}
    known_sets = tuple(
        replace(pod_set, count=min(pod_set.count, counts[pod_set.name]))
        for pod_set in group.pod_sets
        if pod_set.name in counts
    )
    missing = group.size - sum(pod_set.count for pod_set in known_sets)
    if not missing or not known_sets:
        return group
    note = f"{missing} of {group.size} pods are not known yet, and there is no room for more like these"
    # The gang holds a whole domain, in which unknown members may find room.
    reserve = "domain" if group.reserve == "auto" and group.constraint.required else group.reserve
    within = tuple(
        (level, present)
        for level, names in group.within
        if (present := tuple(name for name in names if name in counts))
    )
    warnings = (*group.warnings, note)
    return replace(group, pod_sets=known_sets, reserve=reserve, within=within, warnings=warnings)
