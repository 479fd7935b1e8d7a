"""A refusal counts every node once, names what excludes it, and suggests a change that admits the pods."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.explain.label_values import nearest
from planner.explain.pod_changes import own_amounts
from planner.model.answer import Answer
from planner.model.host_ports import EVERY_ADDRESS, port_labels, port_terms
from planner.model.labels import Requirement, Taint
from planner.model.pod import BoundPod, PodShape, PodTerm
from planner.model.podgroup import Constraint
from planner.node.runtime_class import RuntimeClass, RuntimeClasses
from planner.planning.details import details
from planner.planning.plan import plan
from tests.builders import cluster, gang, node, pod_set, racks, shape, topology

PRODUCT, ZONE = "nvidia.com/gpu.product", "topology.kubernetes.io/zone"


def hall(*rows):
    """Nodes of one product each: (product, number, further labels, taints, words)."""
    nodes = [
        replace(node(f"{product}-{n}", labels={PRODUCT: product, **labels}, **words), taints=taints)
        for product, count, labels, taints, words in rows
        for n in range(count)
    ]
    return snapshot(nodes, [topology("rack")])


INFRA = Taint("dedicated", "infra")
MIXED = hall(
    ("H200", 20, {}, (), {"gpu": 8}),
    ("B200", 8, {}, (INFRA,), {"gpu": 8}),
    ("A100", 3, {}, (), {"gpu": 8}),
    ("T4", 1, {}, (), {"gpu": 1}),
)


def refusal(moment, group) -> Answer:
    """The rejection of a gang."""
    answer = plan(moment, group)
    assert answer.decision == "rejected"
    return answer


def test_nodes_are_counted_by_cause_where_the_request_is_larger_than_any():
    """Sixteen GPUs: those with eight, those with a taint, those with one; all of the 32."""
    message = refusal(MIXED, gang(1, gpu=16)).message
    assert message == (
        "No node takes a pod of worker: of 32 nodes, 24 have at most 8 of 16 nvidia.com/gpu and 8 carry the "
        "taint dedicated=infra:NoSchedule. Would work: at most 8 nvidia.com/gpu a pod."
    )


def test_a_selector_is_named_with_the_values_that_there_are():
    """The nearest spelled first, each with its nodes."""
    wanted = pod_set(1, shape(gpu=16, selector={PRODUCT: "H20"}))
    assert refusal(MIXED, gang(wanted)).message == (
        "No node takes a pod of worker: all 32 nodes lack nvidia.com/gpu.product=H20 (there are H200 on 20, "
        "B200 on 8, A100 on 3 and 1 more). Would work: nvidia.com/gpu.product: H200 with at most 8 "
        "nvidia.com/gpu a pod."
    )


def test_a_requirement_is_named_as_a_selector_is():
    """With its operator and values."""
    term = (Requirement(PRODUCT, "In", ("H100", "H800")),)
    message = refusal(MIXED, gang(pod_set(1, shape(gpu=1, affinity=(term,))))).message
    assert "all 32 nodes fail the node affinity nvidia.com/gpu.product In [H100, H800] (there are" in message


def one_a_host(port_or_label):
    """Three pods of one GPU with anti-affinity by node, required in a rack of two nodes."""
    if port_or_label == "port":
        ports = (("TCP", 8080, EVERY_ADDRESS),)
        apart, labels = port_terms(ports), port_labels(ports)
    else:
        apart = (PodTerm("kubernetes.io/hostname", (Requirement("app", "In", ("x",)),)),)
        labels = {"app": "x"}
    worker = replace(shape(gpu=1), terms=apart, labels=labels)
    return gang(pod_set(3, worker), required="rack")


@pytest.mark.parametrize(("apart", "cause"), [("port", "host port 8080/TCP"), ("label", "pod anti-affinity")])
def test_what_keeps_a_second_pod_off_a_node_is_named(apart, cause):
    """Each node has eight GPUs, and takes one of the pods alone."""
    message = refusal(racks(2, 2), one_a_host(apart)).message
    assert f"Of 4 nodes, 4 have room for a pod and none for a second ({cause})." in message


def test_of_several_terms_the_number_is_told():
    """Which of them comes nearest differs from node to node."""
    terms = tuple((Requirement(PRODUCT, "In", (name,)),) for name in ("H100", "L4"))
    message = refusal(MIXED, gang(pod_set(1, shape(gpu=1, affinity=terms)))).message
    assert "all 32 nodes meet none of the node affinity's 2 terms" in message


def test_a_label_that_no_node_has_is_told_with_the_one_that_may_be_meant():
    """A misspelt key."""
    message = refusal(
        MIXED, gang(pod_set(1, shape(gpu=1, selector={"nvidia.com/gpu.prodcut": "T4"})))
    ).message
    assert "(no node has this label; some have nvidia.com/gpu.product)" in message
    assert message.endswith("Would work: nvidia.com/gpu.product: T4.")


def test_a_taint_is_named_with_value_and_effect_and_the_toleration_is_tried():
    """Two racks for one purpose: the toleration is what would work, and does."""
    moment = cluster("r1: a b taint=team")
    answer = refusal(moment, gang(2))
    assert answer.message == (
        "No node takes a pod of worker: both nodes carry the taint team:NoSchedule. "
        "Would work: a toleration of team:NoSchedule."
    )


def test_a_toleration_that_would_not_be_enough_is_not_named():
    """The tainted nodes are too small."""
    moment = cluster("r1: a gpu=4 taint=team\nr2: b gpu=4")
    assert "toleration" not in refusal(moment, gang(1)).message


def test_a_gang_larger_than_the_cluster_is_told_which_nodes_do_not_count():
    """Two of six nodes are tainted."""
    message = refusal(cluster("r1: a b c d\nr2: e f taint=team"), gang(6)).message
    assert message == (
        "6 pods (48 GPUs) do not fit the empty cluster: the whole cluster has room for 4 of 6 pods "
        "(32 GPUs). Of 6 nodes, 2 carry the taint team:NoSchedule and 4 have room for a pod. "
        "Would work: 4 pods, or a toleration of team:NoSchedule."
    )


def test_nodes_outside_the_topology_are_counted_too():
    """A rack is asked for, and a node has no label of one."""
    moment = snapshot([node("a", labels={"rack": "r1"}), node("b")], [topology("rack")])
    message = refusal(moment, gang(2, required="rack")).message
    assert "Of 2 nodes, 1 is not in topology topo and 1 has room for a pod." in message


def test_a_resource_of_no_node_is_told_with_those_that_there_are():
    """A misspelt name of the same vendor is tried; another vendor's is not."""
    moment = racks(1, 2)
    misspelt = PodShape({"nvidia.com/gpus": 8, "pods": 1})
    assert refusal(moment, gang(pod_set(2, misspelt))).message == (
        "No node takes a pod of worker: both nodes have no nvidia.com/gpus. The cluster's devices: "
        "nvidia.com/gpu. Would work: nvidia.com/gpu in place of nvidia.com/gpus."
    )
    other = PodShape({"amd.com/gpu": 8, "pods": 1})
    assert refusal(moment, gang(pod_set(2, other))).message.endswith("No similar request fits either.")


