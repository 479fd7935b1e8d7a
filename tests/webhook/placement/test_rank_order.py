"""Ranks in the order of the topology."""

from planner.planning.plan import plan
from tests.builders import cluster, gang, pod_set, racks, shape
from webhook.placement.rank_order import ranks, runs


def test_ranks_fill_a_rack_before_the_next():
    """Each rack's ranks are one run, in the natural order of racks and hosts."""
    answer = plan(racks(12, 2), gang(24))
    nodes = ranks(answer, "worker")
    assert nodes == tuple(f"r{rack}-n{host}" for rack in range(1, 13) for host in (1, 2))


def test_ranks_of_one_node_are_neighbours():
    """Two pods a node: ranks 0 and 1, then 2 and 3."""
    nodes = ranks(plan(cluster("r1: b a"), gang(4, gpu=4)), "worker")
    assert nodes == ("a", "a", "b", "b")
    assert runs(nodes) == [(0, 1, "a"), (2, 3, "b")]


def test_each_pod_set_has_ranks_of_its_own():
    """A gang without a placement has none."""
    group = gang(pod_set(1, shape(gpu=8), name="leader"), pod_set(2, shape(gpu=4), name="worker"))
    answer = plan(racks(1, 2), group)
    assert len(ranks(answer, "leader")) == 1
    assert len(ranks(answer, "worker")) == 2
    assert ranks(answer, "other") == ()
    assert ranks(plan(racks(1, 2), gang(3)), "worker") == ()
