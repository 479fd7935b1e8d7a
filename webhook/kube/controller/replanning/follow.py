"""Moves a gang's reservation to the nodes to which its pods were really bound. Pure.

Inside a domain that a gang holds whole, its scheduler chooses the nodes: the reservation follows once all
pods are bound. A pod that was bound outside the gang's nodes (by hand, or by a scheduler that ignores the
affinity) is followed at once: the seat that is reserved for it is unused, and no other pod may use it.
Nothing is taken from another gang. With each pod that is followed, one unused seat of its PodSet moves to the
pod's node, so one seat remains for each pod that is not bound yet.

A gang that was moved off its nodes is not followed back pod by pod: its pods go to the new place one after
the other, as they are replaced. It is followed back if all its pods run where they ran and none has gone to
the new place, for example after a node was not ready for a minute. A pod on a node that was not usable when
the gang was moved, and is again, is followed back by itself if the gang requires no level. The reservation
says which nodes the gang has left (`Reservation.left_nodes`), so each leader follows the same pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import carried
from planner.ledger.conflicts import RecordedReservation, in_the_way
from planner.model.pod import BoundPod
from planner.model.podgroup import Assignment, PodGroup
from planner.model.reservation import Reservation
from planner.model.topology import Domain, Topology, common_domain, contains, topology_named
from webhook.kube.controller.replanning.replan import seated, unusable


def followed(snapshot: Snapshot, group: PodGroup, held: Reservation) -> Reservation | None:
    """Returns the reservation with its seats where the gang's pods are; None if it has them there already, or
    another gang's reservation is in the way.
    """
    # A pod that names several reservations is left out: it may belong to any of these gangs.
    pods = [pod for pod in snapshot.bound.of_gang(held.gang, held.id) if carried(pod) == [held.id]]
    if len(group.pod_sets) == 1 and _have_seats(pods, held, group.pod_sets[0].name):  # most gangs, each round
        return None
    used = defaultdict[str, Counter[str]](Counter)
    for pod in pods:
        used[pod.node].update(pod.requests)
    pods = [pod for pod in pods if not unusable(snapshot, pod.node, used[pod.node])]
    none_has_moved = len(pods) >= held.seats and held.touched.isdisjoint(pod.node for pod in pods)
    if not none_has_moved:
        left = held.left_nodes.difference(seat.node for seat in held.assignments)  # it may have come back
        pods = [pod for pod in pods if pod.node not in left]
    stands, seats = seated(snapshot, group, pods), Counter[tuple[str, str]]()
    for seat in held.assignments:
        seats[seat.pod_set, seat.node] += seat.count
    surplus = stands - seats
    all_stand = stands.total() >= seats.total()
    moving = {
        (pod_set, node): count
        for (pod_set, node), count in sorted(surplus.items())
        if (all_stand or node not in held.touched) and snapshot.holders.get(node, held.gang) == held.gang
    }
    after = _taken_along(seats, seats - stands, moving)
    if after == seats:
        return None
    kept = [RecordedReservation(r, 0) for r in snapshot.reservations if r.id != held.id]
    wanted = _around(snapshot, held, after)
    free = (hold for hold in wanted if in_the_way(hold, snapshot.revision, kept) is None)
    return next(free, None)


def _have_seats(pods: Iterable[BoundPod], held: Reservation, pod_set: str) -> bool:
    """Returns whether each of these pods of a PodSet is on a node where the gang has a seat for it."""
    seats = {seat.node: seat.count for seat in held.assignments if seat.pod_set == pod_set}
    for pod in pods:
        count = seats.get(pod.node, 0)
        if not count:
            return False
        seats[pod.node] = count - 1
    return True


def _taken_along(
    seats: Counter[tuple[str, str]], empty: Counter[tuple[str, str]], moving: dict[tuple[str, str], int]
) -> Counter[tuple[str, str]]:
    """Returns the seats after each pod in `moving` took an unused seat of its PodSet along.

    `empty`: the unused seats. Those on the last nodes by name are taken first.
    """
    after, empty = Counter(seats), Counter(empty)
    for (pod_set, node), count in moving.items():
        for key in sorted((key for key in empty if key[0] == pod_set), reverse=True):
            taken = min(count, empty[key])
            count -= taken
            empty[key] -= taken
            after[key] -= taken
            after[pod_set, node] += taken
    return +after


def _around(snapshot: Snapshot, held: Reservation, seats: Counter[tuple[str, str]]) -> list[Reservation]:
    """Returns the reservations that the gang may have with these seats, the preferred one first: whole
    domains as deep as before if it held domains, then only its nodes.
    """
    assignments = tuple(Assignment(pod_set, node, count) for (pod_set, node), count in sorted(seats.items()))
    nodes = frozenset(seat.node for seat in assignments)
    topology = topology_named(snapshot.topologies, held.topology)
    if topology is None:
        return []
    paths = [topology.path(name, snapshot.nodes[name].labels) for name in nodes if name in snapshot.nodes]
    domain = common_domain(paths)
    level = topology.levels[len(domain) - 1] if domain else ""
    used = replace(
        held, domain=domain, level=level, mode="nodes", domains=(), nodes=nodes, assignments=assignments,
        left_nodes=held.left_nodes - nodes,
    )  # fmt: skip
    if held.mode != "domain" or not held.domains:
        return [used]
    domains = _domains(held, paths)
    inner = (name for own in domains for name in _inside(snapshot, topology, own))
    return [replace(used, mode="domain", domains=domains, nodes=frozenset(inner) | nodes), used]


def _domains(held: Reservation, paths: list[Domain]) -> tuple[Domain, ...]:
    """Returns the held domains that still contain a seat, and for each other seat the domain around it at the
    level of the deepest held domain. `paths`: the domain path of each node with seats.
    """
    depth = max(map(len, held.domains))
    used = [own for own in held.domains if any(contains(own, path) for path in paths)]
    outside = (path[:depth] for path in paths if not any(contains(own, path) for own in held.domains))
    return tuple(dict.fromkeys((*used, *sorted(outside))))


def _inside(snapshot: Snapshot, topology: Topology, domain: Domain) -> Collection[str]:
    tree = snapshot.base.trees[topology.name]
    branch = tree.branch(domain)
    return tree.names(branch) if branch is not None else ()
