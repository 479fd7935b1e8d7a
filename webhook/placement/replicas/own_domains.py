"""How many equal gangs the empty cluster has room for if each gets a domain of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import Requirement
from planner.model.podgroup import PodGroup
from planner.planning.growth import pools
from planner.planning.plan import plan, when_empty
from webhook.workloads.layouts.exclusive_placement import PLACEMENT_GROUPS, is_exclusive

_MOST_SEARCHES = 64
"""Maximum number of domains that are counted, because each takes a search of the empty cluster."""


def without_exclusive_terms(group: PodGroup) -> PodGroup:
    """Returns the gang without the anti-affinity of exclusive placement."""
    if not level_of(group):
        return group
    pod_sets = (
        replace(
            pod_set,
            shape=replace(
                pod_set.shape, terms=tuple(term for term in pod_set.shape.terms if not is_exclusive(term))
            ),
        )
        for pod_set in group.pod_sets
    )
    return replace(group, pod_sets=tuple(pod_sets))


def level_of(group: PodGroup) -> str:
    """Returns the node label of which the gang gets a domain of its own, "" for none."""
    terms = (term for pod_set in group.pod_sets for term in pod_set.shape.terms if is_exclusive(term))
    return next((term.key for term in terms), "")


def domains_for(snapshot: Snapshot, groups: Sequence[PodGroup], count: int) -> int:
    """Returns in how many domains of the empty cluster there is room for any of the gangs, at most `count`.
    The domains are of the level of which the gangs, or some of them, get one of their own. If the gangs are
    equal, exactly so many of them get one.

    Each domain is found by a search that may not use the former ones. After these, the domains count to which
    pools add nodes by their labels. Returns `count` if the gangs need no domains of one level, if there are
    too many domains to count, or if an autoscaler may add domains.
    """
    levels = {level for group in groups if (level := level_of(group))}
    if len(levels) != 1:
        return count
    (level,) = levels
    domains: list[str] = []
    for group in groups:
        while len(domains) < count:
            if len(domains) >= _MOST_SEARCHES:
                return count
            outside = _outside(group, level, domains)
            answer = when_empty(snapshot, outside)
            if answer.decision != "admitted":
                if enlarged := _enlarged(snapshot, outside, level):
                    domains += enlarged
                    continue
                if plan(snapshot, outside).decision != "rejected":
                    return count
                break
            value = snapshot.nodes[answer.assignments[0].node].labels.get(level)
            if value is None:  # the level is the alias of a label: the pods have no anti-affinity over it
                return count
            domains.append(value)
    return min(count, len(domains))


def _enlarged(snapshot: Snapshot, group: PodGroup, level: str) -> list[str]:
    """Returns the domains of the level to which growing pools add nodes, as their labels state, and of which
    each then has room for the gang.
    """
    stated = {
        value
        for pool in pools(snapshot)
        for value in ((pool.labels[level],) if level in pool.labels else pool.choices.get(level, ()))
    }
    within = {value: _narrowed(group, Requirement(level, "In", (value,))) for value in sorted(stated)}
    return [value for value, inside in within.items() if plan(snapshot, inside).decision != "rejected"]


def kinds_of(groups: Iterable[PodGroup]) -> list[PodGroup]:
    """Returns one gang of each kind: gangs of a kind differ in their names only."""
    kinds: list[PodGroup] = []
    for group in groups:
        if not any(replace(kind, name=group.name) == group for kind in kinds):
            kinds.append(group)
    return kinds


def running_groups(snapshot: Snapshot) -> frozenset[str]:
    """Returns the hashes of the placement groups that have bound pods."""
    return frozenset(
        pod.labels[label] for pod in snapshot.pods for label in PLACEMENT_GROUPS if label in pod.labels
    )


def has_running_pods(group: PodGroup, running: frozenset[str]) -> bool:
    """Returns whether pods of the gang's placement group are among those of `running`."""
    labels = (pod_set.shape.labels.get(label) for pod_set in group.pod_sets for label in PLACEMENT_GROUPS)
    return any(value in running for value in labels)


def with_note(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Answer:
    """Returns the answer with a warning if the gang gets a domain of a level that is no node's label."""
    level = level_of(group)
    if not level or any(level in topology.levels for topology in snapshot.topologies):
        return answer
    if any(level in node.labels for node in snapshot.nodes.values()):
        return answer
    note = (
        f"exclusive-topology names {level}, which is no label of any node: its controller gives the pods "
        "affinity over this label, so they stay pending. What would work: the key of the node label"
    )
    return replace(answer, warnings=(*answer.warnings, note))


def _outside(group: PodGroup, level: str, values: Sequence[str]) -> PodGroup:
    """Returns the gang with node affinity that excludes the domains of these label values."""
    return _narrowed(group, Requirement(level, "NotIn", tuple(values)))


def _narrowed(group: PodGroup, requirement: Requirement) -> PodGroup:
    """Returns the gang with a further requirement in its node affinity."""
    pod_sets = []
    for pod_set in group.pod_sets:
        terms = tuple((*term, requirement) for term in pod_set.shape.affinity) or ((requirement,),)
        pod_sets.append(replace(pod_set, shape=replace(pod_set.shape, affinity=terms)))
    return replace(group, pod_sets=tuple(pod_sets))
