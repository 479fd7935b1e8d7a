"""Tests the prediction of the Topology Manager's decision from a NodeResourceTopology."""

from __future__ import annotations

import pytest

from planner.manifests.cluster import read
from planner.manifests.numa import numa_from
from planner.model.errors import InputError, Where
from planner.model.pod import ContainerRequest
from planner.node.topology_manager import NumaNode, Zone, draw, fewest, misfit
from webhook.variables.cluster import cluster_variable

GPU = "nvidia.com/gpu"


def topology(policy="single-numa-node", scope="container", **changes):
    """A node like a DGX: two zones of 4 GPUs and 56 CPUs each; `changes` replaces fields."""
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [
                {"name": "cpu", "capacity": "56", "allocatable": "55", "available": "55"},
                {"name": "memory", "capacity": "512Gi", "allocatable": "500Gi", "available": "500Gi"},
                {"name": GPU, "capacity": "4", "allocatable": "4", "available": "4"},
            ],
        }
        for number in (0, 1)
    ]
    attributes = [
        {"name": "topologyManagerPolicy", "value": policy},
        {"name": "topologyManagerScope", "value": scope},
    ]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "dgx-1"},
        "attributes": attributes,
        "zones": zones,
        **changes,
    }


def node(policy="single-numa-node", scope="container", **changes) -> NumaNode:
    """The zones that are read from that node."""
    return numa_from(topology(policy, scope, **changes), Where())


def ask(gpus=0, cpu=0, memory=0, name="main", stays=True):
    """A request of this many GPUs, cores and Gi."""
    return ContainerRequest(
        name, {GPU: gpus, "cpu": cpu * 1000, "memory": memory * 2**30, "rdma/ib": gpus}, stays
    )


def test_what_one_zone_gives_is_admitted():
    """Four GPUs and half the cores; a device that no zone lists is nobody's affair."""
    assert misfit(node(), [ask(4, 55, 500)], occupied=True) is None


def test_eight_gpus_over_two_zones_fail_single_numa_node_and_pass_restricted():
    """Restricted looks at the fewest zones by capacity, which are two here, for cores as well."""
    wanted = [ask(8, 110, 1000)]
    refusal = misfit(node(), wanted, occupied=True)
    assert refusal is not None
    assert refusal.zones == {GPU: 2, "cpu": 2, "memory": 2}
    assert misfit(node("restricted"), wanted, occupied=True) is None


def test_restricted_wants_one_set_of_zones_for_every_resource():
    """Eight GPUs take two zones and eight cores one, so no set is preferred for both."""
    refusal = misfit(node("restricted"), [ask(8, 8)], occupied=True)
    assert refusal is not None
    assert refusal.zones == {GPU: 2, "cpu": 1}


@pytest.mark.parametrize(
    ("gpus", "refused"),
    [((5, 4), ""), ((5, 3, 3), "2"), ((3, 3, 5), "")],
    ids=["two", "three", "other order"],
)
def test_of_zone_sets_the_one_with_the_smaller_bit_mask_is_chosen(gpus, refused):
    """Five GPUs of 1, 3, 3 and 4 come from zones 1 and 2 (0b0110), not from 0 and 3 (0b1001): one is left."""
    zones = tuple(Zone(f"node-{n}", {GPU: 4}, {GPU: free}) for n, free in enumerate((1, 3, 3, 4)))
    wanted = [ask(each, name=str(place)) for place, each in enumerate(gpus)]
    refusal = misfit(NumaNode("n", "restricted", "container", zones), wanted, occupied=True)
    assert (refusal.request.name if refusal else "") == refused


@pytest.mark.parametrize(
    ("resource", "before", "amount", "after"),
    [
        ("cpu", (3, 4), 5, (2, 0)),
        ("cpu", (3, 2), 4, (1, 0)),
        ("cpu", (3, 3), 4, (0, 2)),
        ("cpu", (4, 4), 3, (1, 4)),
        ("memory", (3, 2), 4, (0, 1)),
    ],
    ids=[
        "a whole zone",
        "the fewest free",
        "the lowest number",
        "no whole zone",
        "memory: the lowest number",
    ],
)
def test_an_amount_of_several_zones_is_taken_from_them_in_turn(resource, before, amount, after):
    """Of two zones of four: which of them it is taken from first, and what is left in each."""
    free = [{resource: left} for left in before]
    draw([{resource: 4}, {resource: 4}], free, (0, 1), {resource: amount})
    assert free == [{resource: left} for left in after]


