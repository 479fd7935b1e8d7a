"""Finds another place for the pods of a gang whose nodes are lost, and moves as few pods as possible. Pure.

The pods on other nodes stay, and the others get seats beside them. So do pods that run on a node that has
become too small, for example because a GPU has failed. Only if that fails is the whole gang planned again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.quantity import show
from planner.model.reservation import Reservation
from planner.model.topology import contains, topology_named
from planner.planning.beside import beside
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.request.created_pods import as_admitted


@dataclass(frozen=True, slots=True)
class Move:
    """A new reservation, and the number of pods that it moves. `gone`: the nodes that the gang leaves, the
    lost ones and others. `to`: the nodes that get additional pods.
    """

    reservation: Reservation
    moved: int
    gone: tuple[str, ...]
    to: tuple[str, ...]


def lost_nodes(snapshot: Snapshot, reservation: Reservation) -> dict[str, str]:
    """Returns the nodes that the gang holds seats on but cannot use any more, each with a short reason.

    A node that has become too small is not lost while a bound pod has each of the gang's seats there: pods
    that run keep their devices, and while a device plugin restarts, a node shows no devices.
    """
    topology = topology_named(snapshot.topologies, reservation.topology)
    result: dict[str, str] = {}
    shrunk = shrunk_nodes(snapshot, reservation)
    for name in sorted({seat.node for seat in reservation.assignments}):
        if reason := unusable(snapshot, name, {}) or shrunk.get(name, ""):
            result[name] = reason
        elif topology is not None and reservation.domains:
            path = topology.path(name, snapshot.nodes[name].labels)
            if not any(contains(domain, path) for domain in reservation.domains):
                result[name] = "relabelled"
    return result


def shrunk_nodes(snapshot: Snapshot, reservation: Reservation) -> dict[str, str]:
    """Returns the nodes that have become too small for the gang's seats there while a seat has no bound pod,
    each with a short reason. The pods that run there may go on.
    """
    reasons = {
        name: reason
        for name, amounts in seat_amounts(reservation).items()
        if (reason := unusable(snapshot, name, amounts)) and not unusable(snapshot, name, {})
    }
    empty = empty_seats(snapshot, reservation) if reasons else {}
    return {name: reason for name, reason in reasons.items() if name in empty}


def empty_seats(snapshot: Snapshot, reservation: Reservation) -> Counter[str]:
    """Returns how many of the gang's seats on each node have no bound pod; only nodes with such seats."""
    seats = Counter[str]()
    for seat, count in snapshot.bound.empty_seats(reservation, terminating_too=False):
        seats[seat.node] += count
    return seats


def seat_amounts(reservation: Reservation) -> dict[str, Mapping[str, int]]:
    """Returns what the pods on the seats of each node request together, in base units."""
    per_pod, result = dict(reservation.requests), dict[str, Mapping[str, int]]()
    for seat in reservation.assignments:
        amounts, others = per_pod.get(seat.pod_set, {}), result.get(seat.node)
        if seat.count > 1:
            amounts = {name: amount * seat.count for name, amount in amounts.items()}
        result[seat.node] = Counter(amounts) + Counter(others) if others else amounts
    return result


def unusable(snapshot: Snapshot, name: str, amounts: Mapping[str, int]) -> str:
    """Returns why pods of a gang that together request these amounts cannot be on a node; "" if they can.

    A node becomes too small if one of its GPUs fails: the kubelet lowers its allocatable amount.
    """
    node = snapshot.nodes.get(name)
    if node is None:
        return "gone"
    if not node.ready:
        return "not ready"
    if node.cordoned:
        return "cordoned"
    for resource, amount in amounts.items():
        offered = node.allocatable.get(resource, amount) + node.pending.get(resource, 0)
        if offered < amount:
            return f"has {show(resource, offered)} of {show(resource, amount)} {resource}"
    return ""


