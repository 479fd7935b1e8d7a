"""What other pods mean for a gang in one snapshot: where pod affinity and anti-affinity let it be. Pure.

Looked at are bound pods, those that other gangs have reserved a place for (their labels and anti-affinity are
in the reservation), and the gang's own PodSets against each other. Anti-affinity keeps away in both
directions, as kube-scheduler has it. A node without the term's label is in no domain of it: anti-affinity
lets a pod be there, affinity does not.

Affinity wants a pod that is bound already; where none is and the gang's own pods are meant, they and the pods
that want them are kept in one domain, so that it holds in whatever order they come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.occupancy import carried
from planner.cluster.snapshot import Snapshot
from planner.model.labels import ANY, NODE_NAME_FIELD
from planner.model.pod import PodTerm, Spaces, means
from planner.model.podgroup import Assignment, PodGroup, PodSet
from planner.model.reservation import Reservation, reservation_id
from planner.model.resolved import NodeExclusion, ResolvedPodGroup
from planner.model.topology import HOSTNAME

APART, NEAR = "pod anti-affinity", "pod affinity"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Pods of somebody else on a node, `count` alike; `bound`: not only reserved for."""

    space: str
    labels: Mapping[str, str]
    node: str
    terms: tuple[PodTerm, ...]
    bound: bool
    count: int = 1


