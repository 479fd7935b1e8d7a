"""Translates pod affinity and anti-affinity into excluded nodes and constraints between PodSets. Pure.

A term is compared with three kinds of pods: bound pods, pods for which other gangs hold a reservation (which
contains their labels and anti-affinity), and the gang's own PodSets. Anti-affinity applies in both
directions, as in kube-scheduler. A node without the term's topology label is in no domain: anti-affinity
allows the node, affinity does not. Host ports are handled as anti-affinity terms (planner.model.host_ports).

An affinity term needs a matching bound pod in the node's domain, or a pod of the gang (`within_gang`); pods
that match their own terms follow reserved pods that match, too (`near_neighbours`). A pod
with several affinity terms needs pods that match all of them: one that matches the first and another that
matches the second do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.host_ports import port_of
from planner.model.labels import ANY, Requirement, Term
from planner.model.names import namespace_of
from planner.model.pod import PodTerm, term_matches
from planner.model.podgroup import Assignment, PodGroup, PodSet
from planner.model.resolved import ANTI_AFFINITY_CAUSE, NodeExclusion, ResolvedPodGroup
from planner.model.topology import HOSTNAME
from planner.request.affinity.neighbours import (
    Neighbour,
    namespaces_of,
    near_neighbours,
    near_values,
    neighbours_of,
    neighbours_with_terms,
    values_by_key,
)
from planner.request.affinity.within_gang import (
    AFFINITY_CAUSE,
    AffinityForm,
    InnerTerms,
    affinity_between,
    anti_affinity_between,
    attracts,
    node_field,
)


def with_pod_affinity(
    snapshot: Snapshot, group: ResolvedPodGroup, form: AffinityForm = "bound first"
) -> ResolvedPodGroup:
    """Returns the gang with the constraints that follow from pod affinity and anti-affinity in this snapshot;
    unchanged if there are none.
    """
    terms = [term for pod_set in group.pod_sets for term in pod_set.shape.terms]
    if not terms and not snapshot.bound.with_anti_affinity and not snapshot.holds.with_anti_affinity:
        return group
    space = namespace_of(group.name)
    neighbours = list(
        neighbours_of(snapshot, group, namespaces_of(terms, space))
        if terms
        else neighbours_with_terms(snapshot, group.name)
    )
    sets = [pod_set for pod_set in group.pod_sets if pod_set.count]
    spaces = snapshot.base.spaces
    anti_affinity = anti_affinity_between(sets, space, spaces)
    affinity = affinity_between(sets, space, spaces, near_values(snapshot, sets, space, neighbours), form)
    resolved = {
        pod_set.name: replace(
            pod_set,
            shape=replace(
                pod_set.shape,
                exclusions=(
                    *pod_set.shape.exclusions,
                    *affinity.exclusions[pod_set.name],
                    *_exclusions(snapshot, space, pod_set, neighbours, affinity.inner_terms),
                ),
                anti_affinity_with=tuple(sorted(anti_affinity[pod_set.name])),
                co_located_over=tuple(
                    sorted({*pod_set.shape.co_located_over, *affinity.co_location[pod_set.name]})
                ),
                attractions=tuple(affinity.attractions[pod_set.name]),
            ),
        )
        for pod_set in sets
    }
    return replace(group, pod_sets=tuple(resolved.get(pod_set.name, pod_set) for pod_set in group.pod_sets))


def near_own_seats(snapshot: Snapshot, group: PodGroup, pod_set: PodSet, seats: Iterable[Assignment]) -> Term:
    """Returns the node requirements of further pods of a PodSet that has affinity to pods of its own gang: to
    be in the domains of these seats of the gang. () if no pod on the seats matches the affinity.
    """
    space, spaces = namespace_of(group.name), snapshot.base.spaces
    terms = tuple(term for term in pod_set.shape.terms if term.attracts)
    names = {peer.name for peer in group.pod_sets if attracts(terms, space, space, peer.shape.labels, spaces)}
    nodes = [seat.node for seat in seats if seat.pod_set in names]
    if not nodes:
        return ()
    value = values_by_key(snapshot)
    return tuple(
        Requirement(
            node_field(term.key), "In", tuple(sorted(set().union(*(value(node, term.key) for node in nodes))))
        )
        for term in terms
    )


def _exclusions(
    snapshot: Snapshot, space: str, pod_set: PodSet, neighbours: Iterable[Neighbour], inner_terms: InnerTerms
) -> Iterator[NodeExclusion]:
    """Yields the exclusions of a PodSet: nodes in domains of neighbours with anti-affinity, and nodes outside
    the domains of neighbours to which it has affinity.

    `inner_terms`: affinity terms that the gang's own pods satisfy.
    """
    labels, spaces = pod_set.shape.labels, snapshot.base.spaces
    away: dict[tuple[str, str], set[str]] = {}
    near_domains = {
        term: set[str]()
        for term in pod_set.shape.terms
        if term.attracts and (pod_set.name, term) not in inner_terms
    }
    value = values_by_key(snapshot)
    near = near_neighbours(snapshot, pod_set, space, neighbours) if near_domains else []
    for term, domains in near_domains.items():
        domains.update(*(value(neighbour.node, term.key) for neighbour in near))
    for neighbour in neighbours:
        for term in pod_set.shape.terms:
            if not term.attracts and term_matches(term, space, neighbour.space, neighbour.labels, spaces):
                away.setdefault(_cause(term), set()).update(value(neighbour.node, term.key))
        for term in neighbour.terms:
            if term_matches(term, neighbour.space, space, labels, spaces):
                away.setdefault(_cause(term), set()).update(value(neighbour.node, term.key))
    for (key, cause), values in sorted(away.items()):
        if values:
            yield NodeExclusion(node_field(key), frozenset(values), cause)
    for term, values in near_domains.items():
        yield NodeExclusion(node_field(term.key), frozenset(values), AFFINITY_CAUSE, inside=True)
        if (
            term.key != HOSTNAME
        ):  # permanent: a matching pod may come later, but a node without the label is never in its domain
            yield NodeExclusion(term.key, frozenset((ANY,)), AFFINITY_CAUSE, inside=True, passing=False)


def _cause(term: PodTerm) -> tuple[str, str]:
    """Returns the label key of an anti-affinity term and the cause of its exclusions."""
    port = port_of(term)
    return term.key, f"with {port} in use" if port else ANTI_AFFINITY_CAUSE