def test_an_amount_that_policies_wrote_is_told_as_theirs():
    """The pod states no cores, and those that are free would do for less."""
    used = {"cpu": 60_000, "pods": 1}
    busy = snapshot([node("a")], [topology("rack")]).with_pod(BoundPod("default/db", "a", used))
    share = replace(shape(gpu=1, cpu=16), stated={"nvidia.com/gpu": 1, "pods": 1})
    answer = plan(busy, gang(pod_set(1, share)))
    assert answer.decision == "queued"
    assert answer.message == (
        "1 pod (1 GPU) fits the empty cluster but not now: the cluster has room for 0 of 1 pod now. "
        "The only node has 4 cpu free of the 16 that policies give a pod (it states none). "
        "Would work now: limits of 4 cpu a pod."
    )


def test_smaller_amounts_are_not_tried_where_the_stated_ones_have_no_place(monkeypatch):
    """The GPUs are lacking, whatever cores and memory policies give a pod."""
    tried = []

    def counted(problem, names):
        tried.append(names)
        return own_amounts(problem, names)

    monkeypatch.setattr("planner.explain.alternatives.own_amounts", counted)
    share = replace(shape(gpu=8, cpu=16), stated={"nvidia.com/gpu": 8, "pods": 1})
    assert "limits of" not in refusal(racks(1, 2), gang(pod_set(3, share))).message
    assert not tried


