"""The warning for a gang that is spread over several domains of a level that it prefers to be within.

For example a gang prefers one rack and is placed in two: the warning says how much longer its all-reduce
takes than in the empty cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.bandwidth.comparison import GangLayout, answer_layout, placed
from planner.bandwidth.words import milliseconds, ratio
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.topology import Topology, short, topology_named
from planner.planning.plan import when_empty
from planner.request.levels import constraints, level_key

_MIN_SLOWDOWN = 1.05
"""The minimum slowdown of an all-reduce for which a warning is given."""


def bandwidth_warning(snapshot: Snapshot, group: PodGroup, answer: Answer) -> str:
    """Returns the warning for a gang that is spread although it prefers one domain, if that costs time; ""
    for none.

    The warning says how much time that costs, and what would be better, without the name of the gang. There
    is none if the all-reduce takes less than 5 % longer than in the empty cluster, or if the answer repeats
    the place that the gang already holds. `snapshot` is the cluster in which the gang was planned.
    """
    if answer.decision != "admitted" or answer.replayed:
        return ""
    distribution = spread(snapshot, group, answer)
    if (
        distribution is None
        or distribution.placement.estimate.seconds < _MIN_SLOWDOWN * distribution.best.estimate.seconds
    ):
        return ""
    return _warning_text(distribution)


def _warning_text(distribution: PodDistribution) -> str:
    """Returns the text of the warning."""
    level = short(distribution.level)
    where = f"one {level}" if distribution.min_domains == 1 else f"{distribution.min_domains} {level}s"
    better = "require it, and wait" if distribution.min_domains == 1 else "wait until others have ended"
    return (
        f"in {distribution.domains} {level}s, for {where} has no room now. All-reduce of 1 GB: "
        f"{milliseconds(distribution.placement)}, in {where} {milliseconds(distribution.best)} "
        f"({ratio(distribution.placement, distribution.best)}), by the model: "
        f"{distribution.placement.estimate.model}. "
        f"Better: {better}."
    )


@dataclass(frozen=True, slots=True)
class PodDistribution:
    """A gang that prefers to be in one domain of `level`, but is spread over several.

    `placement`: the layout of the gang's placement, which is in `domains` domains. `best`: the layout that
    the gang would have in the empty cluster, in `min_domains` domains.
    """

    level: str
    domains: int
    placement: GangLayout
    min_domains: int
    best: GangLayout


def spread(snapshot: Snapshot, group: PodGroup, answer: Answer) -> PodDistribution | None:
    """Returns how an admitted gang is spread over a level that it prefers to be within, or None.

    The level is that of the gang, or of the first PodSet whose preference was not met. None if every
    preferred level was met, or if the gang has no estimate (`answer_layout`). `snapshot` is the cluster in
    which the gang was planned; the gang's own reservation is ignored.
    """
    topology = topology_named(snapshot.topologies, answer.topology)
    if topology is None or not any(constraint.preferred for _, constraint in constraints(group)):
        return None
    for names, preferred in _preferred(group):
        level = level_key(topology, preferred)
        domains = _domains(snapshot, topology, level, names, answer) if level else 0
        if domains < 2:
            continue
        layout = answer_layout(snapshot, group, answer)
        best = when_empty(snapshot.without(group.name), placed(group, answer))
        ideal = answer_layout(snapshot, group, best)
        if layout is not None and ideal is not None:
            return PodDistribution(
                level, domains, layout, _domains(snapshot, topology, level, names, best), ideal
            )
    return None


def _preferred(group: PodGroup) -> list[tuple[frozenset[str], str]]:
    """Returns the preferred levels as (PodSet names, level): of the whole gang, and of each PodSet."""
    all_names = frozenset(pod_set.name for pod_set in group.pod_sets)
    preferences = [(all_names, group.constraint.preferred)]
    preferences += [(frozenset((pod_set.name,)), pod_set.constraint.preferred) for pod_set in group.pod_sets]
    return [(names, level) for names, level in preferences if level]


def _domains(
    snapshot: Snapshot, topology: Topology, level: str, names: frozenset[str], answer: Answer
) -> int:
    """Returns the number of domains of the level in which the pods of these PodSets are."""
    depth = topology.index(level) + 1
    nodes = {assignment.node for assignment in answer.assignments if assignment.pod_set in names}
    return len({topology.path(name, snapshot.nodes[name].labels)[:depth] for name in nodes})
