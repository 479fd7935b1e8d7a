"""Tests how full and how fragmented leaves are."""

from planner.cluster.build import snapshot
from planner.leafspine.usage import domain_uses
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, node, racks


def uses(moment):
    return {"/".join(use.path): use for use in domain_uses(moment)}


def test_fragmentation_is_the_share_of_nodes_that_are_partly_used():
    """Of four nodes one is full, one is partly used, two are empty."""
    use = uses(cluster("r1: a used=8\nr1: b used=3\nr1: c d"))["r1"]
    assert use.fragmentation == 1 / 4
    assert use.allocation == use.utilization == 11 / 32


def test_what_a_gang_holds_whole_is_utilized_but_not_allocated():
    """Two nodes' pods in a rack of four that is held whole."""
    moment, group = racks(1, 4), gang(2)
    moment = moment.with_reservation(reservation_for(moment, group, plan(moment, group)))
    use = uses(moment)["r1"]
    assert (use.allocation, use.utilization, use.fragmentation) == (0.5, 1.0, 0.0)


def test_leaves_are_told_by_their_whole_path():
    """Racks of one name in two blocks are two."""
    moment = cluster("b1/r1: a used=8\nb2/r1: b", levels=("block", "rack"))
    assert {path: use.allocation for path, use in uses(moment).items()} == {"b1/r1": 1.0, "b2/r1": 0.0}


def test_a_cluster_of_hosts_only_has_no_leaf():
    """Nothing is counted where no level lies above the host."""
    assert uses(snapshot([node("a")])) == {}
