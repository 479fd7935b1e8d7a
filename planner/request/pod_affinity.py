"""Translates pod affinity and anti-affinity into excluded nodes and constraints between PodSets. Pure.

A term is compared with three kinds of pods: bound pods, pods for which other gangs hold a reservation (which
contains their labels and anti-affinity), and the gang's own PodSets. Anti-affinity applies in both
directions, as in kube-scheduler. A node without the term's topology label is in no domain: anti-affinity
allows the node, affinity does not. Host ports are handled as anti-affinity terms (planner.model.host_ports).

An affinity term needs a matching bound pod in the node's domain. A pod with several affinity terms needs pods
that match all of them: one that matches the first and another that matches the second do not count. If no
bound pod matches and the gang's own pods do, the matching pods and the pods with the term are kept in one
domain, so that the term is satisfied in any binding order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import belongs_to_gang
from planner.model.host_ports import port_of
from planner.model.labels import ANY, NODE_NAME_FIELD, Requirement, Term
from planner.model.names import namespace_of
from planner.model.pod import PodTerm, Spaces, term_matches
from planner.model.podgroup import Assignment, PodGroup, PodSet
from planner.model.reservation import reservation_id
from planner.model.resolved import ANTI_AFFINITY_CAUSE, NodeExclusion, ResolvedPodGroup
from planner.model.topology import HOSTNAME

AFFINITY_CAUSE = "pod affinity"
"""The cause of node exclusions by affinity to other pods, for messages."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """`count` equal pods of another workload on a node. `bound`: False if they have only a reservation.

    `space`: the namespace of the pods. `terms`: their required anti-affinity. `terminating`: they are being
    deleted; kube-scheduler counts them for affinity and anti-affinity, but not for topology spread.
    """

    space: str
    labels: Mapping[str, str]
    node: str
    terms: tuple[PodTerm, ...]
    bound: bool
    count: int = 1
    terminating: bool = False


def with_pod_affinity(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """Returns the gang with the constraints that follow from pod affinity and anti-affinity in this snapshot;
    unchanged if there are none.
    """
    terms = [term for pod_set in group.pod_sets for term in pod_set.shape.terms]
    if not terms and not snapshot.bound.with_anti_affinity and not snapshot.holds.with_anti_affinity:
        return group
    space = namespace_of(group.name)
    neighbours = list(
        neighbours_of(snapshot, group, _namespaces(terms, space))
        if terms
        else _neighbours_with_terms(snapshot, group.name)
    )
    sets = [pod_set for pod_set in group.pod_sets if pod_set.count]
    anti_affinity, co_location, exclusions, inner_terms = _between_own_pod_sets(
        snapshot, space, sets, neighbours
    )
    resolved = {
        pod_set.name: replace(
            pod_set,
            shape=replace(
                pod_set.shape,
                exclusions=(
                    *pod_set.shape.exclusions,
                    *exclusions[pod_set.name],
                    *_exclusions(snapshot, space, pod_set, neighbours, inner_terms),
                ),
                anti_affinity_with=tuple(sorted(anti_affinity[pod_set.name])),
                co_located_over=tuple(sorted({*pod_set.shape.co_located_over, *co_location[pod_set.name]})),
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
    names = {
        peer.name for peer in group.pod_sets if _attracts(terms, space, space, peer.shape.labels, spaces)
    }
    nodes = [seat.node for seat in seats if seat.pod_set in names]
    if not nodes:
        return ()
    value = _values(snapshot)
    return tuple(
        Requirement(
            _field(term.key), "In", tuple(sorted(set().union(*(value(node, term.key) for node in nodes))))
        )
        for term in terms
    )


def _namespaces(terms: Iterable[PodTerm], space: str) -> frozenset[str]:
    """Returns the namespaces from which these terms of pods in `space` may select pods; empty for all."""
    if any(term.every for term in terms):
        return frozenset()
    return frozenset(name for term in terms for name in term.spaces or (space,))


def neighbours_of(
    snapshot: Snapshot, group: PodGroup, spaces: frozenset[str] = frozenset()
) -> Iterator[Neighbour]:
    """Yields the bound pods of other workloads, and the unbound pods for which other gangs hold a
    reservation: those in these namespaces (empty: in all), and those with anti-affinity terms.
    """
    gang, with_terms = group.name, snapshot.holds.with_anti_affinity
    own_id = reservation_id(gang)
    # Most pods of a cluster are those of DaemonSets in other namespaces: 50,000 took 100 ms without this.
    beginnings = tuple(f"{space}/" for space in spaces) or ("",)
    for pod in snapshot.bound:
        if (pod.name.startswith(beginnings) or pod.terms) and not belongs_to_gang(pod, gang, own_id):
            yield Neighbour(
                namespace_of(pod.name),
                pod.labels,
                pod.node,
                pod.terms,
                bound=True,
                terminating=pod.terminating,
            )
    for reservation in snapshot.reservations:
        if not reservation.gang.startswith(beginnings) and reservation.gang not in with_terms:
            continue
        traits = dict(reservation.traits)
        space = namespace_of(reservation.gang)
        for assignment, waiting in snapshot.bound.empty_seats(reservation, terminating_too=True):
            if assignment.pod_set in traits:
                pod_traits = traits[assignment.pod_set]
                yield Neighbour(
                    space, pod_traits.labels, assignment.node, pod_traits.terms, bound=False, count=waiting
                )


def _neighbours_with_terms(snapshot: Snapshot, gang: str) -> Iterator[Neighbour]:
    """Yields only the neighbours with anti-affinity terms.

    Only these concern a gang without terms of its own. They are few, so in this common case few pods are
    read.
    """
    own_id = reservation_id(gang)
    for pods in snapshot.bound.with_anti_affinity.values():
        for pod in pods:
            if not belongs_to_gang(pod, gang, own_id):
                yield Neighbour(namespace_of(pod.name), pod.labels, pod.node, pod.terms, bound=True)
    for holder, reservation in snapshot.holds.with_anti_affinity.items():
        traits = dict(reservation.traits)
        for assignment in reservation.assignments:
            if assignment.pod_set in traits:
                pod_traits = traits[assignment.pod_set]
                yield Neighbour(
                    namespace_of(holder), pod_traits.labels, assignment.node, pod_traits.terms, bound=False
                )


_AntiAffinity = dict[str, set[tuple[str, str]]]
"""By PodSet, pairs (label key, PodSet) of pods that must not be in one domain."""


_InnerTerms = set[tuple[str, PodTerm]]
"""Affinity terms that the gang's own pods satisfy, each with the PodSet that has it."""


