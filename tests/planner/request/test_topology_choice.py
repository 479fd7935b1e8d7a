"""Tests which topology a request uses, and the limits of the planning of KAI and Kueue."""

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.topologies.label_presets import PRESETS, infer
from planner.model.node import Node
from planner.model.podgroup import Constraint
from planner.model.topology import HOSTNAME, Topology
from planner.planning.node_affinity import requirements
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.request.levels import level_key
from tests.builders import cluster, gang, node, pod_set, racks, shape, topology
from webhook.variables.cluster import cluster_variable

A = Topology("a", ("zone", "rack", HOSTNAME), node_selector={"pool": "a"})
B = Topology("b", ("superpod", "leaf", HOSTNAME), node_selector={"pool": "b"})


def pools() -> Snapshot:
    """Two node pools, each with a topology of its own, and one node of no pool."""
    return snapshot(
        [
            *(node(f"a{i}", labels={"pool": "a", "zone": "z", "rack": f"r{i // 2}"}) for i in range(4)),
            *(node(f"b{i}", labels={"pool": "b", "superpod": "s", "leaf": f"l{i // 2}"}) for i in range(4)),
            node("head", gpu=0),
        ],
        [A, B],
    )


def on(pool: str, count: int, name: str = "worker", **words: int):
    return pod_set(count, shape(selector={"pool": pool}, **(words or {"gpu": 8})), name=name)


def test_a_gang_goes_to_the_pool_whose_topology_has_its_level():
    """The level key alone says which topology is meant."""
    assert plan(pools(), gang(2, required="leaf")).topology == "b"
    assert plan(pools(), gang(2, required="rack")).topology == "a"


def test_levels_of_two_topologies_are_refused_naming_both():
    """A required level of one and a preferred level of the other, whichever systems they come from."""
    answer = plan(pools(), gang(2, required="rack", preferred="leaf"))
    assert (answer.decision, answer.reason) == ("rejected", "MultipleTopologies")
    assert "means a" in answer.message
    assert "level of b" in answer.message


def test_a_gang_is_planned_in_a_topology_that_its_scheduler_reads():
    """Two systems' Topologies over the same nodes: one that the scheduler does not have would name domains
    that it cannot find. Which of them is first by name makes no difference."""
    levels = ("zone", "rack", HOSTNAME)
    kueues = Topology("a", levels, source="kueue.x-k8s.io")
    kais = Topology("z", levels[1:], source="kai.scheduler")
    moment = cluster("z1/r1: a b", ("zone", "rack"), topologies=[kueues, kais])
    asking = gang(2, required="rack")
    assert plan(moment, replace(asking, follows="kai.scheduler")).topology == "z"
    assert plan(moment, replace(asking, follows="kueue.x-k8s.io")).topology == "a"


def test_nodes_that_no_topology_of_its_scheduler_has_stay_open():
    """KAI places pods there without levels; the plan keeps the level by another system's Topology."""
    kais = replace(A, source="kai.scheduler")
    moment = snapshot(pools().nodes.values(), [kais, B])
    assert plan(moment, replace(gang(on("b", 2)), follows="kai.scheduler")).topology == "b"


def test_two_named_topologies_are_refused_naming_the_fields():
    """Head and workers cannot be in two topologies."""
    sets = [
        pod_set(1, name="head", constraint=Constraint(topology="a")),
        pod_set(2, name="workers", constraint=Constraint(topology="b")),
    ]
    origins = (("head's annotation x", "topology", "a"), ("workers' annotation y", "topology", "b"))
    answer = plan(pools(), replace(gang(*sets), origins=origins))
    assert answer.reason == "MultipleTopologies"
    assert "head's annotation x says a and workers' annotation y says b" in answer.message


def test_a_selector_into_another_topology_is_refused():
    """The level is of a, the selector points at the nodes of b: such a gang would hang."""
    answer = plan(pools(), gang(on("b", 2), required="rack"))
    assert answer.reason == "MultipleTopologies"
    assert "means a" in answer.message
    assert "nodes of b" in answer.message


def test_pod_sets_in_two_pools_are_refused_where_a_level_is_asked_for():
    """One gang with a required rack cannot lie in two pools."""
    answer = plan(pools(), gang(on("a", 1, "one"), on("b", 1, "two"), required="rack"))
    assert answer.reason == "MultipleTopologies"


