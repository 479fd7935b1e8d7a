"""Plans several movables as if they were one gang, if planning them one after the other fails.

The search for a gang with several pod classes tries every way to divide the free nodes among them, so it
finds a place for all movables if one exists, within its budget. Each movable gets its part of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.topology import common_domain, topology_named
from planner.planning.defragmentation.movable import Movable
from planner.request.resolve import resolve

MAX_TOGETHER = 12
"""Maximum number of movables that are planned together: the search grows with the number of pod classes."""


class Plan(Protocol):
    """Plans a gang, as `planner.planning.plan.plan` does. Callers pass the function that they plan with."""

    def __call__(self, snapshot: Snapshot, group: PodGroup) -> Answer:
        """Returns the answer for one gang."""
        ...


def plan_jointly(snapshot: Snapshot, movables: Sequence[Movable], plan: Plan) -> list[Answer]:
    """Returns an answer for each movable such that all of them fit at the same time.

    The list is empty if no such combination is found, if there are more than `MAX_TOGETHER` movables, or if a
    movable has constraints that a joint plan does not express (`_is_plain`).
    """
    if len(movables) > MAX_TOGETHER or not all(_is_plain(snapshot, movable) for movable in movables):
        return []
    for movable in movables:
        snapshot = snapshot.without(movable.name)
    sets = tuple(
        replace(
            pod_set,
            name=_name(index, pod_set),
            constraint=_required_level_only(pod_set.constraint, movable.group),
        )
        for index, movable in enumerate(movables)
        for pod_set in movable.group.pod_sets
    )
    within = tuple(
        (movable.group.constraint.required, tuple(_name(index, part) for part in movable.group.pod_sets))
        for index, movable in enumerate(movables)
        if movable.group.constraint.required and len(movable.group.pod_sets) > 1
    )
    topology = next((m.group.constraint.topology for m in movables if m.group.constraint.topology), "")
    joint = PodGroup("defragmentation/Gang/all", sets, Constraint(topology), "nodes", within=within)
    answer = plan(snapshot, joint)
    if answer.decision != "admitted":
        return []
    return [_answer_of(snapshot, index, movable.group, answer) for index, movable in enumerate(movables)]


def _is_plain(snapshot: Snapshot, movable: Movable) -> bool:
    """Reports whether a joint plan can express the movable's request: it has no constraints besides levels,
    and neither holds nor requests to hold whole domains.
    """
    group, held = movable.group, snapshot.holding(movable.name)
    return not (
        group.has_special_requests
        or group.within
        or group.reserve == "domain"
        or (held is not None and held.mode == "domain")
        or any(pod_set.constraint.slice_level for pod_set in group.pod_sets)
    )


def _required_level_only(constraint: Constraint, group: PodGroup) -> Constraint:
    """Returns a constraint with only the required level of a PodSet; if the PodSet requires none and is the
    only one of its gang, with the required level of the gang.
    """
    alone = len(group.pod_sets) == 1
    return Constraint(required=constraint.required or (group.constraint.required if alone else ""))


def _name(index: int, pod_set: PodSet) -> str:
    return f"{index}-{pod_set.name}"


def _answer_of(snapshot: Snapshot, index: int, group: PodGroup, answer: Answer) -> Answer:
    """Returns a movable's part of the joint answer, as if it had been planned alone."""
    sets = {_name(index, pod_set): pod_set.name for pod_set in group.pod_sets}
    assignments = tuple(
        replace(assignment, pod_set=sets[assignment.pod_set])
        for assignment in answer.assignments
        if assignment.pod_set in sets
    )
    topology = topology_named(snapshot.topologies, answer.topology)
    assert topology is not None, "the answer is of this snapshot"
    nodes = [snapshot.nodes[assignment.node] for assignment in assignments]
    domain = common_domain([topology.path(node.name, node.labels) for node in nodes])
    return replace(
        answer,
        gang=group.name,
        level=topology.levels[len(domain) - 1] if domain else "",
        domain=domain,
        holds="nodes",
        reserves=(),
        assignments=assignments,
        request=resolve(snapshot, group).gang,
    )
