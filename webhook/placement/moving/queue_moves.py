"""Chooses the queued gang for which other gangs and pods are moved, and the moves. Pure.

Only the leader of the replicas calls it. The queue keeps its order: moves are made for a gang only if the
gang is then admitted at its turn, that is, if no gang before it in the queue takes the room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.planning.defragmentation.gang_place import gang_place
from planner.planning.defragmentation.movable import Movable
from planner.planning.defragmentation.result import Defragmentation, NoMoves
from planner.planning.plan import plan
from webhook.placement.hold_limits import Limits, no_limits
from webhook.placement.queue import plan_queue

ATTEMPTS = 60
"""Maximum number of sets of movables that are planned for one gang. It is limited because the leader must
also plan the queue."""

MOST_TRIED = 4
"""Maximum number of queued gangs for which one call searches moves."""


@dataclass(frozen=True, slots=True)
class QueueMoves:
    """The gang for which others are moved, and the moves; both None if there are no moves for any gang.

    `without`: why there are no moves for the gangs that were tried before, by name.
    """

    group: PodGroup | None
    moves: Defragmentation | None
    without: Mapping[str, str]


def queue_moves(
    snapshot: Snapshot,
    order: Sequence[PodGroup],
    max_lost: Mapping[str, float],
    movables: Iterable[Movable],
    limits: Limits = no_limits,
) -> QueueMoves:
    """Returns the first gang of the queue that waits long enough and has moves, with these moves.

    `order`: the queue. `max_lost`: for the gangs that have waited long enough, by name, the maximum work that
    may be lost for it, in GPU seconds. `limits`: returns how much the gangs of a namespace may hold.
    """
    may_move = tuple(movables)
    without: dict[str, str] = {}
    overdue = [index for index, group in enumerate(order) if group.name in max_lost]
    for index in overdue[:MOST_TRIED]:
        group = order[index]
        moves = gang_place(snapshot, may_move, group, plan, ATTEMPTS, max_lost[group.name], whole_nodes=True)
        if isinstance(moves, NoMoves):
            without[group.name] = moves.message
        elif not moves.moves:
            without[group.name] = "it needs none: it waits for its turn, or for what its namespace may hold"
        elif not _is_let_in(moves, order[: index + 1], limits):
            without[group.name] = "those before it in the queue would get the room"
        else:
            return QueueMoves(group, moves, without)
    return QueueMoves(None, None, without)


def _is_let_in(moves: Defragmentation, order: Sequence[PodGroup], limits: Limits) -> bool:
    """Returns whether, after the moves, the last gang of `order` is admitted when all gangs before it have
    been planned.
    """
    if order[-1].joint:
        return False  # it starts together with others, which wait for places of their own
    turns, _ = plan_queue(moves.after.without(order[-1].name), order, limits)
    return turns[-1].answer.decision == "admitted"
