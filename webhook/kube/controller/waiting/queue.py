"""Decides which waiting gangs get a place in a round, and what the others are told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import NO_HEADROOM
from planner.model.answer import Answer
from planner.planning.reservation import headroom
from webhook.kube.controller.steps import Action, Admit, LetIn, WaitAction
from webhook.kube.state.gathering import Gang
from webhook.placement.fair_order import NO_RULES, QueuePlace, QueueRules, WaitingGang, in_order
from webhook.placement.hold_limits import Limits, no_limits
from webhook.placement.queue import plan_queue
from webhook.placement.replicas.joint import short_of_place

MAX_PLANNED = 64
"""Maximum number of waiting gangs that one round plans, so that it ends within seconds. For the others, only
the position in the queue is reported.
"""


def queue(
    snapshot: Snapshot,
    waiting: Iterable[Gang],
    limits: Limits = no_limits,
    rules: QueueRules = NO_RULES,
    rounds: int = 0,
) -> list[Action]:
    """Returns the actions that admit the gangs for which there is room, and tell all others their positions.

    Gangs with the same `PodGroup.joint` start together: if one of them has no place, none is admitted.
    `rounds`: the number of earlier rounds (`in_turn`).
    """
    ready = {gang.name: gang for gang in waiting}
    places = in_order(snapshot, (WaitingGang(gang.group, gang.created) for gang in ready.values()), rules)
    ordered = [(ready[place.gang.group.name], place) for place in places]
    planned = [gang for gang, _ in in_turn(ordered, rounds)]
    turns, _ = plan_queue(snapshot, (gang.group for gang in planned), limits)
    turn_of = {gang.name: turn for gang, turn in zip(planned, turns, strict=True)}
    short = short_of_place((gang.group, turn_of[gang.name].answer) for gang in planned)
    short |= {gang.group.joint for gang, _ in ordered if gang.name not in turn_of}
    short -= {""}
    admits: list[Action] = []
    still_waiting: list[tuple[Gang, QueuePlace, Answer | None]] = []
    for gang, place in ordered:
        turn = turn_of.get(gang.name)
        if turn is None or (turn.answer.decision == "admitted" and gang.group.joint in short):
            still_waiting.append((gang, place, None))
        elif turn.answer.decision == "admitted":
            taken = turn.reservation
            room = headroom(turn.after, taken) if taken is not None else NO_HEADROOM
            admits.append(Admit(gang, turn.answer, taken, room))
        elif turn.answer.waits_for_nodes and (gated := tuple(pod for pod in gang.pods if pod.gated)):
            admits.append(LetIn(gang, None, gated))  # no autoscaler adds a node for a gated pod
        else:
            still_waiting.append((gang, place, turn.answer))
    waits = (
        WaitAction(gang, position, len(still_waiting), answer, place)
        for position, (gang, place, answer) in enumerate(still_waiting, 1)
    )
    return [*admits, *waits]


Entry = TypeVar("Entry")


def in_turn(ordered: Sequence[Entry], rounds: int) -> Sequence[Entry]:
    """Returns those entries of the queue that are planned in a round, at most `MAX_PLANNED`: the first half
    of them in each round, and of the others some in each round, by turns.

    Those at the head may wait for long, for example for the quota of their namespace. If only they were
    planned, one namespace with many of them would keep all other gangs waiting beside free nodes. Successive
    rounds overlap by half, so that gangs that start together, which are neighbours, are planned together.
    """
    if len(ordered) <= MAX_PLANNED:
        return ordered
    ahead = MAX_PLANNED // 2
    step = ahead // 2
    begin = ahead + rounds * step % (len(ordered) - ahead) // step * step
    return [*ordered[:ahead], *ordered[begin : begin + ahead]]
