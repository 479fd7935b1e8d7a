"""Gangs that start together or not at all: if one has no place, all wait, or are refused. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.names import object_of, replicas_of
from planner.model.podgroup import Constraint, PodGroup
from planner.model.words import pods
from planner.planning.plan import plan
from webhook.placement.replicas.own_domains import domains_for, kinds_of, level_of, without_exclusive_terms
from webhook.placement.workload_plan import GangPlan


def short_of_place(answers: Iterable[tuple[PodGroup, Answer]]) -> frozenset[str]:
    """Returns the names (`PodGroup.joint`) of those sets of gangs that cannot start, because one of their
    gangs has no place. The gangs of a set start together."""
    return frozenset(
        group.joint for group, answer in answers if group.joint and answer.decision != "admitted"
    )


def never_together(snapshot: Snapshot, placed: Sequence[GangPlan]) -> tuple[GangPlan, ...]:
    """Returns rejected plans of gangs that start together if even the empty cluster has too few domains for
    all of them; () if it may have enough."""
    # A gang that runs is not refused, and one that never fits by itself is told why.
    if any(snapshot.holding(own.group.name) or own.answer.decision == "rejected" for own in placed):
        return ()
    groups = [own.group for own in placed]
    kinds = kinds_of(groups)
    room = total = len(groups)
    if len(kinds) == 1:
        room = _room_for_slices(snapshot, groups[0], total)
    exclusive = [kind for kind in kinds if level_of(kind)]
    level = level_of(exclusive[0]) if exclusive else _with_level_of_pods(groups[0]).constraint.required
    others = sum(not level_of(group) for group in groups)
    if exclusive:
        room = min(room, domains_for(snapshot, exclusive, total - others) + others)
    if exclusive and others and all(level in node.labels for node in snapshot.nodes.values()):
        # The others may share one domain, but not with those that have one of their own.
        room = min(room, domains_for(snapshot, kinds, total - others + 1) + others - 1)
    if room in (0, total):
        return ()
    size = pods(groups[0].size) if len(kinds) == 1 else "different pods"
    apart = f"{total - others} of them in domains of their own" if others else "each in a domain of its own"
    would_work = f" Would work: {replicas_of(groups[0].name, room)}." if len(kinds) == 1 else ""
    cluster = "the empty cluster, with new nodes," if snapshot.base.growth else "the empty cluster"
    message = (
        f"{replicas_of(groups[0].name, total)} of {size} start together, {apart} at {level}, "
        f"and {cluster} has room for {room} of them.{would_work}"
    )
    return tuple(
        GangPlan(own.group, Answer(own.group.name, "rejected", reason="TooLargeForCluster", message=message))
        for own in placed
    )


def _room_for_slices(snapshot: Snapshot, group: PodGroup, total: int) -> int:
    """Returns how many equal gangs the empty cluster has room for at most, `total` if that is not known.

    The gangs are planned as slices of one gang. Each slice is in one domain of the level that each gang
    requires, as the gangs are, but slices may share a domain: what has no room as slices never has any."""
    first = _with_level_of_pods(without_exclusive_terms(group))
    topology, level = first.constraint.topology, first.constraint.required
    # Without a named topology, each gang may be in another one, slices may not.
    if not _counts_alone(first) or (not topology and len(snapshot.topologies) > 1):
        return total
    slices = Constraint(topology, slice_level=level, slice_size=first.size)
    whole = replace(first, name=object_of(first.name), joint="", constraint=slices)

    def too_many(count: int) -> bool:
        sets = tuple(replace(pod_set, count=pod_set.count * count) for pod_set in whole.pod_sets)
        answer = plan(snapshot, replace(whole, pod_sets=sets))
        return (answer.decision, answer.reason) == ("rejected", "TooLargeForCluster")

    return bisect_left(range(1, total), True, key=too_many) if too_many(total) else total


def _with_level_of_pods(group: PodGroup) -> PodGroup:
    """Returns a gang of one PodSet with the level that only this requires as the level of the gang."""
    if len(group.pod_sets) != 1 or group.constraint:
        return group
    (pod_set,) = group.pod_sets
    return replace(
        group, constraint=pod_set.constraint, pod_sets=(replace(pod_set, constraint=Constraint()),)
    )


def _counts_alone(group: PodGroup) -> bool:
    """Returns whether only amounts and one required level determine how many such gangs have room: one PodSet
    without slices, claims, volumes, and terms about other pods, which would count otherwise in one gang.
    """
    if not group.constraint.required or group.constraint.slice_level or group.within:
        return False
    if group.has_special_requests or len(group.pod_sets) != 1:
        return False
    (pod_set,) = group.pod_sets
    shape = pod_set.shape
    related = (shape.terms, shape.spread, shape.anti_affinity, shape.claims, shape.volumes)
    return not (pod_set.constraint or any(related))


def held_back(placed: Sequence[GangPlan]) -> tuple[GangPlan, ...]:
    """Returns the plans of gangs that start together, of which one has no place: the others are queued and
    hold nothing, unless they hold a place already. The message of each queued one says so."""
    first = next(gang_plan for gang_plan in placed if gang_plan.answer.decision != "admitted")
    fits = sum(gang_plan.answer.decision == "admitted" for gang_plan in placed)
    gangs = replicas_of(first.group.name, len(placed))
    verb = "has" if fits == 1 else "have"
    together = f"{fits} of {gangs} {verb} room, and they start together or not at all"

    def waiting(gang_plan: GangPlan) -> GangPlan:
        answer = gang_plan.answer
        if answer.decision == "rejected" or answer.replayed:
            return gang_plan
        if answer.decision == "queued":
            return replace(gang_plan, answer=replace(answer, message=f"{together}: {answer.message}"))
        message = f"{together}: {first.answer.message}"
        return GangPlan(gang_plan.group, Answer(answer.gang, "queued", reason="WaitsForAll", message=message))

    return tuple(map(waiting, placed))