def test_a_head_outside_every_topology_is_placed_with_its_workers():
    """Without a level for the gang, a Ray head may be on a CPU node while its workers share a rack."""
    head = pod_set(1, shape(selector={HOSTNAME: "head"}, cpu=2), name="head")
    workers = pod_set(2, shape(gpu=8), name="worker", constraint=Constraint(required="rack"))
    group = gang(head, workers)
    answer = plan(pools(), group)
    assert answer.decision == "admitted", answer.message
    assert {a.node for a in answer.assignments if a.pod_set == "head"} == {"head"}
    assert {a.node for a in answer.assignments if a.pod_set == "worker"} == {"a0", "a1"}
    reservation = reservation_for(pools(), group, answer)
    assert "head" in reservation.nodes
    assert requirements(pools(), group, answer)["head"][0][-1].values == ("head",)


def test_a_gang_without_any_level_takes_the_topology_that_holds_it_most_closely():
    """Planned in each, the finest domain wins; then the name."""
    assert plan(pools(), gang(2)).domain == ("z", "r0")


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("rack", "cloud.provider.com/topology-rack"),
        ("zone", "topology.kubernetes.io/zone"),
        ("node", HOSTNAME),
        ("host", HOSTNAME),
        ("nvlink-domain", "nvidia.com/gpu.clique"),
        ("cabinet", "cloud.provider.com/topology-rack"),
        ("ack", ""),
        ("row", ""),
    ],
)
def test_short_words_and_aliases_stand_for_a_level(word, key):
    """A word serves where exactly one level's key ends in it, as a word."""
    levels = (
        "topology.kubernetes.io/zone",
        "cloud.provider.com/topology-rack",
        "nvidia.com/gpu.clique",
        HOSTNAME,
    )
    topo = Topology("t", levels, aliases={"cabinet": "cloud.provider.com/topology-rack"})
    assert level_key(topo, word) == key


def test_the_nvlink_domain_is_the_host_where_no_level_spans_hosts():
    """On an HGX machine the NVLink domain ends at the host."""
    assert plan(racks(1, 2), gang(2, gpu=4, required="nvlink-domain")).level == HOSTNAME


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_each_source_of_labels_is_recognised(preset):
    """Levels come in the source's order, coarse to fine, and end at the host."""
    labels = {level: f"v{place}" for place, level in enumerate(preset.levels)}
    assert infer([node("a", labels=labels)]).levels == (*preset.levels, HOSTNAME)


def test_hand_made_keys_serve_where_no_source_does():
    """Keys that end in a word people use for a level."""
    labels = {"example.com/rack": "r", "example.com/block": "b", "topology.kubernetes.io/zone": "z"}
    levels = infer([node("a", labels=labels)]).levels
    assert levels == ("topology.kubernetes.io/zone", "example.com/block", "example.com/rack", HOSTNAME)


# Where others fall short ------------------------------------------------------------


def test_a_node_without_a_finer_label_still_serves_a_coarser_level():
    """KAI drops it; here it is in its zone, though in no rack."""
    moment = snapshot(
        [node("a", labels={"zone": "z", "rack": "r"}), node("b", labels={"zone": "z"})],
        [topology("zone", "rack")],
    )
    assert plan(moment, gang(2, required="zone")).domain == ("z",)
    refused = plan(moment, gang(2, required="rack"))
    assert refused.reason == "TooLargeForLevel"
    assert refused.obstacles == {"no label rack": 1}


def test_one_zone_with_one_rack_holds_a_gang_that_requires_the_zone():
    """KAI never schedules it."""
    assert plan(racks(1, 2, block=1), gang(2, required="block")).decision == "admitted"


def test_mixed_pods_are_packed_and_not_summed():
    """Two nodes of 8 GPUs hold two pods of 5, never three, though 15 of 16 GPUs would do."""
    moment = cluster("r1: a b")
    assert plan(moment, gang(2, gpu=5)).decision == "admitted"
    assert plan(moment, gang(3, gpu=5)).decision == "rejected"
    mixed = gang(pod_set(2, shape(gpu=5), name="large"), pod_set(2, shape(gpu=4), name="small"))
    assert plan(moment, mixed).decision == "rejected"