@pytest.mark.parametrize("policy", ["none", "best-effort", "", "no such policy"])
def test_other_policies_admit_everything(policy):
    """They only state a preference."""
    assert misfit(node(policy), [ask(8, 8)], occupied=True) is None


def test_containers_take_from_their_zones_in_turn():
    """Three containers of three GPUs: the third finds one left in each zone."""
    wanted = [ask(3, name="a"), ask(3, name="b"), ask(2, name="c")]
    refusal = misfit(node(), wanted, occupied=True)
    assert refusal is not None
    assert refusal.request.name == "c"
    assert misfit(node(), [ask(2, name="a"), ask(2, name="b"), ask(4, name="c")], occupied=True) is None


def test_an_init_container_gives_back_what_it_took():
    """It has ended when the next one starts."""
    assert misfit(node(), [ask(4, stays=False), ask(4), ask(4)], occupied=True) is None


def test_now_counts_what_is_available_and_empty_what_is_allocatable():
    """Two GPUs in use in each zone leave two."""
    busy = topology()
    for zone in busy["zones"]:
        zone["resources"][2]["available"] = "2"
    wanted = [ask(4)]
    assert misfit(numa_from(busy, Where()), wanted, occupied=True) is not None
    assert misfit(numa_from(busy, Where()), wanted, occupied=False) is None


def test_more_than_all_zones_have_is_zero_zones():
    """No set of zones gives it."""
    assert fewest(node(), GPU, 9) == 0


def test_a_refusal_has_the_amounts_of_the_zone_that_comes_closest():
    """Of 6 GPUs and 4 CPUs, or 1 GPU and 12 CPUs, the first has a larger part of the scarcer resource."""
    uneven = topology(scope="pod")
    for zone, gpus, cpus in zip(uneven["zones"], ("6", "1"), ("4", "12"), strict=True):
        zone["resources"] = [{"name": GPU, "capacity": gpus}, {"name": "cpu", "capacity": cpus}]
    refusal = misfit(numa_from(uneven, Where()), [ask(5, 13)], occupied=False)
    assert refusal is not None
    assert refusal.closest == {GPU: 6, "cpu": 4_000}
    refusal = misfit(numa_from(uneven, Where()), [ask(2, 10)], occupied=False)
    assert refusal is not None
    assert refusal.closest == {GPU: 1, "cpu": 12_000}


@pytest.mark.parametrize(
    ("old", "policy", "scope"),
    [
        ("SingleNUMANodePodLevel", "single-numa-node", "pod"),
        ("SingleNUMANode", "single-numa-node", "container"),
        ("RestrictedPodLevel", "restricted", "pod"),
        ("BestEffort", "none", "container"),
    ],
)
def test_the_deprecated_field_is_read_where_there_are_no_attributes(old, policy, scope):
    """Attributes win where both are there."""
    numa_node = node(attributes=None, topologyPolicies=[old])
    assert (numa_node.policy, numa_node.scope) == (policy, scope)
    assert node(topologyPolicies=[old]).policy == "single-numa-node"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"zones": "all"}, "expected a list"),
        ({"zones": [{"type": "Node", "name": 3}]}, "expected a string"),
        ({"zones": [{"type": "Node", "resources": [{"name": "cpu", "capacity": "lots"}]}]}, "no quantity"),
        ({"attributes": [{"name": "topologyManagerPolicy", "value": 3}]}, "put it in quotes"),
        ({"zones": [{"type": "Node", "name": f"node-{n}"} for n in range(9)]}, "9 NUMA zones"),
    ],
)
def test_a_malformed_topology_is_refused_by_field(change, message):
    """In words, with the field."""
    with pytest.raises(InputError, match=message):
        node(**change)


def test_zones_are_counted_in_the_order_of_their_numbers():
    """node-10 comes after node-2, as the kubelet counts."""
    names = ["node-1", "node-3", "node-2"]
    assert [zone.name for zone in node(zones=[{"type": "Node", "name": n} for n in names]).zones] == sorted(
        names
    )


def test_a_cluster_file_brings_its_topologies():
    """They are facts for policies; nodes without one count as unaligned."""
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": n}} for n in ("dgx-1", "cpu-1")]
    facts = cluster_variable(read([("cluster.yaml", [*nodes, topology()])]))
    assert [(entry["node"], entry["policy"], len(entry["zones"])) for entry in facts["numa"]] == [
        ("cpu-1", "none", 0),
        ("dgx-1", "single-numa-node", 2),
    ]
    assert cluster_variable(read([("cluster.yaml", nodes)]))["numa"] == []
