"""Tests the bandwidth of a placement compared with a topology-blind one."""

from dataclasses import replace

import pytest

from planner.bandwidth import baseline
from planner.bandwidth.baseline import topology_blind
from planner.bandwidth.comparison import compare_with_blind
from planner.bandwidth.links import nvlink_domains
from planner.bandwidth.model import GB, Links, all_reduce
from planner.cluster.build import snapshot
from planner.manifests.cluster import read
from planner.model.errors import InputError
from planner.model.labels import Toleration
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.topology import HOSTNAME, Link, Topology
from planner.node.runtime_class import RuntimeClass, RuntimeClasses
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang, node, pod_set, racks, shape

HALL = Topology("hall", ("rack", HOSTNAME))
GB200 = {"nvidia.com/gpu.family": "blackwell", "nvidia.com/gpu.product": "NVIDIA-GB200"}
H100 = {"nvidia.com/gpu.family": "hopper", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def nvl72(racks_=2, trays=18):
    nodes = [
        node(f"t{r}-{n}", labels={"rack": f"r{r}", "nvidia.com/gpu.clique": f"u{r}.1", **GB200}, gpu=4)
        for r in range(racks_)
        for n in range(trays)
    ]
    return snapshot(nodes, [HALL])


def h100(topology=HALL, links=(), labels=H100):
    nodes = [node(f"n{r}{n}", labels={"rack": f"leaf-{r}", **labels}) for r in range(2) for n in range(4)]
    return snapshot(nodes, [topology], links={topology.name: tuple(links)} if links else None)


def worth_of(moment, group):
    return compare_with_blind(moment, group, plan(moment, group))


def spread(moment, group):
    return {assignment.node: assignment.count for assignment in topology_blind(moment, group)}


def test_only_nodes_that_come_next_are_checked_for_room(monkeypatch):
    """Of 64 nodes, the two at most that get the two pods; each again for a further pod."""
    checked = []
    room = baseline._room
    monkeypatch.setattr(baseline, "_room", lambda *words: checked.append(words[1].name) or room(*words))
    placed = spread(racks(8, 8), gang(pod_set(2)))
    assert set(checked) == set(placed)
    assert len(checked) <= 4


def test_a_whole_rack_is_worth_the_cost_models_figure():
    """72 GPUs in one NVL72: 2.19 ms by rates alone, and the model's hops besides."""
    value = worth_of(nvl72(), gang(18, gpu=4, required="rack"))
    assert value.placement.gpus == (72,)
    assert value.placement.estimate == all_reduce([72], GB, Links(inside=900, across=50))
    assert 2.19e-3 < value.placement.estimate.seconds < 2.7e-3


def test_a_topology_blind_scheduler_splits_what_the_plan_keeps_together():
    """Pods go to the emptiest nodes of both racks, so the all-reduce crosses the network."""
    value = worth_of(nvl72(), gang(18, gpu=4, required="rack"))
    assert len(value.baseline.gpus) == 2
    assert sum(value.baseline.gpus) == 72
    assert value.baseline.estimate.seconds > value.placement.estimate.seconds


def test_the_baseline_places_pods_as_the_api_server_creates_them():
    """kube-scheduler counts the overhead of their RuntimeClass, and sees its node selector."""
    moment = cluster("r: a b")
    kata = RuntimeClass("kata", {"cpu": 1_000}, {"kubernetes.io/hostname": "a"})
    classes = RuntimeClasses({"kata": kata})
    sandboxed = moment.evolve(base=replace(moment.base, runtime_classes=classes), changed_nodes=frozenset())
    group = gang(pod_set(8, replace(shape(gpu=1, cpu=8), runtime_class="kata")))
    assert spread(moment, group) == {"a": 4, "b": 4}
    assert spread(sandboxed, group) == {"a": 7}


def test_the_model_is_always_named():
    """In the plain JSON, with the rule of the comparison and the links."""
    document = worth_of(nvl72(), gang(18, gpu=4)).to_json()
    assert "hierarchical ring" in document["model"]
    assert "kube-scheduler" in document["topologyBlind"]["rule"]
    assert "NVLink 5 900 GB/s" in document["placement"]["links"]
    assert document["bytes"] == GB


@pytest.mark.parametrize(
    "group", [gang(1, gpu=1), gang(pod_set(3, shape(cpu=4))), gang(99, gpu=8, required="rack")]
)
def test_without_two_gpus_that_have_a_place_there_is_no_worth(group):
    """One GPU, pods without GPUs, and a rejected gang have no comparison."""
    assert worth_of(h100(), group) is None


def test_the_gangs_own_place_is_not_in_its_own_way():
    """The comparison is the same before and after the gang is reserved."""
    moment, group = nvl72(), gang(18, gpu=4, required="rack")
    before = worth_of(moment, group)
    held = moment.with_reservation(reservation_for(moment, group, plan(moment, group)))
    assert worth_of(held, group) == before


def test_a_blind_scheduler_that_finds_no_room_for_all_says_for_how_many():
    """Two half-node pods go to two nodes, and the third pod, which needs a whole one, has none."""
    halves, whole = pod_set(2, shape(gpu=4, cpu=1), name="half"), pod_set(1, shape(gpu=8), name="whole")
    value = worth_of(cluster("r1: a b"), gang(halves, whole))
    assert (value.baseline, value.baseline_pods) == (None, 2)
    assert value.to_json()["topologyBlind"]["podsPlaced"] == 2


def test_parts_of_gpus_have_no_worth():
    """MIG instances that are offered as nvidia.com/gpu have no link between them."""
    split = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}
    assert worth_of(h100(labels=split), gang(2, gpu=1)) is None