_CoLocation = dict[str, set[tuple[str, tuple[str, ...]]]]
"""By PodSet, pairs (label key, PodSets) of pods that must be in one domain."""


def _between_own_pod_sets(
    snapshot: Snapshot, space: str, sets: Sequence[PodSet], neighbours: Iterable[Neighbour]
) -> tuple[_AntiAffinity, _CoLocation, dict[str, list[NodeExclusion]], _InnerTerms]:
    """Returns the constraints between the gang's own PodSets.

    The result has four parts, the first three by PodSet:
    - anti-affinity: pairs of a label key and a PodSet whose pods must not be in the same domain;
    - affinity: pairs of a label key and all PodSets whose pods must be in one domain;
    - the exclusions of nodes without these labels;
    - the affinity terms that the gang's own pods satisfy, each with its PodSet.
    """
    spaces = snapshot.base.spaces
    inner_terms: _InnerTerms = set()
    anti_affinity: _AntiAffinity = {pod_set.name: set() for pod_set in sets}
    co_location: _CoLocation = {pod_set.name: set() for pod_set in sets}
    exclusions: dict[str, list[NodeExclusion]] = {pod_set.name: [] for pod_set in sets}
    for pod_set in sets:
        attracting = tuple(term for term in pod_set.shape.terms if term.attracts)
        for term in pod_set.shape.terms:
            if not term.attracts:
                for peer in sets:
                    if term_matches(term, space, space, peer.shape.labels, spaces):
                        anti_affinity[pod_set.name].add((term.key, peer.name))
                        anti_affinity[peer.name].add((term.key, pod_set.name))
        attractive = [p.name for p in sets if _attracts(attracting, space, space, p.shape.labels, spaces)]
        if attractive and not any(_near(snapshot, attracting, space, neighbour) for neighbour in neighbours):
            names = tuple(sorted({pod_set.name, *attractive}))
            for term in attracting:
                inner_terms.add((pod_set.name, term))
                for name in names:
                    co_location[name].add((term.key, names))
                    if term.key != HOSTNAME:
                        exclusions[name].append(
                            NodeExclusion(
                                term.key, frozenset((ANY,)), AFFINITY_CAUSE, inside=True, passing=False
                            )
                        )
    return anti_affinity, co_location, exclusions, inner_terms


