"""Tests the three decisions and their messages."""

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.model.labels import Requirement, Toleration
from planner.model.pod import BoundPod, PodShape, SpreadConstraint
from planner.model.podgroup import Constraint
from planner.model.topology import HOSTNAME, Topology, short
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, node, pod_set, racks, shape, topology


def holding(moment, *groups):
    """The cluster with the reservations of these gangs."""
    for group in groups:
        moment = moment.with_reservation(reservation_for(moment, group, plan(moment, group)))
    return moment


def test_a_gang_larger_than_every_rack_is_rejected_at_once():
    """76 GPUs required in one rack of 72: the numbers, and what would work."""
    answer = plan(racks(8, 18, gpu=4), gang(19, gpu=4, required="rack"))
    assert (answer.decision, answer.reason) == ("rejected", "TooLargeForLevel")
    assert "76 GPUs" in answer.message
    assert "18 of 19 pods (72 GPUs)" in answer.message
    assert "Would work: 18 pods" in answer.message


def test_a_coarser_level_is_named_where_it_would_serve():
    """Five pods do not fit a rack of four, but a block."""
    answer = plan(racks(4, 4, block=2), gang(5, required="rack"))
    assert answer.message.endswith("Would work: 4 pods, or required at block.")


def test_what_would_work_does_work():
    """The suggestion in a refusal is admitted."""
    moment = racks(4, 4, block=2)
    assert plan(moment, gang(4, required="rack")).decision == "admitted"
    assert plan(moment, gang(5, required="block")).decision == "admitted"


def test_a_gang_that_fits_the_empty_cluster_is_queued():
    """It says how close it came, who is in the way, and what would fit now."""
    moment = holding(racks(2, 4), gang(3, name="default/Job/first"))
    answer = plan(moment, gang(8))
    assert (answer.decision, answer.reason) == ("queued", "NoRoomNow")
    assert "4 of 8 pods" in answer.message
    assert answer.obstacles == {"reserved by default/Job/first": 4}
    assert "Of 8 nodes, 4 are reserved by default/Job/first and 4 have room for a pod." in answer.message


@pytest.mark.parametrize(
    ("drawing", "cause"),
    [
        ("r1: a b cordoned", "cordoned"),
        ("r1: a b notready", "not ready"),
        ("r1: a b used=8", "insufficient nvidia.com/gpu"),
        (
            "r1: a b taint=node.kubernetes.io/disk-pressure",
            "taint node.kubernetes.io/disk-pressure:NoSchedule",
        ),
    ],
)
def test_what_passes_queues_a_gang(drawing, cause):
    """Cordons, readiness, use and some taints are temporary."""
    answer = plan(cluster(drawing), gang(2))
    assert answer.decision == "queued"
    assert answer.obstacles == {cause: 2}


def test_a_taint_that_stays_rejects_a_gang():
    """Only a toleration helps."""
    moment = cluster("r1: a b taint=team/ml")
    answer = plan(moment, gang(2))
    assert (answer.decision, answer.reason) == ("rejected", "NoNodeMatches")
    assert "both nodes carry the taint team/ml:NoSchedule" in answer.message
    tolerant = shape(gpu=8, tolerations=(Toleration("team/ml", "Exists"),))
    assert plan(moment, gang(pod_set(2, tolerant))).decision == "admitted"


def test_a_pod_that_tolerates_the_cordon_may_go_to_a_cordoned_node():
    """As the scheduler has it, a cordon is a taint."""
    tolerant = shape(gpu=8, tolerations=(Toleration("", "Exists"),))
    assert plan(cluster("r1: a cordoned"), gang(pod_set(1, tolerant))).decision == "admitted"


def test_a_pod_larger_than_any_node_is_rejected_with_the_most_that_one_has():
    """One pod's resources come from one node."""
    answer = plan(racks(2, 2), gang(1, gpu=9))
    assert (answer.decision, answer.reason) == ("rejected", "PodFitsNoNode")
    assert "all 4 nodes have at most 8 of 9 nvidia.com/gpu" in answer.message


def test_resources_that_no_node_has_together_are_told_so():
    """GPUs on one node and cores on another do not make a pod."""
    answer = plan(cluster("r1: a cpu=4 gpu=8\nr1: b cpu=64 gpu=0"), gang(pod_set(1, shape(cpu=32, gpu=1))))
    assert answer.reason == "PodFitsNoNode"
    assert "of 2 nodes, 1 has 4 of 32 cpu and 1 has no nvidia.com/gpu" in answer.message