def test_the_pod_sets_at_fault_are_told():
    """The workers fit, the trainer does not."""
    answer = refusal(racks(1, 4), gang(pod_set(1, shape(gpu=9), name="trainer"), pod_set(2)))
    assert answer.culprits == ("trainer",)


@pytest.mark.parametrize(
    ("text", "choices", "first"),
    [
        ("H100", ["NVIDIA-A100-SXM4", "NVIDIA-H100-80GB-HBM3", "Tesla-T4"], "NVIDIA-H100-80GB-HBM3"),
        ("us-west-2b", ["us-east-1a", "us-west-2a"], "us-west-2a"),
        ("GOLD", ["gold", "silver"], "gold"),
    ],
)
def test_the_nearest_text_contains_the_other_or_is_spelled_like_it(text, choices, first):
    """Whatever the case."""
    assert nearest(text, choices)[0] == first


def test_of_as_many_values_as_nodes_only_the_nearest_in_the_alphabet_are_compared():
    """A hostname among ten thousand."""
    assert nearest("node-5000x", [f"node-{n:05}" for n in range(10_000)])[0].startswith("node-0")


WORDS = ("", " used=8", " cordoned", " notready", " gpu=4", " taint=team", " taint=other", " cpu=2", " gpu=0")


@st.composite
def moments(draw):
    """Up to three racks of up to five nodes, each in some condition."""
    lines = [
        f"r{rack}: r{rack}-{host}{draw(st.sampled_from(WORDS))}"
        for rack in range(1, draw(st.integers(1, 3)) + 1)
        for host in range(draw(st.integers(1, 5)))
    ]
    return cluster("\n".join(lines))


@st.composite
def groups(draw):
    """One or two PodSets, some of which request what no node has."""
    selectors = st.sampled_from(({}, {}, {"rack": "r1"}, {"rack": "r9"}, {"rak": "r1"}))
    sets = [
        pod_set(
            draw(st.integers(1, 4)),
            shape(
                gpu=draw(st.sampled_from((1, 8, 16))),
                cpu=draw(st.sampled_from((1, 8))),
                selector=draw(selectors),
            ),
            name=name,
            constraint=Constraint(required=draw(st.sampled_from(("", "", "rack")))),
        )
        for name in ("worker", "leader")[: draw(st.integers(1, 2))]
    ]
    return gang(*sets, reserve="nodes")


@given(moments(), groups())
@settings(max_examples=250)
def test_every_node_counts_once_and_what_is_named_is_admitted(moment, group):
    """In queued and rejected answers; the numbers in the message add up to the cluster's nodes."""
    answer = plan(moment, group)
    if answer.decision == "admitted":
        return
    account = details(moment, group, answer)
    assert sum(account.excluded.values()) + account.usable == len(moment.nodes)
    assert account.usable >= 0
    empty = snapshot(
        [replace(host, cordoned=False, ready=True) for host in moment.nodes.values()], moment.topologies
    )
    for way in account.ways_ever:
        assert plan(empty, way.group).decision == "admitted", way.words
    for way in account.ways_now:
        assert plan(moment, way.group).decision == "admitted" or way.ended, way.words
    if "odes, " in answer.message:
        counts = numbers_after(answer.message)
        assert counts[0] == sum(counts[1:]), answer.message