def with_pod_affinity(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """The gang with what its neighbours and its own PodSets mean for it; the same where that is nothing."""
    terms = any(pod_set.shape.terms for pod_set in group.pod_sets)
    if not terms and not snapshot.bound.with_anti_affinity and not snapshot.holds.with_anti_affinity:
        return group
    own = reservation_id(group.name)
    neighbours = list(_neighbours(snapshot, own) if terms else _wary(snapshot, own))
    space = group.name.partition("/")[0]
    sets = [pod_set for pod_set in group.pod_sets if pod_set.count]
    shuns, together, bars, kept = _among(space, sets, neighbours, snapshot.base.spaces)
    made = {
        one.name: replace(
            one,
            shape=replace(
                one.shape,
                exclusions=(*bars[one.name], *_barred(snapshot, space, one, neighbours, kept)),
                anti_affinity_with=tuple(sorted(shuns[one.name])),
                co_located_over=tuple(sorted(together[one.name])),
            ),
        )
        for one in sets
    }
    return replace(group, pod_sets=tuple(made.get(one.name, one) for one in group.pod_sets))


def neighbours_of(snapshot: Snapshot, group: PodGroup) -> Iterator[Neighbour]:
    """All pods that are no pods of the gang, and those that others have reserved a place for."""
    return _neighbours(snapshot, reservation_id(group.name))


def _neighbours(snapshot: Snapshot, own: str) -> Iterator[Neighbour]:
    for pod in snapshot.bound:
        if own not in carried(pod):
            yield Neighbour(pod.name.partition("/")[0], pod.labels, pod.node, pod.terms, bound=True)
    for reservation in snapshot.reservations:
        traits = dict(reservation.traits)
        space = reservation.gang.partition("/")[0]
        for one, waiting in _waiting(snapshot, reservation):
            if one.pod_set in traits:
                known = traits[one.pod_set]
                yield Neighbour(space, known.labels, one.node, known.terms, bound=False, count=waiting)


def _waiting(snapshot: Snapshot, reservation: Reservation) -> Iterator[tuple[Assignment, int]]:
    """The seats of a reservation on each node that no bound pod has taken yet."""
    taken = Counter(
        node
        for node in snapshot.bound.carriers.get(reservation.id) or ()
        for pod in snapshot.bound.on(node)
        if reservation.id in carried(pod)
    )
    for one in reservation.assignments:
        seated = min(one.count, taken[one.node])
        taken[one.node] -= seated
        if one.count > seated:
            yield one, one.count - seated


def _wary(snapshot: Snapshot, own: str) -> Iterator[Neighbour]:
    """Those with anti-affinity of their own, which are few."""
    for pods in snapshot.bound.with_anti_affinity.values():
        for pod in pods:
            if own not in carried(pod):
                yield Neighbour(pod.name.partition("/")[0], pod.labels, pod.node, pod.terms, bound=True)
    for gang, reservation in snapshot.holds.with_anti_affinity.items():
        traits = dict(reservation.traits)
        for one in reservation.assignments:
            if one.pod_set in traits:
                known = traits[one.pod_set]
                yield Neighbour(gang.partition("/")[0], known.labels, one.node, known.terms, bound=False)


_Shuns = dict[str, set[tuple[str, str]]]


_Kept = set[tuple[str, PodTerm]]


_Together = dict[str, set[tuple[str, tuple[str, ...]]]]


def _among(
    space: str, sets: Sequence[PodSet], neighbours: Iterable[Neighbour], known: Spaces
) -> tuple[_Shuns, _Together, dict[str, list[NodeExclusion]], _Kept]:
    """What the gang's PodSets mean to each other."""
    kept: _Kept = set()
    shuns: _Shuns = {one.name: set() for one in sets}
    together: _Together = {one.name: set() for one in sets}
    bars: dict[str, list[NodeExclusion]] = {one.name: [] for one in sets}
    for one in sets:
        for term in one.shape.terms:
            meant = [other.name for other in sets if means(term, space, space, other.shape.labels, known)]
            if not term.attracts:
                for name in meant:
                    shuns[one.name].add((term.key, name))
                    shuns[name].add((term.key, one.name))
            elif meant and not any(
                n.bound and means(term, space, n.space, n.labels, known) for n in neighbours
            ):
                kept.add((one.name, term))
                names = tuple(sorted({one.name, *meant}))
                for name in names:
                    together[name].add((term.key, names))
                    if term.key != HOSTNAME:
                        bars[name].append(
                            NodeExclusion(term.key, frozenset((ANY,)), NEAR, inside=True, now=False)
                        )
    return shuns, together, bars, kept


def _barred(
    snapshot: Snapshot, space: str, pod_set: PodSet, neighbours: Iterable[Neighbour], kept: _Kept
) -> Iterator[NodeExclusion]:
    """The nodes from which neighbours keep the pods of a PodSet, or on which alone they want to be.

    `kept`: terms of affinity that the gang's own pods see to.
    """
    labels, known = pod_set.shape.labels, snapshot.base.spaces
    away: dict[str, set[str]] = {}
    near = {
        term: set[str]() for term in pod_set.shape.terms if term.attracts and (pod_set.name, term) not in kept
    }
    value = _values(snapshot)
    for one in neighbours:
        for term in pod_set.shape.terms:
            if (term.attracts and not one.bound) or not means(term, space, one.space, one.labels, known):
                continue
            where = near.get(term) if term.attracts else away.setdefault(term.key, set())
            if where is not None:
                where |= value(one.node, term.key)
        for term in one.terms:
            if means(term, one.space, space, labels, known):
                away.setdefault(term.key, set()).update(value(one.node, term.key))
    for key, values in sorted(away.items()):
        if values:
            yield NodeExclusion(_field(key), frozenset(values), APART)
    for term, values in near.items():
        yield NodeExclusion(_field(term.key), frozenset(values), NEAR, inside=True)
        if term.key != HOSTNAME:  # others may come, but a node without the label is never near them
            yield NodeExclusion(term.key, frozenset((ANY,)), NEAR, inside=True, now=False)


def _values(snapshot: Snapshot) -> Callable[[str, str], set[str]]:
    def value(name: str, key: str) -> set[str]:
        """The node's domain of the key, if it is in one."""
        node = snapshot.nodes.get(name)
        if key == HOSTNAME:
            return {name}
        found = node.labels.get(key) if node else None
        return {found} if found else set()

    return value


def _field(key: str) -> str:
    return NODE_NAME_FIELD if key == HOSTNAME else key
