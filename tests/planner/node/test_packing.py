"""What one node holds of several pod classes: amounts beyond what the pods can use make no difference."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import PodSet
from planner.model.resolved import resolved_group
from planner.model.topology import HOSTNAME, Topology
from planner.node.packing import host_fit
from planner.planning.plan import plan
from planner.request.topology_request import topology_request
from tests.builders import amounts, gang, node, shape, topology

AMOUNTS = st.tuples(st.integers(0, 4), st.integers(1, 9))
NODES = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 64)), min_size=1, max_size=6)


@given(st.lists(st.tuples(st.integers(1, 4), AMOUNTS), min_size=2, max_size=3), NODES)
def test_nodes_hold_the_maximal_counts_of_all_that_fit(wanted, offers):
    """By trying every count, on nodes that are asked one after another and share what was found."""
    sets = [PodSet(f"s{n}", count, shape(gpu=gpu, cpu=cpu)) for n, (count, (gpu, cpu)) in enumerate(wanted)]
    nodes = [node(f"n{place}", gpu=gpu, cpu=cpu) for place, (gpu, cpu) in enumerate(offers)]
    moment = snapshot(nodes, [Topology("topo", (HOSTNAME,))])
    tree = moment.base.trees["topo"]
    kinds = topology_request(resolved_group(gang(*sets)), tree.topology).pod_classes
    if len(kinds) == 1:
        return
    fit = host_fit(kinds, 0)
    for child in moment.capacity(tree).children:
        fitting = [
            counts
            for counts in product(*(range(kind.count + 1) for kind in kinds))
            if any(counts) and _fits(counts, kinds, child.amounts)
        ]
        maximal = {
            counts
            for counts in fitting
            if not any(other != counts and all(map(int.__ge__, other, counts)) for other in fitting)
        }
        assert set(fit.best(child, (True,) * len(kinds))) == maximal


def test_a_node_that_lost_a_gpu_in_use_still_takes_pods_without_gpus():
    """A device plugin offers fewer GPUs once some fail: then more are in use than there are."""
    sets = [PodSet("worker", 1, shape(gpu=1, cpu=1)), PodSet("launcher", 1, shape(gpu=0, cpu=2))]
    failed = node("failed", gpu=7, cpu=4)
    busy = BoundPod("team/busy", "failed", amounts(gpu=8, cpu=2, pods=1))
    answer = plan(snapshot([failed, node("good", gpu=1, cpu=1)], [topology()], [busy]), gang(*sets))
    assert [(a.pod_set, a.node) for a in answer.assignments] == [("worker", "good"), ("launcher", "failed")]


def _fits(counts, kinds, free):
    """Whether so many pods of each class take no more of any resource than there is."""
    names = {name for kind in kinds for name in kind.shape.requests}
    return all(
        sum(n * kind.shape.requests.get(name, 0) for n, kind in zip(counts, kinds, strict=True))
        <= free.get(name, 0)
        for name in names
    )