def numbers_after(message):
    """The number of nodes and those of each clause of "of 8 nodes, 4 are …, 3 have … and 1 has …"."""
    listing = re.search(r"[Oo]f (\d+) nodes, (.*?)\. (?:Would|No|The)", message)
    assert listing, message
    bare = re.sub(r" \([^)]*\)| \[[^]]*\]", "", listing[2])
    clauses = re.findall(
        r"(?:^|, | and )(\d+) (?:are|is|have|has|carry|carries|lacks?|fails?|meets?|do)", bare
    )
    return [int(listing[1]), *map(int, clauses)]


def test_a_request_that_fits_with_cordoned_nodes_is_queued():
    """Cordons end; no proof of anything."""
    answer = plan(cluster("r1: a\nr1: b cordoned\nr1: c notready"), gang(3))
    assert answer.decision == "queued"
    assert "Of 3 nodes, 1 is cordoned, 1 is not ready and 1 has room for a pod." in answer.message


KATA = RuntimeClass("kata", {"cpu": 250, "memory": 2**29}, {"sandbox": "kata"})


def of_kata(moment, pod, **selector):
    """The cluster with RuntimeClass kata, and a gang of one such pod."""
    classes = RuntimeClasses({"kata": KATA}, complete=True)
    moment = moment.evolve(base=replace(moment.base, runtime_classes=classes), changed_nodes=frozenset())
    return moment, gang(pod_set(1, replace(pod, runtime_class="kata", node_selector=selector)))


def test_the_overhead_of_a_runtime_class_is_told_apart_from_what_the_pod_asks_for():
    """The author states amounts without it, and so does the request that would work."""
    nodes = hall(("H200", 2, {"sandbox": "kata"}, (), {"cpu": 64}))
    moment, group = of_kata(nodes, shape(cpu=64))
    assert refusal(moment, group).message == (
        "No node takes a pod of worker: both nodes have at most 64 of 64250m cpu (of which 250m overhead of "
        "RuntimeClass kata). Would work: at most 63750m cpu a pod."
    )
    assert plan(moment, of_kata(nodes, PodShape({"cpu": 63750, "pods": 1}))[1]).decision == "admitted"


def test_amounts_of_policies_are_told_apart_from_the_overhead_too():
    """The pod states 60 cores, policies gave it 64, and the class adds a quarter."""
    pod = replace(shape(cpu=64), stated={"cpu": 60_000, "pods": 1})
    moment, group = of_kata(hall(("H200", 2, {"sandbox": "kata"}, (), {"cpu": 64})), pod)
    assert refusal(moment, group).message == (
        "No node takes a pod of worker: both nodes have at most 64 cpu of the 64250m that policies give a "
        "pod (it states 60, and has 250m overhead of RuntimeClass kata). Would work: limits of 60 cpu a pod."
    )


def test_no_amount_is_suggested_where_the_overhead_alone_is_too_large():
    """The pods would fit with none, which nobody can ask for."""
    moment, group = of_kata(hall(("H200", 2, {"sandbox": "kata"}, (), {"memory": 0})), shape(memory=1))
    assert "Would work" not in refusal(moment, group).message


def test_a_label_that_the_runtime_class_selects_is_not_suggested_to_be_left_out():
    """It is not in the template; the class selects it."""
    moment, group = of_kata(hall(("H200", 2, {"sandbox": "runc"}, (), {})), shape(cpu=1))
    message = refusal(moment, group).message
    assert message == (
        "No node takes a pod of worker: both nodes lack sandbox=kata (RuntimeClass kata selects it; there is "
        "runc on 2). No similar request fits either."
    )