def test_an_unknown_topology_is_rejected_with_the_known_ones():
    """The message names the field's value and what there is."""
    answer = plan(racks(1, 1), gang(1, topology="nvl72"))
    assert (answer.decision, answer.reason) == ("rejected", "UnknownTopology")
    assert "'nvl72'" in answer.message
    assert "topo" in answer.message


def test_an_unknown_level_is_rejected_with_the_known_ones():
    """The message lists the levels of the topology."""
    answer = plan(racks(1, 1, block=1), gang(1, required="example.com/rak"))
    assert answer.reason == "UnknownLevel"
    assert "block, rack, kubernetes.io/hostname" in answer.message


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("example.com/topology-rak", "example.com/topology-rack (rack)"),
        ("other.org/racks", "example.com/topology-rack (rack)"),
        ("cloud.provider.com/topology-rack", "example.com/topology-rack (rack)"),
        ("nodes", "kubernetes.io/hostname (node)"),
        ("shelf", "one of these levels"),
    ],
)
def test_an_unknown_level_is_told_the_level_that_is_probably_meant(written, meant):
    """Levels are listed with the names that other messages use, by which the user may have written them."""
    levels = ("topology.kubernetes.io/zone", "example.com/topology-rack")
    answer = plan(cluster("z/r: n1 gpu=8", levels), gang(1, required=written))
    assert answer.message.endswith(
        f"which is no level here: topo has topology.kubernetes.io/zone (zone), example.com/topology-rack "
        f"(rack), kubernetes.io/hostname (node). Would work: {meant}."
    )


def test_a_label_of_nodes_that_is_no_level_is_told_what_would_make_it_one():
    """Most examples of JobSet's exclusive topology name the label of the node pool."""
    pooled = node("n1", labels={"rack": "r", "cloud.provider.com/pool": "p"})
    moment = snapshot([pooled, node("n2", labels={"rack": "r"})], [topology("rack")])
    assert plan(moment, gang(1, required="cloud.provider.com/pool")).message.endswith(
        "It is a label of 1 node. Would work: one of these levels, a Topology with the level "
        'cloud.provider.com/pool, or, for whoever may skip the plan, bayplan.dev/skip: "true".'
    )


def test_several_pod_sets_under_a_spread_constraint_are_told_no_number_of_pods():
    """How many of both would fit is not searched; "room for 0" would deny that any pod fits."""
    moment = cluster("z1/r1: a b\nz2/r2: c d used=8", ("zone", "rack"))
    spread = (SpreadConstraint("zone", 1, (Requirement("app", "In", ("a",)),)),)
    pod = replace(shape(gpu=8), labels={"app": "a"}, spread=spread)
    group = gang(pod_set(2, pod), pod_set(1, shape(gpu=2), name="router"), reserve="none")
    assert "the cluster has no place for all 3 pods together under topology spread now" in (
        plan(moment, group).message
    )


def test_a_misspelt_topology_is_told_the_one_that_is_probably_meant():
    """The name of a topology is as easily misspelt as a level."""
    assert plan(racks(1, 1), gang(1, topology="tope")).message.endswith("it has topo. Would work: topo.")


def test_a_preferred_level_above_the_required_one_gets_a_warning():
    """It has no effect, and the gang is placed all the same."""
    answer = plan(racks(2, 2, block=1), gang(2, required="rack", preferred="block"))
    assert answer.decision == "admitted"
    assert "has no effect" in answer.warnings[0]


def test_slices_that_do_not_divide_are_refused():
    """Seven pods make no slices of two; six or eight do."""
    sliced = pod_set(7, constraint=Constraint(slice_level="rack", slice_size=2))
    answer = plan(racks(2, 8), gang(sliced))
    assert answer.reason == "SlicesDoNotDivide"
    assert "6 pods or 8 pods" in answer.message


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        (gang(), "NoPods"),
        (gang(0), "NoPods"),
        (gang(pod_set(3), pod_set(-1, name="x")), "NegativeCount"),
        (gang(pod_set(1), pod_set(1)), "DuplicatePodSet"),
        (gang(pod_set(200_000)), "TooManyPods"),
        (gang(pod_set(1, shape(gpu=-1))), "AbsurdQuantity"),
        (gang(pod_set(1, constraint=Constraint(slice_size=2))), "SlicesDoNotDivide"),
        (gang(pod_set(2, constraint=Constraint(slice_size=2))), "SliceLevelMissing"),
        (gang(pod_set(2, constraint=Constraint(slice_size=-2, slice_level="rack"))), "SlicesDoNotDivide"),
    ],
)
def test_contradictions_are_rejected_with_their_own_token(group, reason):
    """No search is made."""
    answer = plan(racks(1, 2), group)
    assert (answer.decision, answer.reason) == ("rejected", reason)
    assert answer.message.endswith(".")


