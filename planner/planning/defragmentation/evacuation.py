"""Finds a new place for each movable of a set, outside the nodes that are to become free.

Each new place is planned and reserved before a pod is evicted, while its movable still runs. So no move waits
for another, and an interruption between two moves leaves no gang without a place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.planning.defragmentation.joint_plan import Plan, plan_jointly
from planner.planning.defragmentation.movable import Movable, Relocation
from planner.planning.reservation import reservation_for


@dataclass(frozen=True, slots=True)
class WithoutPlace:
    """A movable for which no other place was found, and the planner's answer, which says why."""

    movable: Movable
    answer: Answer


def evacuate(
    snapshot: Snapshot, movables: Iterable[Movable], closed: Collection[str], plan: Plan
) -> list[Relocation] | WithoutPlace:
    """Returns a new place outside the `closed` nodes for each movable, or the first movable without one.

    The largest movables are placed first, because small pods fit beside them. If a movable then has no place,
    all of them are planned as one gang, which tries every combination.
    """
    shut_snapshot = with_cordoned(snapshot, closed)
    ordered = largest_first(movables)
    moves = _one_by_one(shut_snapshot, ordered, plan)
    if isinstance(moves, WithoutPlace) and len(ordered) > 1:
        # `answers` is empty if there is no joint plan; then the failure in `moves` is returned.
        answers = plan_jointly(shut_snapshot, ordered, plan)
        seats = [
            _move(movable, *_planning_input(shut_snapshot, movable), answer)
            for movable, answer in zip(ordered, answers, strict=False)
        ]
        return [move for move in seats if isinstance(move, Relocation)] or moves
    return moves


def _one_by_one(
    snapshot: Snapshot, movables: Iterable[Movable], plan: Plan
) -> list[Relocation] | WithoutPlace:
    """Returns a new place for each movable, or the first movable without one. The movables are planned one
    after the other; the snapshot for each contains the new reservations of those before it.
    """
    moves = []
    for movable in movables:
        left, group = _planning_input(snapshot, movable)
        move = _move(movable, left, group, plan(left, group))
        if isinstance(move, WithoutPlace):
            return move
        snapshot = snapshot.with_reservation(move.reservation)
        moves.append(move)
    return moves


def _move(movable: Movable, left: Snapshot, group: PodGroup, answer: Answer) -> Relocation | WithoutPlace:
    """Returns the new place that the answer gives the movable, or `WithoutPlace` with the answer. `left`,
    `group`: see `_planning_input`.
    """
    reservation = reservation_for(left, group, answer)
    return WithoutPlace(movable, answer) if reservation is None else Relocation(movable, reservation)


def _planning_input(snapshot: Snapshot, movable: Movable) -> tuple[Snapshot, PodGroup]:
    """Returns the cluster without the movable's reservation but with its pods, and the gang to plan there.
    The gang's reserve mode is `nodes` in place of `none`, so that later plans count its new place.
    """
    group = movable.group
    if group.reserve == "none":  # the next plans must count its new place, which the ledger will not contain
        group = replace(group, reserve="nodes")
    return snapshot.without(group.name), group


def with_cordoned(snapshot: Snapshot, nodes: Collection[str]) -> Snapshot:
    """Returns the cluster with these nodes cordoned, so that nothing is placed on them."""
    for name in sorted(nodes):
        snapshot = snapshot.with_node(replace(snapshot.nodes[name], cordoned=True))
    return snapshot


def without_movables(snapshot: Snapshot, movables: Iterable[Movable]) -> Snapshot:
    """Returns the cluster without these movables: neither their pods nor their reservations."""
    for movable in movables:
        snapshot = snapshot.without(movable.name)
        for pod in movable.pods:
            snapshot = snapshot.without_pod(pod)
    return snapshot


def moved(snapshot: Snapshot, moves: Iterable[Relocation]) -> Snapshot:
    """Returns the cluster after the moves.

    A gang that has a reservation gets its new reservation, without its pods. The pods of any other movable
    are on their new nodes, without a reservation.
    """
    moves = list(moves)
    after = without_movables(snapshot, (move.movable for move in moves))
    for move in moves:
        if snapshot.holding(move.movable.name) is not None:
            after = after.with_reservation(move.reservation)
            continue
        for pod, node in zip(move.movable.pods, _seats(move), strict=False):
            after = after.with_pod(replace(pod, node=node, reservation=""))
    return after


def _seats(move: Relocation) -> Iterator[str]:
    for assignment in move.to:
        for _ in range(assignment.count):
            yield assignment.node


def largest_first(movables: Iterable[Movable]) -> list[Movable]:
    """Returns the movables in descending order of their GPUs, the GPUs of their largest pod, and their number
    of pods; then by name, so that the order of the input does not matter.
    """
    return sorted(movables, key=lambda movable: (*_size(movable), movable.name))


def _size(movable: Movable) -> tuple[int, int, int]:
    group = movable.group
    largest = max((pod_set.shape.gpus for pod_set in group.pod_sets), default=0)
    return (-group.gpus, -largest, -group.size)
