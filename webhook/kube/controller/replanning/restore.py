"""Restores the reservation of a gang after somebody has deleted it: the same place, or the nearest. Pure.

Bound pods stay where they are; the others are placed beside them, as after a lost node. A gang without bound
pods is planned where its templates pin it, or anywhere if that fails.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import RecordedReservation, in_the_way
from planner.model.answer import Answer
from planner.model.pod import BoundPod
from planner.model.podgroup import Assignment, PodGroup
from planner.model.reservation import Reservation, reservation_id
from planner.model.topology import common_domain, topology_named
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from webhook.kube.controller.replanning.replan import Move, replan, seated


def restored(snapshot: Snapshot, pinned: PodGroup, freed: PodGroup) -> Reservation | Answer:
    """Returns a new reservation for the gang, or the planner's answer if there is no place for it.

    `pinned`: the gang as in its templates. `freed`: the gang without the node affinity that its plan wrote
    there.
    """
    pods = list(snapshot.bound.of_gang(pinned.name, reservation_id(pinned.name)))
    remaining = snapshot
    for pod in pods:
        remaining = remaining.without_pod(pod)
    for group in (pinned, freed):
        outcome = _beside(remaining, group, pods) if pods else _anew(remaining, group)
        if isinstance(outcome, Reservation):
            break
    return outcome


def _anew(remaining: Snapshot, group: PodGroup) -> Reservation | Answer:
    answer = plan(remaining, group)
    return reservation_for(remaining, group, answer) or answer


def _beside(remaining: Snapshot, group: PodGroup, pods: list[BoundPod]) -> Reservation | Answer:
    """Returns a reservation of the nodes of the gang's bound pods, with seats for its other pods; the
    planner's answer if that would break a constraint or take capacity that others hold.
    """
    answer = plan(remaining, group)
    like = reservation_for(remaining, group, answer)
    if like is None:
        return answer
    bound_counts = seated(remaining, group, pods)
    if not bound_counts:
        return like
    held = _around(remaining, group, like, bound_counts)
    if held is None:
        return answer
    kept = [RecordedReservation(reservation, 0) for reservation in remaining.reservations]
    # If another gang has come into the domain, only the nodes of the pods are held.
    used = replace(held, mode="nodes", domains=(), nodes=frozenset(a.node for a in held.assignments))
    for wanted in (held, used):
        if in_the_way(wanted, remaining.revision, kept) is None:
            return wanted
    return answer


def _around(
    remaining: Snapshot, group: PodGroup, like: Reservation, bound_counts: Counter[tuple[str, str]]
) -> Reservation | None:
    """Returns a reservation of the bound pods' nodes, with seats beside them for the other pods; None if
    there is no room, or a node or the topology does not exist.

    `like`: a reservation of the gang somewhere; its mode and requests are copied. `bound_counts`: the number
    of bound pods by PodSet and node.
    """
    topology = topology_named(remaining.topologies, like.topology)
    if topology is None or not all(node in remaining.nodes for _, node in bound_counts):
        return None
    paths = [topology.path(node, remaining.nodes[node].labels) for _, node in bound_counts]
    bound_by_pod_set = Counter(name for name, _ in bound_counts.elements())
    absent = tuple(
        Assignment(pod_set.name, "", pod_set.count - bound_by_pod_set[pod_set.name])
        for pod_set in group.pod_sets
        if pod_set.count > bound_by_pod_set[pod_set.name]
    )
    # If pods are absent, the domain is no finer than one that can be reserved whole: `replan` looks for room
    # there first.
    reserved = topology.reservable_index + 1
    domain = common_domain(paths)[:reserved] if absent else common_domain(paths)
    level = topology.levels[len(domain) - 1] if domain else ""
    whole = (domain,) if len(domain) >= reserved else tuple(dict.fromkeys(p[:reserved] for p in paths))
    seats = tuple(Assignment(name, node, count) for (name, node), count in bound_counts.items())
    held = replace(
        like,
        fingerprint=fingerprint(group),
        domain=domain,
        level=level,
        domains=whole if like.mode == "domain" else (),
        assignments=(*seats, *absent),
    )
    if not absent:
        tree = remaining.base.trees[topology.name]
        inner = (name for domain in held.domains if (b := tree.branch(domain)) for name in tree.names(b))
        return replace(held, nodes=frozenset(inner) | {seat.node for seat in seats})
    move = replan(remaining, group, held, [""])  # the absent seats are on the lost node ""
    return move.reservation if isinstance(move, Move) else None