def test_blind_pods_go_to_the_node_with_the_least_requested():
    """Of two nodes that both have GPUs, the one with less cpu and memory in use."""
    busy = BoundPod("default/web", "a", amounts(cpu=32, memory=64, pods=1))
    assert spread(cluster("r1: a b", pods=[busy]), gang(1, gpu=1)) == {"b": 1}


def test_blind_pods_take_turns_on_equal_nodes():
    """One pod each before a second one anywhere."""
    placed = spread(cluster("r1: a b c d"), gang(pod_set(4, shape(gpu=1, cpu=4))))
    assert sorted(placed.values()) == [1, 1, 1, 1]


def test_blind_pods_respect_taints_capacity_and_hosts_that_must_differ():
    """The baseline follows the scheduler's rules."""
    drawing = "r1: a used=8\nr1: b taint=team/ml\nr1: c d cordoned\nr1: e"
    assert spread(cluster(drawing), gang(1)) == {"e": 1}
    tolerant = shape(gpu=8, tolerations=(Toleration("team/ml", "Exists"),))
    assert set(spread(cluster(drawing), gang(pod_set(2, tolerant)))) == {"b", "e"}
    apart = shape(gpu=1, apart=(HOSTNAME,))
    assert spread(cluster("r1: a b"), gang(pod_set(3, apart))) == {"a": 1, "b": 1}


def test_blind_pods_know_nothing_of_whole_domains():
    """Without Bayplan, a pod may use free nodes of a rack that a gang has reserved whole."""
    moment = racks(1, 4)
    holder = gang(2, name="default/Job/holder")
    moment = moment.with_reservation(reservation_for(moment, holder, plan(moment, holder)))
    assert len(spread(moment, gang(2))) == 2


def test_the_same_nodes_in_another_order_give_the_same_blind_placement():
    """Ties are broken by a hash of the names."""
    moment = nvl72()
    turned = snapshot(reversed(moment.nodes.values()), [HALL])
    assert topology_blind(moment, gang(7, gpu=4)) == topology_blind(turned, gang(7, gpu=4))


