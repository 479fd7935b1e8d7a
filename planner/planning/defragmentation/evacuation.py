"""Another place for each of some movables, outside the nodes that are to become free.

Every place is free while its movable still runs: it is planned and reserved before a pod is evicted, so no
move waits for another, and a stop between two moves leaves nobody without a place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.planning.defragmentation.joint_plan import together
from planner.planning.defragmentation.movable import Movable, Relocation
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for


@dataclass(frozen=True, slots=True)
class WithoutPlace:
    """A movable that has no other place, and the planner's answer."""

    movable: Movable
    answer: Answer


def evacuate(
    snapshot: Snapshot, movables: Iterable[Movable], closed: Collection[str]
) -> list[Relocation] | WithoutPlace:
    """A place for each outside the `closed` nodes, or the first that has none.

    The largest first: small pods fit beside them. Where one of these takes what a later one needs, all of
    them are planned as if they were one gang, which tries every way.
    """
    around = shut(snapshot, closed)
    ordered = largest_first(movables)
    moves = _in_turn(around, ordered)
    if isinstance(moves, WithoutPlace) and len(ordered) > 1:
        answers = together(around, ordered)
        seats = [_move(around, movable, answer) for movable, answer in zip(ordered, answers, strict=False)]
        return [move for move in seats if isinstance(move, Relocation)] or moves
    return moves


def _in_turn(around: Snapshot, movables: Iterable[Movable]) -> list[Relocation] | WithoutPlace:
    """One after the other; what each gets is taken for those after it."""
    moves = []
    for movable in movables:
        move = _move(around, movable)
        if isinstance(move, WithoutPlace):
            return move
        around = around.with_reservation(move.reservation)
        moves.append(move)
    return moves


def _move(around: Snapshot, movable: Movable, answer: Answer | None = None) -> Relocation | WithoutPlace:
    """The place that a movable gets, by `answer` where there is one, in a cluster whose nodes to free are
    shut; its pods still run there."""
    group = movable.group
    if group.reserve == "none":  # what it uses must be counted, though it is not written into the ledger
        group = replace(group, reserve="nodes")
    left = around.without(group.name)
    answer = answer or plan(left, group)
    reservation = reservation_for(left, group, answer)
    return WithoutPlace(movable, answer) if reservation is None else Relocation(movable, reservation)


def shut(snapshot: Snapshot, nodes: Collection[str]) -> Snapshot:
    """The cluster in which nobody is placed on these nodes: cordoned."""
    for name in sorted(nodes):
        snapshot = snapshot.with_node(replace(snapshot.nodes[name], cordoned=True))
    return snapshot


def left_behind(snapshot: Snapshot, movables: Iterable[Movable]) -> Snapshot:
    """The cluster once these movables are gone, and before any has come anywhere else."""
    for movable in movables:
        snapshot = snapshot.without(movable.name)
        for pod in movable.pods:
            snapshot = snapshot.without_pod(pod)
    return snapshot


def moved(snapshot: Snapshot, moves: Iterable[Relocation]) -> Snapshot:
    """The cluster after the moves. Who holds nothing now holds nothing then: its pods are on nodes."""
    moves = list(moves)
    after = left_behind(snapshot, (move.movable for move in moves))
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
    """By GPUs, then by those of the largest pod, then by pods; the same order whatever came in."""
    return sorted(movables, key=lambda movable: (*_size(movable), movable.name))


def _size(movable: Movable) -> tuple[int, int, int]:
    group = movable.group
    largest = max((pod_set.shape.gpus for pod_set in group.pod_sets), default=0)
    return (-group.gpus, -largest, -group.size)
