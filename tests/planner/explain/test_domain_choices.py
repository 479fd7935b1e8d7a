"""A refusal names pods that select different domains of the level that their gang requires."""

import pytest

from planner.model.labels import Requirement
from planner.planning.plan import plan
from tests.builders import gang, pod_set, racks, shape


def answer(first, second, level="rack"):
    """The answer for one pod each, in two blocks of two racks."""
    sets = (pod_set(1, first, name="a"), pod_set(1, second, name="b"))
    return plan(racks(4, 2, block=2), gang(*sets, required=level))


def selecting(**labels):
    """A pod with a node selector."""
    return shape(gpu=8, selector=labels)


def choosing(*terms):
    """A pod whose required node affinity has these terms, each of racks."""
    return shape(gpu=8, affinity=tuple((Requirement("rack", "In", tuple(term)),) for term in terms))


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (selecting(rack="r2"), "rack=r2"),
        (choosing(["r2"]), "rack=r2"),
        (choosing(["r2", "r3"]), "rack=r2 or r3"),
        (choosing(["r2"], ["r3"]), "rack=r2 or r3"),
    ],
)
def test_both_are_named_with_their_selectors(second, words):
    """Each by itself has a place."""
    refused = answer(selecting(rack="r1"), second)
    assert refused.reason == "TooLargeForLevel"
    assert f"No rack has nodes for both: a selects rack=r1, b selects {words}." in refused.message


def test_different_blocks_have_no_rack_in_common():
    """Though no rack is selected."""
    message = answer(selecting(block="b1"), selecting(block="b2")).message
    assert "No rack has nodes for both: a selects block=b1, b selects block=b2." in message


@pytest.mark.parametrize(
    ("first", "second"),
    [(choosing(["r1", "r2"]), choosing(["r2", "r3"])), (selecting(rack="r1"), shape(gpu=8))],
)
def test_pods_with_a_rack_in_common_are_placed(first, second):
    """The one of both, or of the one that selects a rack."""
    assert answer(first, second).decision == "admitted"


def test_different_racks_of_the_required_block_are_no_contradiction():
    """The block has both."""
    assert answer(selecting(rack="r1"), selecting(rack="r2"), "block").decision == "admitted"


def test_a_term_without_the_level_allows_every_rack():
    """Terms are ORed."""
    free = shape(gpu=16, affinity=((Requirement("rack", "In", ("r1",)),), (Requirement("gpu", "Exists"),)))
    assert "No rack has nodes" not in answer(free, selecting(rack="r2")).message
