"""Plans several movables as if they were one gang, when planning them one after the other fails.

The search for a gang with several pod classes is exact: it tries every way to share the free nodes. Each
movable gets its part of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.topology import common_domain
from planner.planning.defragmentation.movable import Movable
from planner.request.resolve import resolve

MAX_TOGETHER = 12
"""Maximum number of movables that are planned together: the search grows with the number of pod classes."""


class Plan(Protocol):
    """Plans a gang, as `planner.planning.plan.plan` does, which callers hand in: moves are plans of plans."""

    def __call__(self, snapshot: Snapshot, group: PodGroup) -> Answer:
        """Returns the answer for one gang."""
        ...


def together(around: Snapshot, movables: Sequence[Movable], plan: Plan) -> list[Answer]:
    """Returns an answer for each movable, which all fit at the same time.

    The list is empty if there is no such combination, or if a movable has constraints beyond a required
    level.
    """
    if len(movables) > MAX_TOGETHER or not all(_is_plain(around, movable) for movable in movables):
        return []
    for movable in movables:
        around = around.without(movable.name)
    sets = tuple(
        replace(pod_set, name=_name(index, pod_set), constraint=_over(pod_set.constraint, movable.group))
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
    answer = plan(around, joint)
    if answer.decision != "admitted":
        return []
    return [_own(around, index, movable.group, answer) for index, movable in enumerate(movables)]


def _is_plain(around: Snapshot, movable: Movable) -> bool:
    """Returns whether the movable's pods may share nodes and have at most one level, of the gang or of each
    PodSet.
    """
    group, held = movable.group, around.holding(movable.name)
    return not (
        group.wishes
        or group.within
        or group.reserve == "domain"
        or (held is not None and held.mode == "domain")
        or any(pod_set.constraint.slice_level for pod_set in group.pod_sets)
    )


def _over(constraint: Constraint, group: PodGroup) -> Constraint:
    """Returns a PodSet's required level, or that of its gang if this is the gang's only PodSet."""
    alone = len(group.pod_sets) == 1
    return Constraint(required=constraint.required or (group.constraint.required if alone else ""))


def _name(index: int, pod_set: PodSet) -> str:
    return f"{index}-{pod_set.name}"


def _own(around: Snapshot, index: int, group: PodGroup, answer: Answer) -> Answer:
    """Returns a movable's part of the joint answer, as if it had been planned alone."""
    sets = {_name(index, pod_set): pod_set.name for pod_set in group.pod_sets}
    assignments = tuple(
        replace(assignment, pod_set=sets[assignment.pod_set])
        for assignment in answer.assignments
        if assignment.pod_set in sets
    )
    topology = next(topology for topology in around.topologies if topology.name == answer.topology)
    nodes = [around.nodes[assignment.node] for assignment in assignments]
    domain = common_domain([topology.path(node.name, node.labels) for node in nodes])
    return replace(
        answer,
        gang=group.name,
        level=topology.levels[len(domain) - 1] if domain else "",
        domain=domain,
        holds="nodes",
        reserves=(),
        assignments=assignments,
        request=resolve(around, group).gang,
    )