@pytest.mark.parametrize("amount", [-1, 2**63])
def test_an_amount_beyond_what_the_api_server_holds_is_told_both_bounds(amount):
    """Below zero and above the largest integer: the same words say what would do."""
    answer = plan(racks(1, 2), gang(pod_set(1, shape(gpu=amount))))
    assert answer.reason == "AbsurdQuantity"
    assert f"asks for {amount} of nvidia.com/gpu; use 0 to 9223372036854775807." in answer.message


def test_asking_for_none_of_a_resource_asks_for_nothing():
    """Zero GPUs fit a node that has none."""
    nothing = PodShape({"nvidia.com/gpu": 0, "cpu": 1000, "pods": 1})
    assert plan(cluster("r1: a gpu=0"), gang(pod_set(1, nothing))).decision == "admitted"
    assert plan(cluster("r1: a gpu=0"), gang(pod_set(1, PodShape()))).decision == "admitted"


def test_a_cluster_without_nodes_rejects_with_a_reason():
    """There is no traceback."""
    answer = plan(snapshot([], [topology("rack")]), gang(1))
    assert answer.decision == "rejected"
    assert answer.message


def test_an_answer_tells_how_many_pods_each_level_could_hold():
    """The attempts, coarse to fine."""
    answer = plan(racks(4, 4, block=2), gang(6))
    assert [(a.level, a.fits) for a in answer.attempts] == [
        ("block", 6),
        ("rack", 4),
        ("kubernetes.io/hostname", 1),
    ]


def test_node_affinity_is_kept():
    """Required terms are ORed, the requirements in one are ANDed."""
    terms = (
        (Requirement("rack", "In", ("r2",)), Requirement("kubernetes.io/hostname", "NotIn", ("r2-n1",))),
        (Requirement("metadata.name", "In", ("r3-n2",)),),
    )
    answer = plan(racks(3, 2), gang(pod_set(2, shape(gpu=8, affinity=terms))))
    assert {a.node for a in answer.assignments} == {"r2-n2", "r3-n2"}


def test_preferred_node_affinity_decides_among_equals():
    """Equal in everything else, the node that the pod would rather have is taken."""
    rather = ((50, (Requirement("disk", "Exists"),)),)
    moment = snapshot([node("a"), node("b", labels={"disk": "nvme"})])
    answer = plan(moment, gang(pod_set(1, shape(gpu=1, preferences=rather))))
    assert [a.node for a in answer.assignments] == ["b"]


def test_the_json_of_an_answer_is_the_contracts():
    """An answer for no single domain has a null level."""
    document = plan(racks(2, 2), gang(4)).to_json()
    assert document["level"] is None
    assert document["domain"] == []
    assert document["reserves"] == [["r1"], ["r2"]]
    assert document["assignments"][0] == {"podSet": "worker", "node": "r1-n1", "count": 1}


def test_the_pod_set_that_cannot_have_its_own_level_is_named():
    """The gang asks for nothing, its workers for one rack: the message is about them."""
    rack = Constraint(required="rack")
    feeder = pod_set(1, shape(cpu=1), name="feeder")
    answer = plan(racks(2, 4), gang(feeder, pod_set(5, shape(gpu=8), constraint=rack)))
    assert (answer.decision, answer.reason) == ("rejected", "TooLargeForLevel")
    assert answer.message.startswith(
        "worker: 5 pods (40 GPUs) required in one rack do not fit the empty cluster"
    )
    assert "4 of 5 pods" in answer.message


def test_a_pod_set_without_its_level_now_is_queued_with_its_name():
    """Each rack has a node in use: no rack for four workers now, and three would do."""
    moment = cluster("r1: a b c\nr1: d used=8\nr2: e f g\nr2: h used=8")
    workers = pod_set(4, shape(gpu=8), constraint=Constraint(required="rack"))
    answer = plan(moment, gang(pod_set(1, shape(cpu=1), name="feeder"), workers))
    assert answer.decision == "queued"
    assert answer.message.startswith("worker: 4 pods (32 GPUs) required in one rack")
    assert "Would work now: 3 pods" in answer.message