def _attracts(
    terms: Sequence[PodTerm], pod_space: str, space: str, labels: Mapping[str, str], spaces: Spaces
) -> bool:
    """Reports whether a pod in `space` with these labels matches all affinity terms of a pod in `pod_space`,
    as kube-scheduler requires of a pod that is to satisfy any of them; False without terms.
    """
    return bool(terms) and all(term_matches(term, pod_space, space, labels, spaces) for term in terms)


def _near(snapshot: Snapshot, terms: Sequence[PodTerm], space: str, neighbour: Neighbour) -> bool:
    """Reports whether a neighbour is a bound pod that these affinity terms of a pod in `space` select, on a
    node with the label of one of them.
    """
    if not neighbour.bound or not _attracts(
        terms, space, neighbour.space, neighbour.labels, snapshot.base.spaces
    ):
        return False
    value = _values(snapshot)
    return any(value(neighbour.node, term.key) for term in terms)


def _exclusions(
    snapshot: Snapshot, space: str, pod_set: PodSet, neighbours: Iterable[Neighbour], inner_terms: _InnerTerms
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
    value = _values(snapshot)
    for neighbour in neighbours:
        for term in pod_set.shape.terms:
            if not term.attracts and term_matches(term, space, neighbour.space, neighbour.labels, spaces):
                away.setdefault(_cause(term), set()).update(value(neighbour.node, term.key))
        if near_domains and _near(snapshot, tuple(near_domains), space, neighbour):
            for term, domains in near_domains.items():
                domains |= value(neighbour.node, term.key)
        for term in neighbour.terms:
            if term_matches(term, neighbour.space, space, labels, spaces):
                away.setdefault(_cause(term), set()).update(value(neighbour.node, term.key))
    for (key, cause), values in sorted(away.items()):
        if values:
            yield NodeExclusion(_field(key), frozenset(values), cause)
    for term, values in near_domains.items():
        yield NodeExclusion(_field(term.key), frozenset(values), AFFINITY_CAUSE, inside=True)
        if (
            term.key != HOSTNAME
        ):  # permanent: a matching pod may come later, but a node without the label is never in its domain
            yield NodeExclusion(term.key, frozenset((ANY,)), AFFINITY_CAUSE, inside=True, passing=False)


def _cause(term: PodTerm) -> tuple[str, str]:
    """Returns the label key of an anti-affinity term and the cause of its exclusions."""
    port = port_of(term)
    return term.key, f"with {port} in use" if port else ANTI_AFFINITY_CAUSE


def _values(snapshot: Snapshot) -> Callable[[str, str], set[str]]:
    def value(name: str, key: str) -> set[str]:
        """Returns the node's value of the topology key as a set, which is empty if the node has none."""
        node = snapshot.nodes.get(name)
        if key == HOSTNAME:
            return {name}
        domain = node.labels.get(key) if node else None
        return {domain} if domain else set()

    return value


def _field(key: str) -> str:
    return NODE_NAME_FIELD if key == HOSTNAME else key
