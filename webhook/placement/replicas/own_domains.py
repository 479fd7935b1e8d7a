"""How many equal gangs the empty cluster has room for if each gets a domain of its own. Pure."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.labels import Requirement
from planner.model.podgroup import PodGroup
from planner.planning.plan import plan, when_empty
from webhook.workloads.layouts.exclusive_placement import is_exclusive

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


def domains_for(snapshot: Snapshot, group: PodGroup, count: int) -> int:
    """Returns how many domains the empty cluster has in which the gang has room, at most `count`.

    Each domain is found by a search that may not use the former ones. Returns `count` if the gang needs no
    domain of its own, if there are too many domains to count, or if an autoscaler may add more.
    """
    level = level_of(group)
    if not level or count > _MOST_SEARCHES:
        return count
    taken: list[str] = []
    while len(taken) < count:
        other_domains = _outside(group, level, taken)
        answer = when_empty(snapshot, other_domains)
        if answer.decision != "admitted":
            return len(taken) if plan(snapshot, other_domains).decision == "rejected" else count
        value = snapshot.nodes[answer.assignments[0].node].labels.get(level)
        if value is None:  # the level is the alias of a label: the pods have no anti-affinity over it
            return count
        taken.append(value)
    return count


def _outside(group: PodGroup, level: str, values: list[str]) -> PodGroup:
    """Returns the gang with node affinity that excludes the domains of these label values."""
    not_in_them = Requirement(level, "NotIn", tuple(values))
    pod_sets = []
    for pod_set in group.pod_sets:
        terms = tuple((*term, not_in_them) for term in pod_set.shape.affinity) or ((not_in_them,),)
        pod_sets.append(replace(pod_set, shape=replace(pod_set.shape, affinity=terms)))
    return replace(group, pod_sets=tuple(pod_sets))
