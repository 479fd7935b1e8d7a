"""The pods of other workloads, bound or with a reservation, with what affinity terms need of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import belongs_to_gang
from planner.model.names import namespace_of
from planner.model.pod import PodTerm
from planner.model.podgroup import PodGroup, PodSet
from planner.model.reservation import reservation_id
from planner.model.topology import HOSTNAME
from planner.request.affinity.within_gang import NearValues, attracts


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


def namespaces_of(terms: Iterable[PodTerm], space: str) -> frozenset[str]:
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


def neighbours_with_terms(snapshot: Snapshot, gang: str) -> Iterator[Neighbour]:
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


def near_neighbours(
    snapshot: Snapshot, pod_set: PodSet, space: str, neighbours: Iterable[Neighbour]
) -> list[Neighbour]:
    """Returns the bound neighbours that the affinity terms of a PodSet in `space` select, on a node with the
    label of one of them.

    If there are none, and the pods match their own terms, reserved neighbours count: kube-scheduler binds
    only the first of such pods to any node, and the others beside it, whichever pod comes first.
    """
    spaces, labels = snapshot.base.spaces, pod_set.shape.labels
    terms = tuple(term for term in pod_set.shape.terms if term.attracts)
    value = values_by_key(snapshot)
    selected = [
        neighbour
        for neighbour in neighbours
        if attracts(terms, space, neighbour.space, neighbour.labels, spaces)
        and any(value(neighbour.node, term.key) for term in terms)
    ]
    bound = [neighbour for neighbour in selected if neighbour.bound]
    return bound or (selected if attracts(terms, space, space, labels, spaces) else [])


def values_by_key(snapshot: Snapshot) -> Callable[[str, str], set[str]]:
    def value(name: str, key: str) -> set[str]:
        """Returns the node's value of the topology key as a set, which is empty if the node has none."""
        node = snapshot.nodes.get(name)
        if key == HOSTNAME:
            return {name}
        domain = node.labels.get(key) if node else None
        return {domain} if domain else set()

    return value


def near_values(
    snapshot: Snapshot, pod_sets: Iterable[PodSet], space: str, neighbours: Sequence[Neighbour]
) -> NearValues:
    """Returns the PodSets that have affinity to neighbours, and where these are."""
    values, near = values_by_key(snapshot), {}
    for pod_set in pod_sets:
        nodes = [neighbour.node for neighbour in near_neighbours(snapshot, pod_set, space, neighbours)]
        if nodes:
            near[pod_set.name] = {
                term: frozenset().union(*(values(name, term.key) for name in nodes))
                for term in pod_set.shape.terms
                if term.attracts
            }
    return near