def replan(
    snapshot: Snapshot,
    group: PodGroup,
    held: Reservation,
    lost: Iterable[str],
    keeping: PodGroup | None = None,
    crowded: Collection[str] = (),
) -> Move | Answer:
    """Returns the move to another place, or the planner's answer if there is none.

    `lost`: the nodes that the gang has to leave. `keeping`: the gang with the requirements of the pods that
    stay, if these differ from those of the pods that move (which may need nodes of another flavor).
    `crowded`: those of the lost nodes that only lack room, so that bound pods of the gang go on there.
    """
    remaining = snapshot.ended(held.gang)  # the pods that stay are added below, so that they count once
    pods = snapshot.bound.of_gang(held.gang, held.id) if crowded else ()
    running = seated(snapshot, group, (pod for pod in pods if pod.node in crowded))
    gone = frozenset(lost)
    kept = [
        replace(seat, count=min(seat.count, running[seat.pod_set, seat.node])) if seat.node in gone else seat
        for seat in held.assignments
    ]
    stays = tuple(seat for seat in kept if seat.count)
    moving = Counter({pod_set.name: 0 for pod_set in group.pod_sets})
    for seat, stayed in zip(held.assignments, kept, strict=True):
        moving[seat.pod_set] += seat.count - stayed.count
    if stays:
        filled = beside(remaining, group, replace(held, assignments=stays), moving, keeping)
        if filled is not None:
            return _move(snapshot, held, filled, crowded)
    answer = plan(remaining, group)
    fresh = reservation_for(remaining, group, answer)
    if fresh is None:
        return answer
    # The gang goes to another domain: a pod that runs on after the outage of its node stays there alone.
    return _move(snapshot, held, fresh, crowded, leaves_all=_requires_level(group))


def seated(snapshot: Snapshot, group: PodGroup, pods: Iterable[BoundPod]) -> Counter[tuple[str, str]]:
    """Returns how many pods of each PodSet are on each node. A pod counts for the first PodSet with its
    requests, as the API server creates its pods, that still lacks pods.
    """
    result: Counter[tuple[str, str]] = Counter()
    group = as_admitted(snapshot, group)
    left = Counter({pod_set.name: pod_set.count for pod_set in group.pod_sets})
    for pod in sorted(pods, key=lambda pod: pod.name):
        alike = (
            pod_set
            for pod_set in group.pod_sets
            if left[pod_set.name] and pod_set.shape.requests == pod.requests
        )
        if (pod_set := next(alike, None)) is not None:
            left[pod_set.name] -= 1
            result[pod_set.name, pod.node] += 1
    return result


def _requires_level(group: PodGroup) -> bool:
    constraints = (group.constraint, *(pod_set.constraint for pod_set in group.pod_sets))
    return bool(group.within) or any(stated.required or stated.slice_level for stated in constraints)


def _move(
    snapshot: Snapshot,
    held: Reservation,
    fresh: Reservation,
    crowded: Collection[str],
    *,
    leaves_all: bool = False,
) -> Move:
    """Returns the move from `held` to `fresh`. The new reservation keeps the fingerprint of `held`, so that
    the ledger replaces the one by the other in one step.

    `leaves_all`: whether a pod of the gang is not followed back by itself to any node that the gang leaves
    (`follow`); otherwise it is to a node that is `crowded` or not usable now, once it runs there.
    """
    before = Counter(
        {(assignment.pod_set, assignment.node): assignment.count for assignment in held.assignments}
    )
    after = Counter(
        {(assignment.pod_set, assignment.node): assignment.count for assignment in fresh.assignments}
    )
    new = after - before
    nodes = {node for _, node in after}
    gone = {node for _, node in before} - nodes
    left = {
        name
        for name in gone
        if name in snapshot.nodes and (leaves_all or not (name in crowded or unusable(snapshot, name, {})))
    }
    kept = replace(
        fresh, fingerprint=held.fingerprint, created=held.created, expires=held.expires, state=held.state,
        owner_uid=held.owner_uid, left_nodes=(held.left_nodes | left) - nodes,
    )  # fmt: skip
    return Move(kept, sum(new.values()), tuple(sorted(gone)), tuple(sorted({node for _, node in new})))