def test_a_rack_of_which_a_gang_holds_a_host_is_called_partly_held():
    """One node is reserved; the three others are free, and no rack to be held whole. The counts add up."""
    moment = holding(racks(1, 4), gang(1, name="default/Job/one"))
    answer = plan(moment, gang(2, required="rack"))
    assert answer.obstacles == {
        "in rack r1, which is partly held by default/Job/one": 3,
        "reserved by default/Job/one": 1,
    }
    assert "3 are in rack r1, which is partly held by default/Job/one" in answer.message


def test_the_counts_of_one_topology_are_not_those_of_another_with_other_reservable_domains():
    """Levels and nodes are equal, but a gang in the one topology holds racks whole, in the other blocks."""
    levels, names = ("block", "rack", HOSTNAME), ("racks", "blocks")
    topologies = [Topology(name, levels, {"pool": name}, name.removesuffix("s")) for name in names]
    nodes = [
        node(f"{name}-{rack}-{host}", labels={"pool": name, "block": "b1", "rack": rack})
        for name in names
        for rack in ("r1", "r2")
        for host in (1, 2)
    ]
    small = [gang(1, name=f"default/Job/{name}", reserve="nodes", topology=name) for name in names]
    moment = holding(snapshot(nodes, topologies), *small)
    by_racks, by_blocks = (plan(moment, gang(4, topology=name)).obstacles for name in names)
    assert by_racks["in rack b1/r1, which is partly held by default/Job/racks"] == 1
    assert by_blocks["in block b1, which is partly held by default/Job/blocks"] == 3


def test_where_a_level_has_no_room_at_all_it_is_said_whose_end_makes_room():
    """The gang's own pods go with it; and two nodes are free for a gang that holds no more than it uses."""
    held = gang(1, name="default/Job/one")
    moment = holding(racks(1, 4), held)
    uses = moment.holding(held.name)
    moment = moment.with_pod(BoundPod("default/one-0", "r1-n1", held.pod_sets[0].shape.requests, uses.id))
    answer = plan(moment, gang(2, required="rack"))
    assert answer.message.endswith(
        "As asked, it fits once default/Job/one ends. Would work now: 1 pod, "
        "or bayplan.dev/reserve: nodes, which holds no more than the gang uses."
    )
    assert plan(moment.ended("default/Job/one"), gang(2, required="rack")).decision == "admitted"
    assert plan(moment, gang(2, required="rack", reserve="nodes")).decision == "admitted"


def test_a_gang_that_waits_for_another_is_told_which_smaller_pods_fit_now():
    """To say that no similar request fits now would be wrong."""
    moment = holding(cluster("r1: a\nr2: b gpu=4"), gang(1, name="default/Job/one"))
    answer = plan(moment, gang(1))
    assert answer.message.endswith(
        "As asked, it fits once default/Job/one ends. Would work now: at most 4 nvidia.com/gpu a pod."
    )
    assert plan(moment, gang(1, gpu=4)).decision == "admitted"


def test_where_nothing_helps_nothing_is_promised():
    """Pods without a reservation fill the rack, so neither the end of a gang nor a mode helps."""
    answer = plan(cluster("r1: a b used=8"), gang(2, required="rack"))
    assert answer.message.endswith("No similar request fits now.")


def test_many_causes_are_summed_up_so_that_all_nodes_are_counted():
    """Ten gangs with a rack each: eight are named, the rest counted."""
    groups = [gang(2, name=f"default/Job/g{n}") for n in range(10)]
    answer = plan(holding(racks(10, 2), *groups), gang(2, required="rack"))
    assert len(answer.obstacles) == 10
    assert "2 are reserved by default/Job/g7 and 4 are reserved by 2 other gangs." in answer.message


def test_of_the_causes_summed_up_reservations_are_told_apart():
    """Nine gangs with a host each, of which eight are named, and a tainted host."""
    single = [gang(1, name=f"default/Job/g{n}") for n in range(9)]
    moment = cluster("r1: a b c d e f g h i\nr1: z taint=gpu")
    answer = plan(holding(moment, *single), gang(1))
    assert "1 is reserved by another gang and 1 does not serve for another reason." in answer.message


MIG = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}
SLICED = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED"}


