"""For which waiting gang others are moved: the first that it helps, and never ahead of earlier ones."""

from __future__ import annotations

from dataclasses import replace

from planner.planning.defragmentation.movable import Movable
from tests.builders import gang
from tests.planner.planning.defragmentation.drawings import lone, occupied
from webhook.placement.moving.queue_moves import QueueMoves, queue_moves

RACKS = """
    r1: a b
    r2: c d
"""
HOUR = 3600.0


def halves(**words) -> list[Movable]:
    """A pod in each rack of two nodes: no rack is whole."""
    return [lone("x", "a", age=60.0, **words), lone("y", "c", age=120.0, **words)]


def waiting(name: str, nodes: int = 2):
    """A gang that waits for so many whole nodes of a rack."""
    return gang(nodes, required="rack", name=f"team/Job/{name}", reserve="nodes")


def chosen(order, overdue, movables=None, max_lost: float = HOUR) -> QueueMoves:
    """What the leader would do for those that are overdue."""
    pods = halves() if movables is None else movables
    return queue_moves(occupied(RACKS, *pods), order, dict.fromkeys(overdue, max_lost), pods)


def test_the_first_that_has_waited_for_long_gets_room_by_the_least_lost_work():
    """The younger of two pods moves."""
    choice = chosen([waiting("big")], ["team/Job/big"])
    assert choice.group is not None
    assert choice.group.name == "team/Job/big"
    assert [move.movable.name for move in choice.moves.moves] == ["team/Pod/x"]


def test_nobody_moves_for_a_gang_that_has_not_waited_for_long():
    """Being first in the queue is not enough."""
    assert chosen([waiting("big")], []) == QueueMoves(None, None, {})


def test_the_room_would_go_to_those_before_it_in_the_queue():
    """Both want a rack, and only one can be freed: the second has waited long, the first would get it."""
    choice = chosen([waiting("first"), waiting("big")], ["team/Job/big"])
    assert choice.group is None
    assert choice.without == {"team/Job/big": "those before it in the queue would get the room"}


def test_where_moves_do_not_help_the_first_the_next_has_its_turn():
    """The first waits for a rack of three nodes, of which two are in use; the next for one of the others."""
    pods = [*halves(), *(lone(f"stays-{node}", node, kept_because="stays") for node in "fg")]
    order = [waiting("wide", 3), waiting("big")]
    overdue = dict.fromkeys((group.name for group in order), HOUR)
    choice = queue_moves(occupied(RACKS + "    r3: e f g\n", *pods), order, overdue, pods)
    assert choice.group is not None
    assert choice.group.name == "team/Job/big"
    assert "team/Pod/stays-f stays" in choice.without["team/Job/wide"]


def test_who_may_not_be_moved_is_named():
    """The gang's message has the reason."""
    choice = chosen(
        [waiting("big")], ["team/Job/big"], halves(kept_because="is protected by PodDisruptionBudget b")
    )
    assert choice.group is None
    assert "team/Pod/x is protected by PodDisruptionBudget b" in choice.without["team/Job/big"]


def test_more_work_than_may_be_lost_keeps_all_where_it_is():
    """A GPU for a minute is more than half a minute."""
    choice = chosen([waiting("big")], ["team/Job/big"], max_lost=30.0)
    assert choice.group is None
    assert "lose too much work" in choice.without["team/Job/big"]


def test_a_gang_that_starts_together_with_others_is_not_moved_for():
    """Its place alone would not start it."""
    choice = chosen([replace(waiting("big"), joint="team/all")], ["team/Job/big"])
    assert choice.group is None
