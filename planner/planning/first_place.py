"""The place that is kept for a queued gang: the one in which the fewest used GPUs must become free.

    r1: ## .#      racks of two nodes of two GPUs, # a used GPU; a gang of two whole nodes in one rack needs
    r2: .. #.      three GPUs to become free in r1, or one in r2: its place in r2 is kept for it

A new gang that uses nothing of this place does not delay the queued gang: once the pods that occupy the place
have ended, the queued gang fits with or without the new gang. This is backfilling with one reservation (EASY,
Lifka 1995). EASY needs run times, which Kubernetes workloads do not state; the planner therefore determines
which gangs and pods must end, not when they end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import islice

from planner.cluster.census.namespaces import contested_gpus, gpus_by_node, gpus_of_node
from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.model.natural_order import natural
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.topology import ROOT
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from planner.request.resolve import resolve
from planner.request.topology_request import TopologyRequest

MAX_TRIED = 4
"""Maximum number of domains that are tried, in the order of the GPUs that must become free, with one or two
plans each. The first nearly always fits; memory or taints may rule out a few domains. If none fits, the
gang's place in the emptied cluster is kept: the cluster without reservations and with no pods but those of
DaemonSets.
"""


@dataclass(frozen=True, slots=True)
class FirstPlace:
    """The place that is kept for a gang.

    `gpus`: the minimum number of used GPUs that must become free there. `ends`: the gangs that must end
    first, and the pods without a gang (NAMESPACE/NAME), each with the number of its GPUs in this place. 0 and
    () for a place in the emptied cluster.
    """

    reservation: Reservation
    gpus: int = 0
    ends: tuple[tuple[str, int], ...] = ()


def first_place(snapshot: Snapshot, group: PodGroup) -> FirstPlace | None:
    """Returns the place to keep for a gang that is queued in this snapshot, or None if the gang does not fit
    the emptied cluster (`MAX_TRIED`) either. For a gang that will reserve nothing (mode `none`), it is what
    the gang's pods will use: nobody may pass it over in the queue.

    The result is cached with the snapshot, because each plan of a request asks for it again.
    """
    group = replace(group, reserve="nodes") if group.reserve == "none" else group
    key = (group.name, fingerprint(group), repr(group.constraint), group.reserve)
    return snapshot.derived.get(_FIRST_PLACES, key, lambda: _first_place(snapshot, group))


_FIRST_PLACES: DerivedSection[tuple[str, str, str, str], FirstPlace | None] = DerivedSection(
    "first places", max_keys=1
)
"""Keyed by the gang and its request. One entry is enough: a place is kept only for the first queued gang."""


def _first_place(snapshot: Snapshot, group: PodGroup) -> FirstPlace | None:
    scopes = (
        scope for request in resolve(snapshot, group).requests for scope in _scopes(snapshot, group, request)
    )
    for scope in islice(sorted(scopes, key=lambda scope: scope.key), MAX_TRIED):
        # Only the nodes on which GPUs must become free, which disturbs the fewest gangs; then all nodes of
        # the domain, because the other nodes may lack memory.
        for nodes in filter(None, (scope.to_clear, scope.nodes)):
            reservation = _reservation_once_ended(snapshot, group, nodes)
            if reservation is not None:
                return FirstPlace(reservation, scope.in_the_way, _gangs_to_end(snapshot, reservation, nodes))
    emptied = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.daemon), reservations=())
    reservation = reservation_for(emptied, group, plan(emptied, group))
    return None if reservation is None else FirstPlace(reservation)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A domain with enough GPUs for the gang; `name`: its path.

    `in_the_way`: the minimum number of used GPUs that must become free; they are on the nodes `to_clear`.
    `busy`: the number of all used GPUs. `nodes`: all nodes of the domain; () for the whole topology,
    because `_first_place` ends with the emptied cluster anyway.
    """

    in_the_way: int
    busy: int
    name: str
    to_clear: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        return self.in_the_way, self.busy, natural(self.name)


def _scopes(snapshot: Snapshot, group: PodGroup, request: TopologyRequest) -> Iterator[_Scope]:
    """Yields the domains of the required level, or the whole topology, that have enough GPUs if all of them
    are free.
    """
    tree = snapshot.base.trees[request.topology.name]
    contested, taken = contested_gpus(snapshot, group), gpus_by_node(snapshot)
    anywhere = request.required == ROOT
    for branch in (tree.root,) if anywhere else tree.levels[request.required]:
        names = tuple(tree.names(branch))
        totals = {name: gpus_of_node(snapshot, snapshot.nodes[name], contested) for name in names}
        free = {name: total - sum(taken.get(name, {}).values()) for name, total in totals.items() if total}
        seats = _cheapest_seats(group, totals, free)
        if seats is not None:
            busy = sum(totals[name] - free[name] for name in free)
            yield _Scope(seats[0], busy, "/".join(branch.path), seats[1], () if anywhere else names)


def _cheapest_seats(
    group: PodGroup, totals: Mapping[str, int], free: Mapping[str, int]
) -> tuple[int, tuple[str, ...]] | None:
    """Returns how many GPUs must become free for the gang's pods, and on which nodes; None if there are too
    few GPUs.

    `totals`, `free`: the number of all GPUs and of free GPUs by node (negative if more are reserved than
    exist). Each pod, the largest first, goes to the node on which the fewest GPUs must become free for it.
    """
    left, unused = dict(totals), dict(free)
    in_the_way, nodes = 0, dict[str, bool]()
    for part in sorted(group.pod_sets, key=lambda part: -part.shape.gpus):
        size = part.shape.gpus
        if not size:
            continue
        rows = [(size - unused[name], index, name) for index, name in enumerate(unused) if left[name] >= size]
        heap = [(max(0, missing), index, name) for missing, index, name in rows]
        heapify(heap)
        for _ in range(part.count):
            if not heap:
                return None
            missing, index, name = heappop(heap)
            in_the_way += missing
            if missing:
                nodes[name] = True
            left[name] -= size
            unused[name] = max(0, unused[name] - size)
            if left[name] >= size:
                heappush(heap, (max(0, size - unused[name]), index, name))
    return in_the_way, tuple(nodes)


def _reservation_once_ended(snapshot: Snapshot, group: PodGroup, nodes: Iterable[str]) -> Reservation | None:
    """Returns the reservation that the gang gets after all gangs and pods on these nodes have ended, except
    DaemonSet pods; None if the gang is not admitted even then.
    """
    ended = snapshot
    for name in nodes:
        for held, _ in ended.holds.on(name):
            ended = ended.ended(held.gang)
        for pod in ended.bound.on(name):
            if not pod.daemon:
                ended = ended.without_pod(pod)
    return reservation_for(ended, group, plan(ended, group))


def _gangs_to_end(
    snapshot: Snapshot, reservation: Reservation, nodes: Iterable[str]
) -> tuple[tuple[str, int], ...]:
    """Returns `FirstPlace.ends`, sorted by GPUs, the most first.

    `nodes`: the nodes that must become free. Only those that the reservation uses or holds are counted.
    """
    taken = gpus_by_node(snapshot)
    gpus: Counter[str] = Counter()
    for name in reservation.touched.intersection(nodes):
        gpus.update(taken.get(name, {}))
    return tuple(sorted(gpus.items(), key=lambda item: (-item[1], natural(item[0]))))
