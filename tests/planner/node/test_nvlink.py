"""Tests levels inside the node: NVLink domains of some of its GPUs, and NUMA nodes."""

from __future__ import annotations

import pytest

from planner.cluster.build import snapshot
from planner.model.podgroup import Constraint, PodSet
from planner.node.topology_manager import NumaNode, Zone
from planner.planning.plan import plan
from tests.builders import gang, node, pod_set, shape, topology

SIZE = "gpu.topology/nvlink-domain-size"
CLIQUE = "nvidia.com/gpu.clique"


def cluster(*sizes: int, levels: tuple[str, ...] = ("rack",), **labels: str):
    """Nodes of 8 GPUs in one rack with NVLink domains of these sizes; 0 for a node without the label."""
    nodes = [
        node(f"n{place}", labels={"rack": "r", **({SIZE: str(size)} if size else {}), **labels})
        for place, size in enumerate(sizes)
    ]
    return snapshot(nodes, [topology(*levels)])


def pods(count: int, gpus: int, **constraint: str) -> PodSet:
    """This many pods of this many GPUs with their own constraint."""
    return pod_set(count, shape(gpu=gpus), constraint=Constraint(**constraint))


@pytest.mark.parametrize("level", ["gpu.topology/nvlink-domain", "nvlink-domain"])
def test_a_gang_in_one_nvlink_domain_goes_where_one_is_large_enough(level):
    """Eight GPUs: of a node with domains of four, one of eight and one that does not say, the second."""
    answer = plan(cluster(4, 8), gang(pods(2, 4), required=level))
    assert [assignment.node for assignment in answer.assignments] == ["n1"]
    assert plan(cluster(4, 0), gang(pods(2, 4), required=level)).domain == ("r", "n1")


def test_a_domain_that_no_node_has_is_refused_with_the_largest():
    """Eight GPUs where domains have four, and what would work."""
    answer = plan(cluster(4, 2), gang(pods(1, 8), required="gpu.topology/nvlink-domain"))
    assert (answer.decision, answer.reason) == ("rejected", "TooLargeForLevel")
    assert "both nodes have an NVLink domain inside the node of fewer than 8 GPUs" in answer.message
    assert (
        "The largest such domain has 4 GPUs. Would work: required at kubernetes.io/hostname."
        in answer.message
    )


def test_each_pod_set_may_have_its_own_domain():
    """Two sets of four GPUs share a node whose domains have four."""
    level = "gpu.topology/nvlink-domain"
    sets = [pod_set(1, shape(gpu=4), name=name, constraint=Constraint(required=level)) for name in ("a", "b")]
    answer = plan(cluster(4), gang(*sets, required="host"))
    assert (answer.decision, answer.domain) == ("admitted", ("r", "n0"))
    assert plan(cluster(4), gang(*sets, required=level)).decision == "rejected"


def test_pod_sets_with_domains_of_their_own_are_packed_into_them():
    """Three and three and two GPUs are eight, but two domains of four hold only two such sets."""
    level = "gpu.topology/nvlink-domain"

    def sets(*sizes: int) -> list[PodSet]:
        return [
            pod_set(size, shape(gpu=1), name=f"of-{place}", constraint=Constraint(required=level))
            for place, size in enumerate(sizes)
        ]

    assert plan(cluster(4), gang(*sets(3, 3, 2))).decision == "rejected"
    assert plan(cluster(4), gang(*sets(3, 3))).decision == "admitted"
    assert plan(cluster(4), gang(*sets(3, 3), pod_set(2, shape(gpu=1), name="loose"))).decision == "admitted"
    assert plan(cluster(4, 4), gang(*sets(3, 3, 2))).decision == "admitted"


def test_the_short_word_means_the_multi_node_domain_where_there_is_one():
    """Twelve GPUs in one clique of two nodes, whatever lies inside them."""
    moment = cluster(4, 4, levels=("rack", CLIQUE), **{CLIQUE: "c0de.1"})
    answer = plan(moment, gang(pods(3, 4), required="nvlink-domain"))
    assert (answer.decision, answer.level) == ("admitted", CLIQUE)


def test_a_preferred_domain_inside_the_host_keeps_nobody_away():
    """It is tried as the host, then each coarser level."""
    answer = plan(cluster(4, 4), gang(pods(2, 8), preferred="gpu.topology/nvlink-domain"))
    assert (answer.decision, answer.domain) == ("admitted", ("r",))


@pytest.mark.parametrize("level", ["numa", "numa-node"])
def test_a_numa_node_is_asked_for_where_its_size_is_known(level):
    """By the node's own object, or by the administrator's label; other nodes are left out."""
    half = {"nvidia.com/gpu": 4}
    zones = tuple(Zone(f"node-{n}", half, half) for n in (0, 1))
    nodes = [
        node("published", labels={"rack": "r"}),
        node("labelled", labels={"rack": "r", "bayplan.dev/gpus-per-numa-node": "2"}),
        node("silent", labels={"rack": "r"}),
    ]
    numa = {"published": NumaNode("published", "none", "container", zones)}
    moment = snapshot(nodes, [topology("rack")], numa=numa)
    assert {assignment.node for assignment in plan(moment, gang(pods(2, 2), required=level)).assignments} == {
        "published"
    }
    answer = plan(moment, gang(pods(2, 4), required=level))
    assert answer.reason == "TooLargeForLevel"
    assert "all 3 nodes have no NUMA node known with 8 GPUs" in answer.message
    assert (
        "The largest such domain has 4 GPUs. Would work: 1 pod, or required at kubernetes.io/hostname."
        in answer.message
    )