def test_a_pod_gets_one_instance_of_a_board_split_by_mig():
    """With strategy single nvidia.com/gpu is an instance: one a pod, and two are never satisfied."""
    moment = snapshot([node("a", labels=MIG, gpu=7)])
    assert plan(moment, gang(7, gpu=1)).decision == "admitted"
    answer = plan(moment, gang(1, gpu=2))
    assert (answer.decision, answer.reason) == ("rejected", "NoNodeMatches")
    assert "the only node has GPUs split by MIG: one instance a pod" in answer.message
    mixed = snapshot([node("a", labels=MIG, gpu=7), node("b")])
    assert [x.node for x in plan(mixed, gang(1, gpu=2)).assignments] == ["b"]


def test_a_gang_with_a_topology_wish_keeps_away_from_mig_instances():
    """Instances have no link between them; whole GPUs in the same rack serve."""
    moment = snapshot([node("a", labels={**MIG, "rack": "r"}, gpu=7)], [topology("rack")])
    answer = plan(moment, gang(2, gpu=1, required="rack"))
    assert answer.decision == "rejected"
    assert "no link between instances" in answer.message
    assert plan(moment, gang(2, gpu=1)).decision == "admitted"
    assert plan(moment, gang(1, gpu=1, required="rack")).decision == "admitted"


def test_more_than_one_time_slice_is_never_satisfied():
    """Neither as nvidia.com/gpu of a -SHARED product nor as nvidia.com/gpu.shared."""
    moment = snapshot([node("a", labels=SLICED, gpu=8)])
    assert plan(moment, gang(8, gpu=1)).decision == "admitted"
    assert plan(moment, gang(1, gpu=2)).decision == "rejected"
    shared = snapshot([replace(node("a"), allocatable={"nvidia.com/gpu.shared": 8, "pods": 9})])
    asks = {count: PodShape({"nvidia.com/gpu.shared": count, "pods": 1}) for count in (1, 2)}
    assert plan(shared, gang(pod_set(8, asks[1]))).decision == "admitted"
    assert plan(shared, gang(pod_set(1, asks[2]))).decision == "rejected"


def test_causes_are_said_as_a_person_says_them():
    """What nodes have, carry, are, and what they fail."""
    moment = cluster("r1: a used=8\nr1: b taint=node.kubernetes.io/disk-pressure\nr1: c cordoned\nr2: d e f")
    only = shape(gpu=8, affinity=((Requirement("rack", "In", ("r1",)),),))
    message = plan(moment, gang(pod_set(3, only), required="rack")).message
    for words in (
        "Of 6 nodes, 3 fail the node affinity rack In [r1]",
        "1 is cordoned",
        "1 has no nvidia.com/gpu free",
        "1 carries the taint node.kubernetes.io/disk-pressure:NoSchedule",
    ):
        assert words in message


def test_what_is_used_beyond_what_there_is_counts_as_none_free():
    """A scheduler has bound a pod beside one that is on its way out: never "-8 of 8 free"."""
    message = plan(cluster("r1: a gpu=8 used=16"), gang(1, name="ns/Job/next")).message
    assert "has no nvidia.com/gpu free" in message
    assert "-8" not in message


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("nvidia.com/gpu.clique", "NVLink domain"),
        ("accelerator.topograph.run/domain", "NVLink domain"),
        ("cloud.provider.com/topology-rack", "rack"),
        ("cloud.google.com/gce-topology-block", "block"),
        ("kubernetes.io/hostname", "node"),
    ],
)
def test_levels_are_said_as_a_person_says_them(level, words):
    """The last word of the key; a clique is an NVLink domain."""
    assert short(level) == words


@pytest.mark.parametrize(
    ("group", "held"),
    [
        (gang(1), "it holds the node r1/r1-n1 (bayplan.dev/reserve: domain)"),
        (gang(2), "it holds the rack r1 (bayplan.dev/reserve: domain)"),
        (gang(6), "it holds r1, r2 (bayplan.dev/reserve: domain)"),
        (gang(2, reserve="nodes"), "it holds what it uses: 16 GPUs of 2 nodes"),
        (gang(1, reserve="nodes"), "it holds what it uses: 8 GPUs of node r1-n1"),
        (gang(1, reserve="auto", gpu=0), "it holds what it uses: its share of node r1-n1"),
        (gang(2, reserve="none"), "it holds nothing (bayplan.dev/reserve: none)"),
    ],
)
def test_each_answer_says_what_the_gang_holds(group, held):
    """Whole domains, what it uses, or nothing; what `auto` says is told beside its rule."""
    assert plan(racks(2, 4), group).message.endswith(f"; {held}.")