def test_a_parent_domain_is_left_where_its_children_do_not_fit():
    """KAI keeps to the first parent; here the block is chosen in which both PodSets find racks."""
    moment = cluster("b1/r1: a b c\nb1/r2: d\nb2/r3: e f\nb2/r4: g h", ("block", "rack"))
    rack = Constraint(required="rack")
    sets = [pod_set(2, shape(gpu=8), name=name, constraint=rack) for name in ("one", "two")]
    assert plan(moment, gang(*sets, required="block")).domain == ("b2",)


def test_the_same_rack_name_in_two_blocks_is_two_racks():
    """A domain is its whole path."""
    moment = cluster("b1/r1: a\nb2/r1: b", ("block", "rack"))
    assert plan(moment, gang(2, required="rack")).decision == "rejected"


def test_pod_sets_prefer_their_own_level_and_are_relaxed_upward_only():
    """Preferred rack, required block: four pods in racks of three are split inside one block."""
    moment = cluster("b1/r1: a b c\nb1/r2: d e f\nb2/r3: g h i", ("block", "rack"))
    constraint = Constraint(required="block", preferred="rack")
    assert plan(moment, gang(pod_set(3, shape(gpu=8), constraint=constraint))).level == "rack"
    assert plan(moment, gang(pod_set(4, shape(gpu=8), constraint=constraint))).domain == ("b1",)
    assert plan(moment, gang(pod_set(7, shape(gpu=8), constraint=constraint))).decision == "rejected"


def test_slices_stay_within_their_level():
    """Racks of three and slices of two: one slice a rack, though three pods would fit."""
    moment = racks(3, 3)
    sliced = Constraint(slice_level="rack", slice_size=2)
    answer = plan(moment, gang(pod_set(6, shape(gpu=8), constraint=sliced)))
    by_rack = {
        rack: sum(a.count for a in answer.assignments if a.node.startswith(rack))
        for rack in ("r1", "r2", "r3")
    }
    assert set(by_rack.values()) == {2}


def test_pods_that_must_differ_are_on_different_hosts():
    """Required anti-affinity by hostname: one pod a host."""
    apart = shape(gpu=1, apart=(HOSTNAME,))
    assert len(plan(racks(1, 4), gang(pod_set(4, apart))).assignments) == 4
    assert plan(racks(1, 3), gang(pod_set(4, apart))).decision == "rejected"


# What a snapshot tells ------------------------------------------------------------


def test_policies_are_told_levels_capacity_and_mig():
    """Plain JSON: the most that a node has, the largest free domain, the slices by product."""
    mig = Node(
        "m1",
        {HOSTNAME: "m1", "rack": "r1", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        {"cpu": 8000, "pods": 110, "nvidia.com/mig-1g.10gb": 7},
    )
    moment = snapshot([mig, *racks(2, 2).nodes.values()], [topology("rack")])
    held = moment.with_reservation(reservation_for(moment, gang(2), plan(moment, gang(2))))
    facts = cluster_variable(held)
    assert facts["topologies"] == {"topo": ["rack", HOSTNAME]}
    assert facts["resources"]["nvidia.com/gpu"] == 8
    assert facts["largestFree"]["topo"]["rack"] == {"gpus": 16, "domain": ["r1"], "gpusWhenEmpty": 16}
    assert facts["mig"]["NVIDIA-H100-80GB-HBM3"]["most"] == {"1g.10gb": 7}
    assert "7g.80gb" in facts["mig"]["NVIDIA-H100-80GB-HBM3"]["profiles"]
    assert cluster_variable(held) is facts


def test_a_node_that_has_all_labels_of_one_topology_is_of_that_one_only():
    """It carries two of three labels of the other; a node of neither serves what it carries most of."""
    dgx, nvl = topology("zone", "rack", name="dgx"), topology("zone", "rack", "clique", name="nvl")
    labels = {"zone": "z", "rack": "r"}
    nodes = [
        node("d", labels=labels),
        node("n", labels={**labels, "clique": "c"}),
        node("half", labels={"zone": "z", "clique": "c"}),
    ]
    trees = snapshot(nodes, [dgx, nvl]).base.trees
    assert {name: list(tree.places) for name, tree in trees.items()} == {
        "dgx": ["d", "n"],
        "nvl": ["n", "half"],
    }