@pytest.mark.parametrize(
    ("labels", "gpus", "expected"),
    [
        ({}, {"a": 8, "b": 8}, (8, 8)),
        ({"nvidia.com/gpu.clique": "u.1"}, {"a": 4, "b": 4}, (8,)),
        ({"nvidia.com/gpu.clique": ""}, {"a": 4, "b": 4}, (4, 4)),
        ({"gpu.topology/nvlink-domain-size": "4"}, {"a": 8, "b": 6}, (4, 4, 4, 2)),
        ({"gpu.topology/nvlink-domain-size": "8"}, {"a": 8}, (8,)),
    ],
)
def test_nvlink_domains_are_cliques_hosts_or_parts_of_hosts(labels, gpus, expected):
    """By label, in this order; an empty label counts as absent."""
    nodes = {name: Node(name, labels) for name in gpus}
    assert nvlink_domains(nodes, gpus) == expected


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (H100, "NVLink 4 450 GB/s, network 50 GB/s a GPU (NDR, assumed)"),
        ({"nvidia.com/gpu.family": "ampere"}, "NVLink 3 300 GB/s, network 25 GB/s a GPU (HDR, assumed)"),
        (H100 | {"nvidia.com/gpu.product": "NVIDIA-H100-PCIe"}, "PCIe Gen5 ×16 64 GB/s"),
        (
            {"nvidia.com/gpu.family": "ada-lovelace", "nvidia.com/gpu.product": "NVIDIA-L40S"},
            "PCIe Gen4 ×16 32",
        ),
        (H100 | {"gpu.topology/interconnect": "pcie"}, "PCIe Gen5 ×16 64 GB/s"),
        (
            {"nvidia.com/gpu.family": "ampere", "nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB"},
            "PCIe Gen4 ×16 32 GB/s",
        ),
        (H100 | {"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}, "PCIe Gen5 ×16 64 GB/s"),
        (
            H100 | {"nvidia.com/gpu.product": "NVIDIA-H100-NVL", "gpu.topology/interconnect": "nvlink"},
            "NVLink 4 300 GB/s",
        ),
        (H100 | {"nvidia.com/gpu.product": "NVIDIA-H800"}, "NVLink 4 200 GB/s"),
        ({"nvidia.com/gpu.family": "ampere", "nvidia.com/gpu.product": "A800-SXM4-80GB"}, "NVLink 3 200"),
        ({}, "NVLink 4 (assumed) 450 GB/s"),
        ({"nvidia.com/nvlink.version": "5"}, "NVLink 5 900 GB/s"),
    ],
)
def test_rates_come_from_labels_and_say_what_was_assumed(labels, words):
    """GPU family, product, interconnect."""
    assert words in worth_of(h100(labels=labels), gang(2)).placement.rates.words


def cables(down, up):
    for rack in range(2):
        yield from (Link(f"n{rack}{n}", f"leaf-{rack}", down) for n in range(4))
        yield from (Link(f"leaf-{rack}", f"spine-{s}", up) for s in range(2))


def test_listed_cables_give_the_networks_rate_and_its_oversubscription():
    """Four 400 Gb/s cables down and two of 200 up: 4:1 between leaves, none inside one."""
    moment = h100(links=cables(400.0, 200.0))
    across = worth_of(moment, gang(8)).placement.rates
    assert (across.links.across, across.links.oversubscription) == (25.0, 4.0)
    within = worth_of(moment, gang(4, required="rack")).placement.rates
    assert (within.links.across, within.links.oversubscription) == (50.0, 1.0)


def test_a_stated_oversubscription_holds_between_domains_of_its_level():
    """7:1 between racks makes two racks slower, and leaves one as it is."""
    topology = replace(HALL, oversubscription={"rack": 7.0}, adapter_gbps=800.0)
    plain, slow = h100(), h100(topology)
    assert (
        worth_of(slow, gang(8)).placement.estimate.seconds
        > worth_of(plain, gang(8)).placement.estimate.seconds
    )
    placement = worth_of(slow, gang(4, required="rack")).placement
    assert placement.rates.links == Links(450.0, 100.0, 1.0)
    assert "as the Topology says" in placement.rates.words


def stated(**annotations):
    metadata = {"name": "t", "annotations": {f"bayplan.dev/{k}": v for k, v in annotations.items()}}
    item = {"kind": "Topology", "metadata": metadata, "spec": {"levels": [{"nodeLabel": "rack"}]}}
    return read([("t.yaml", {"apiVersion": "kai.scheduler/v1alpha1", **item})])


def test_a_topology_states_its_network_in_annotations():
    """Oversubscription by level, and the adapters' speed."""
    (topology,) = stated(**{"oversubscription": "rack=7", "adapter-gbps": "400"}).topologies
    assert topology.oversubscription == {"rack": 7.0}
    assert topology.adapter_gbps == 400.0


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("oversubscription", "row=7", "'row' is none of the levels rack"),
        ("oversubscription", "rack=0.5", "a ratio from 1 up"),
        ("oversubscription", "rack", "a ratio from 1 up"),
        ("adapter-gbps", "fast", "gigabits a second"),
        ("adapter-gbps", "nan", "gigabits a second"),
    ],
)
def test_a_network_that_cannot_be_is_refused_in_words(key, value, message):
    """The message names the annotation and a valid value."""
    with pytest.raises(InputError, match=message) as caught:
        stated(**{key: value})
    assert f"bayplan.dev/{key}" in str(caught.value)


def test_a_part_of_a_gang_has_no_worth_of_its_own():
    """A pod that arrives knows only its own PodSet of the place that its gang holds."""
    moment = racks(2, 2)
    whole = gang(1, 1, required="rack")
    answer = plan(moment, whole)
    assert compare_with_blind(moment, whole, answer) is not None
    assert compare_with_blind(moment, replace(whole, pod_sets=whole.pod_sets[1:]), answer) is None
