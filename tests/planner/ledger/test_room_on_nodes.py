"""Gangs that use parts of the same nodes concurrently conflict only if they no longer fit together.

node n1: 8 GPUs. The plan of gang a takes 1 of them on revision 5, and leaves 7.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.ledger.conflicts import Counted, Headroom, NodeRoom, RecordedReservation, in_the_way
from planner.model.answer import Assignment
from planner.model.labels import Requirement
from planner.model.pod import PodTerm
from planner.model.reservation import ReservedPodTraits
from tests.planner.ledger.books import part

GPU = "nvidia.com/gpu"
PLANNED_ON = 5
ROOM: Headroom = {"n1": NodeRoom({GPU: 7, "cpu": 64_000}, {})}


def room(gpus, *, cpu=64_000, **counted) -> Headroom:
    """The free capacity of n1 after a plan, and the GPUs of the gangs that the plan has counted there."""
    uses = {user(gang, taken).id: Counted("f1", {GPU: taken, "cpu": 1000}) for gang, taken in counted.items()}
    return {"n1": NodeRoom({GPU: gpus, "cpu": cpu}, uses)}


def user(gang, gpus, node="n1", cpu=1000):
    """A gang of one pod that uses this many GPUs of a node."""
    return replace(part(gang, node), requests=(("worker", {GPU: gpus, "cpu": cpu}),))


def recorded(*reservations, since=PLANNED_ON + 1):
    """Reservations that were stored after the plan was made."""
    return [RecordedReservation(reservation, since) for reservation in reservations]


def test_what_came_since_and_still_fits_is_not_in_the_way():
    """7 GPUs are left and 7 were taken since."""
    came = recorded(user("b", 2), user("c", 2), user("d", 3))
    assert in_the_way(user("a", 1), PLANNED_ON, came, ROOM) is None


def test_what_came_since_and_no_longer_fits_is_in_the_way():
    """7 GPUs are left and 8 were taken since; the first of the newer gangs by name is told."""
    came = recorded(user("d", 3), user("c", 2), user("b", 3))
    assert in_the_way(user("a", 1), PLANNED_ON, came, ROOM) == "b"


def test_every_resource_counts():
    """The GPUs suffice, the CPU cores do not."""
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(user("b", 1, cpu=65_000)), ROOM) == "b"


def test_a_resource_of_which_the_plan_says_nothing_is_in_the_way():
    """A part of a GPU: whether it fits, amounts alone do not say."""
    shared = replace(user("b", 0), requests=(("worker", {"gpu.share/50": 1}),))
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(shared), ROOM) == "b"


def test_a_node_of_which_the_plan_says_nothing_is_in_the_way():
    """As on nodes with NUMA zones: the gang is planned again."""
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(user("b", 1)), {}) == "b"


def test_a_place_that_others_filled_first_is_not_relied_on():
    """a was proposed where b and c had taken the last GPU: a plan that counts all three leaves less than
    nothing."""
    records = recorded(user("b", 4), user("c", 4), since=PLANNED_ON - 1)
    assert in_the_way(user("a", 1), PLANNED_ON, records, room(-1, b=4, c=4)) == "b"
    assert in_the_way(user("a", 1), PLANNED_ON, records, room(0, b=4, c=3)) == "c"
    assert in_the_way(user("a", 1), PLANNED_ON, records, room(0, b=4, c=4)) is None
    assert in_the_way(user("a", 1), PLANNED_ON, [], room(-1, b=4, c=4)) is None


def test_what_the_plan_has_counted_is_not_counted_twice():
    """The same replica was about to reserve 7 GPUs for b, so the plan of a left nothing, and b came since."""
    full = room(0, cpu=0, b=7)
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(user("b", 7)), full) is None
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(user("b", 8)), full) == "b"


def test_what_the_plan_knew_is_not_in_the_way():
    """It came before the revision, however full the node is."""
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(user("b", 7), since=PLANNED_ON), {}) is None


def test_other_nodes_do_not_matter():
    """The newer gang uses another node."""
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(user("b", 8, node="n2")), {}) is None


def test_pods_that_keep_apart_are_in_the_way():
    """Anti-affinity is not a matter of amounts, whichever of the two has it."""
    apart = PodTerm("kubernetes.io/hostname", ((Requirement("app", "Exists"),),), attracts=False)
    guarded = replace(user("b", 1), traits=(("worker", ReservedPodTraits(terms=(apart,))),))
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(guarded), ROOM) == "b"
    assert in_the_way(replace(guarded, id="a", gang="a"), PLANNED_ON, recorded(user("b", 1)), ROOM) == "b"


def test_another_request_under_a_name_that_was_counted_is_in_the_way_of_pods_that_keep_apart():
    """The plan counted b, which then came with other labels: its amounts fit, its pods may not."""
    apart = PodTerm("kubernetes.io/hostname", ((Requirement("app", "Exists"),),), attracts=False)
    guarded = replace(user("a", 1), traits=(("worker", ReservedPodTraits(terms=(apart,))),))
    assert in_the_way(guarded, PLANNED_ON, recorded(user("b", 1)), room(6, b=1)) is None
    replaced = replace(user("b", 1), fingerprint="f2")
    assert in_the_way(guarded, PLANNED_ON, recorded(replaced), room(6, b=1)) == "b"
    assert in_the_way(user("a", 1), PLANNED_ON, recorded(replaced), room(6, b=1)) is None


@pytest.mark.parametrize("count", [1, 3])
def test_pods_of_a_gang_on_one_node_count_each(count):
    """Three pods of 2 GPUs take 6; with 2 more that is one too many."""
    several = replace(user("b", 2), assignments=(Assignment("worker", "n1", count),))
    came = recorded(several, user("c", 2))
    assert in_the_way(user("a", 1), PLANNED_ON, came, ROOM) == ("b" if count == 3 else None)


def test_an_older_reservation_of_which_the_plan_counted_less_is_in_the_way():
    """An update of b to 1 GPU was in flight when a was planned, and was refused: b still takes 8."""
    planned = room(0, b=1)
    assert in_the_way(user("a", 7), PLANNED_ON, recorded(user("b", 8), since=PLANNED_ON - 1), planned) == "b"
