"""Tests nod-ai's leaf-spine interface: rules by number of nodes, strategies, preferences and limits."""

from collections import Counter
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import leaf_level, leaf_spine
from planner.leafspine.history import averaged
from planner.leafspine.rules import leaves_for
from planner.manifests.cluster import read
from planner.manifests.settings import with_config
from planner.model.errors import InputError, Where
from planner.model.labels import Requirement
from planner.model.pod import BoundPod, SpreadConstraint
from planner.model.podgroup import FabricWish
from planner.model.settings import DEFAULTS, WEIGHTS
from planner.model.topology import HOSTNAME, Link, Topology
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from planner.request.resolve import resolve
from planner.request.topology_request import GpuLimit
from planner.search.place import place
from planner.search.result import SearchResult
from tests.builders import gang, node, pod_set, racks, shape, topology

FABRIC = Topology("fabric", ("spine", "leaf", HOSTNAME))


def fabric(leaves: int = 6, hosts: int = 4, slow: tuple[int, ...] = (), **settings: object) -> Snapshot:
    """Leaves l1 … of four hosts; l1 to l4 hang on spine s1, all on the spine s2, the rest on s2 alone.

    s1 ─ l1 l2 l3 l4
    s2 ─ l1 l2 l3 l4 l5 l6      400 Gb/s each, of the slow leaves 100
    """
    nodes = [
        node(f"l{leaf}-n{host}", labels={"spine": "s", "leaf": f"l{leaf}"})
        for leaf in range(1, leaves + 1)
        for host in range(1, hosts + 1)
    ]
    links = [Link(f"l{n}", "s2", 100.0 if n in slow else 400.0) for n in range(1, leaves + 1)]
    links += [Link(f"l{n}", "s1", 100.0 if n in slow else 400.0) for n in range(1, min(4, leaves) + 1)]
    return snapshot(nodes, [FABRIC], links={"fabric": tuple(links)}, settings=replace(DEFAULTS, **settings))


def wishing(pods: int, *, gpu: int = 8, reserve: str = "nodes", **wish: object):
    """A gang of this many pods that uses the leaf-spine interface."""
    return replace(gang(pods, gpu=gpu, reserve=reserve), fabric=FabricWish(stated=True, **wish))


def leaves_of(answer) -> list[str]:
    """The distinct leaves that an answer uses."""
    return list(dict.fromkeys(a.node.split("-")[0] for a in answer.assignments))


@pytest.mark.parametrize(
    ("nodes", "leaves"), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 4), (16, 4), (20, 5)]
)
def test_the_rule_gives_leaves_by_the_number_of_nodes(nodes, leaves):
    """Up to 4 nodes one leaf, up to 8 two, up to 16 four; beyond as few as hold them."""
    assert leaves_for(nodes, 4) == leaves


@pytest.mark.parametrize(("pods", "leaves"), [(2, 1), (4, 1), (6, 2), (8, 2), (12, 4), (16, 4)])
def test_a_gang_is_on_as_many_leaves_as_the_rule_says_at_most(pods, leaves):
    """Within those the planner takes as few as it needs."""
    answer = plan(fabric(), wishing(pods))
    assert answer.decision == "admitted"
    assert len(leaves_of(answer)) <= leaves
    assert not any("rule" in warning for warning in answer.warnings)


def test_no_more_nodes_of_a_leaf_are_used_than_the_limit():
    """Leaves of eight nodes: the gang of six takes four of one and two of another at most."""
    answer = plan(fabric(hosts=8), wishing(6))
    counts = [sum(a.node.startswith(f"{leaf}-") for a in answer.assignments) for leaf in leaves_of(answer)]
    assert max(counts) <= 4
    assert len(counts) == 2
    wide = plan(fabric(hosts=8, nodes_per_leaf=8, gpus_per_leaf=64), wishing(6))
    assert len(leaves_of(wide)) == 1


def test_no_more_gpus_of_a_leaf_are_used_than_the_limit():
    """16 GPUs a leaf are two nodes of eight."""
    answer = plan(fabric(gpus_per_leaf=16), wishing(4))
    counts = [sum(a.node.startswith(f"{leaf}-") for a in answer.assignments) for leaf in leaves_of(answer)]
    assert counts == [2, 2]
    assert "2 leaves serve, where 1 would have been the rule" in answer.warnings[-1]


def test_adjacent_leaves_share_a_spine():
    """l4 and l5 hang on no common spine where s2 is cut: two leaves of s1 are taken."""
    moment = fabric()
    links = tuple(link for link in moment.base.links["fabric"] if link.end_b == "s1")
    moment = snapshot(moment.nodes.values(), [FABRIC], links={"fabric": (*links, Link("l5", "s9", 400.0))})
    answer = plan(moment, wishing(8, latency=True))
    assert set(leaves_of(answer)) <= {"l1", "l2", "l3", "l4"}


def test_hops_and_the_narrowest_link_come_from_the_graph():
    """Leaf, spine, leaf are two hops; the narrowest link on the way is the slow leaf's."""
    spine = leaf_spine(fabric(slow=(2,)), FABRIC)
    assert spine.hops(spine.leaves[0], spine.leaves[4]) == 2
    assert spine.narrowest_among(["l1", "l3"]) == 400.0
    assert spine.narrowest_among(["l1", "l2"]) == 100.0
    assert spine.narrowest_among(["l1", "l1"]) is None


@pytest.mark.parametrize("ends", [("l1", "l2", "l3"), ("l2", "l1", "l3")])
def test_the_slowest_pair_does_not_depend_on_the_order_of_its_switches(ends):
    """A leaf whose cable has no known speed is left out, also if it is the first."""
    links = (Link("l1", "s1", 0.0), Link("l2", "s1", 400.0), Link("l3", "s1", 400.0))
    spine = leaf_spine(snapshot(fabric(3).nodes.values(), [FABRIC], links={"fabric": links}), FABRIC)
    assert spine.narrowest_among(ends) == 400.0


def test_without_cables_the_domains_above_are_the_spines():
    """Leaves of one block are two hops apart, of two blocks four."""
    spine = leaf_spine(racks(4, 2, block=2), topology("block", "rack"))
    assert spine.hops(spine.leaves[0], spine.leaves[1]) == 2
    assert spine.hops(spine.leaves[0], spine.leaves[2]) == 4
    assert spine.narrowest_among([spine.leaves[0].switch, spine.leaves[1].switch]) is None


def test_the_leaf_level_is_the_one_that_is_called_so():
    """Else the level just above the host."""
    assert leaf_level(Topology("t", ("x/spine", "x/leaf", "x/accelerator", HOSTNAME))) == 1
    assert leaf_level(Topology("t", ("zone", "rack", HOSTNAME))) == 1


def test_a_preferred_leaf_is_taken_while_it_has_room():
    """By the leaf's name, or by a spine's; when it is full another serves."""
    assert leaves_of(plan(fabric(), wishing(2, domain="l5"))) == ["l5"]
    assert leaves_of(plan(fabric(), wishing(2, domain="s1"))) == ["l1"]
    full = fabric()
    other = gang(4, name="default/Job/other", reserve="nodes", required="leaf")
    full = full.with_reservation(reservation_for(full, other, plan(full, other)))
    assert plan(full, wishing(2, domain="l1")).decision == "admitted"
    assert leaves_of(plan(full, wishing(2, domain="l1"))) != ["l1"]


def test_an_unknown_preferred_domain_is_a_warning_with_the_known_ones():
    """The gang is placed all the same."""
    answer = plan(fabric(), wishing(2, domain="leaf-77"))
    assert answer.decision == "admitted"
    assert "'leaf-77' is not known; known are l1, l2" in answer.warnings[0]


def test_a_domain_of_another_topology_than_the_requests_is_refused():
    """It is a request over two topologies."""
    others = [node(f"x{n}", labels={"zone": "z", "rack": f"r{n}"}) for n in range(2)]
    moment = snapshot(
        [*fabric().nodes.values(), *others], [FABRIC, Topology("halls", ("zone", "rack", HOSTNAME))]
    )
    group = replace(gang(1, required="leaf"), fabric=FabricWish("r1"))
    answer = plan(moment, group)
    assert (answer.decision, answer.reason) == ("rejected", "MultipleTopologies")
    free = plan(moment, replace(gang(1), fabric=FabricWish("r1")))
    assert [a.node for a in free.assignments] == ["x1"]


def test_leaves_with_slower_links_are_left_out():
    """200 Gb/s rule out the leaves of 100; what is faster than every link is refused with a way out."""
    answer = plan(fabric(slow=(1, 2, 3)), wishing(4, gbps=200.0))
    assert not {"l1", "l2", "l3"} & set(leaves_of(answer))
    never = plan(fabric(), wishing(4, gbps=800.0))
    assert (never.decision, never.reason) == ("rejected", "NoLinkFastEnough")
    assert never.message.startswith("It asks for links of 800 Gb/s"), "the same for each replica of an object"
    assert never.message.endswith(
        "the fastest has 400. Would work: links of 400 Gb/s (topology.scheduler/network-bandwidth)."
    )


def test_a_bandwidth_that_nothing_can_check_is_told():
    """The topology has no links; the plan has a warning."""
    answer = plan(racks(2, 4), wishing(2, gbps=200.0))
    assert answer.decision == "admitted"
    assert "lists no links" in answer.warnings[0]


def test_distributed_spreads_over_nodes_and_leaves():
    """Six pods of two GPUs, which one node and a half could hold: six leaves."""
    answer = plan(fabric(), wishing(6, gpu=2, strategy="distributed"))
    assert len(leaves_of(answer)) == 6
    assert {a.count for a in answer.assignments} == {1}
    together = plan(fabric(), wishing(6, gpu=2, strategy="consolidated"))
    assert len(leaves_of(together)) == 1


def test_distributed_keeps_the_required_level():
    """The gang is spread over the nodes of one leaf."""
    group = replace(wishing(4, gpu=2, strategy="distributed"), constraint=gang(1, required="leaf").constraint)
    answer = plan(fabric(), group)
    assert len(leaves_of(answer)) == 1
    assert len(answer.assignments) == 4


def test_a_leaf_whose_past_gangs_ended_badly_comes_last_among_equals():
    """historicalPerformance weighs the moving average of how gangs ended."""
    settings = {"history": {"fabric/s/l1": 0.2, "fabric/s/l2": 1.0}}
    assert leaves_of(plan(fabric(2, **settings), wishing(3))) == ["l2"]
    assert averaged(1.0, False) == pytest.approx(0.7)


def test_the_wish_is_part_of_the_request():
    """Another strategy is another request, so it is not answered by the old reservation."""
    plain, wish = gang(2), wishing(2, reserve="domain", strategy="distributed")
    assert fingerprint(plain) != fingerprint(wish)
    moment = fabric()
    held = moment.with_reservation(reservation_for(moment, wish, plan(moment, wish)))
    assert plan(held, wish).replayed


def test_a_gang_that_cannot_fit_gets_the_ordinary_answer():
    """Its words and numbers are those of any other gang."""
    assert plan(fabric(), wishing(25)).decision == "rejected"


def test_without_a_level_above_the_host_the_rules_are_not_followed():
    """A cluster that knows only hosts."""
    answer = plan(snapshot([node("a"), node("b")]), wishing(2))
    assert answer.decision == "admitted"
    assert "not followed" in answer.warnings[0]


@pytest.mark.parametrize("wish", [{}, {"gbps": 100.0}, {"domain": "l1"}, {"strategy": "distributed"}])
def test_a_topology_without_a_node_in_its_leaves_is_no_fabric(wish):
    """The Topology has a level above the host, but no node carries its label."""
    bare = [replace(node(name), labels={HOSTNAME: name}) for name in "ab"]
    answer = plan(snapshot(bare, [Topology("fabric", ("leaf", HOSTNAME))]), wishing(2, **wish))
    assert answer.decision == "admitted"
    assert any("not followed" in warning for warning in answer.warnings)


def config(**spec: object) -> dict[str, object]:
    """The ConfigMap of the leaf-spine scheduler."""
    content = {"apiVersion": "topology.scheduler/v1alpha1", "kind": "SchedulerConfig", "spec": spec}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "topology-scheduler-config", "namespace": "kube-system"},
        "data": {"config.yaml": yaml.safe_dump(content)},
    }


def test_weights_and_limits_are_read_from_the_config_map():
    """Weights are normalised; what is not stated keeps its default, and other ConfigMaps are left aside."""
    stated = config(scoringWeights={"topologyAlignment": 3, "domainUtilization": 1})
    limits = config(topologyConstraints={"maxNodesPerLeaf": 8})
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": ": no yaml ["}}
    settings = read([("c.yaml", [stated, limits, other])]).base.settings
    assert settings.weights["topologyAlignment"] == 0.75
    assert sum(settings.weights.values()) == 1
    assert (settings.nodes_per_leaf, settings.gpus_per_leaf) == (8, 32)
    assert sum(WEIGHTS.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"scoringWeights": {"topologyAlignment": -1}}, "not zero or more"),
        ({"scoringWeights": {"luck": 1}}, "is no weight"),
        ({"scoringWeights": {"topologyAlignment": "much"}}, "expected a number"),
        ({"scoringWeights": {"topologyAlignment": 0}}, "above zero"),
        ({"topologyConstraints": {"maxNodesPerLeaf": 0}}, "1 or more"),
        ({"topologyConstraints": {"maxGPUsPerLeaf": True}}, "1 or more"),
    ],
)
def test_a_bad_config_names_its_field(spec, message):
    """One line with the key of the data and what is wrong."""
    with pytest.raises(InputError, match=message) as caught:
        with_config(DEFAULTS, config(**spec), Where("c.yaml", "ConfigMap x"))
    assert caught.value.where.field == "data[config.yaml]"


def test_no_more_than_48_sets_of_leaves_are_tried(monkeypatch):
    """Thirty leaves of three hosts: 16 pods with most of a node's CPU want four leaves, too small, as are
    five. Each leaf has a set of either size around it, so that six leaves, which would serve, are beyond the
    bound. Leaves with too few GPUs are not tried."""
    tried: list[int] = []

    def counted(problem, budget=None):
        tried.append(1)
        return place(problem, budget)

    monkeypatch.setattr("planner.extensions.place.place", counted)
    pair = (pod_set(8, shape(gpu=1, cpu=40), name="a"), pod_set(8, shape(gpu=1, cpu=48), name="b"))
    wishing_pair = replace(gang(*pair, reserve="nodes"), fabric=FabricWish(stated=True))
    answer = plan(fabric(30, 3), wishing_pair)
    assert answer.decision == "admitted"
    assert len(tried) == 1 + 48, "the plan without the rules, and 48 sets of leaves"
    assert "leaf-spine rules: no 4 adjacent leaves have room for 16 nodes" in answer.warnings


@pytest.mark.parametrize("strategy", ["consolidated", "balanced", "distributed"])
def test_the_order_of_nodes_and_links_does_not_matter(strategy):
    """The same fabric listed backwards gives the same plan."""
    moment = fabric()
    links = {"fabric": tuple(reversed(moment.base.links["fabric"]))}
    backwards = snapshot(reversed(list(moment.nodes.values())), [FABRIC], links=links)
    group = wishing(8, strategy=strategy)
    assert plan(backwards, group).assignments == plan(moment, group).assignments


def test_a_gang_on_two_leaves_holds_both_whole():
    """The leaf-spine rules choose the leaves; what is held is as for any gang."""
    answer = plan(fabric(), wishing(6, reserve="domain"))
    assert answer.reserves == (("s", "l1"), ("s", "l2"))


def test_an_opened_leaf_serves_before_a_pristine_one():
    """Availability counts as enough or not, so that what is in use already decides."""
    moment = fabric()
    other = gang(1, name="default/Job/other", reserve="nodes")
    held = moment.with_reservation(reservation_for(moment, other, plan(moment, other)))
    opened = leaves_of(plan(moment, other))
    assert leaves_of(plan(held, wishing(2))) == opened


def test_stated_limits_are_hard_and_queue_a_gang():
    """Four leaves of two nodes each at most; with one leaf full a gang of eight waits."""
    limits = {"nodes_per_leaf": 2, "gpus_per_leaf": 16, "limited": True}
    moment = fabric(4, **limits)
    assert plan(moment, wishing(8)).decision == "admitted"
    moment = moment.with_pod(BoundPod("default/x", "l1-n1", {"nvidia.com/gpu": 8, "pods": 1}))
    for host in (2, 3, 4):
        moment = moment.with_pod(BoundPod("default/x", f"l1-n{host}", {"nvidia.com/gpu": 8, "pods": 1}))
    answer = plan(moment, wishing(8))
    assert (answer.decision, answer.reason) == ("queued", "LimitPerLeaf")
    assert "room for at most 6 pods now" in answer.message
    assert answer.assignments == ()


def test_what_the_limits_never_allow_is_refused():
    """Nine whole nodes on four leaves of two each; without a ConfigMap they are placed, with a warning."""
    limits = {"nodes_per_leaf": 2, "gpus_per_leaf": 16}
    answer = plan(fabric(4, **limits, limited=True), wishing(9))
    assert (answer.decision, answer.reason) == ("rejected", "LimitPerLeaf")
    assert "2 nodes and 16 GPUs of a gang in one leaf" in answer.message
    soft = plan(fabric(4, **limits), wishing(9))
    assert soft.decision == "admitted"
    assert "leaf-spine rules" in soft.warnings[-1]


@settings(max_examples=60, deadline=None)
@given(
    in_use=st.lists(st.lists(st.sampled_from([0, 3, 4, 8]), min_size=3, max_size=3), min_size=1, max_size=3),
    gpu=st.sampled_from([1, 2, 4, 8]),
    difference=st.sampled_from([-1, 0, 1]),
    nodes_per_leaf=st.integers(1, 3),
    gpus_per_leaf=st.integers(1, 24),
)
def test_a_gang_is_admitted_where_its_pods_fit_within_the_limits_of_all_leaves(
    in_use, gpu, difference, nodes_per_leaf, gpus_per_leaf
):
    """Counted by hand: of each leaf the freest nodes, and of these no more pods than its GPUs allow. Gangs of
    as many pods, of one less and of one more.
    """
    limits = {"nodes_per_leaf": nodes_per_leaf, "gpus_per_leaf": gpus_per_leaf, "limited": True}
    moment = fabric(len(in_use), 3, **limits)
    room = 0
    for leaf, hosts in enumerate(in_use, 1):
        for host, gpus in enumerate(hosts, 1):
            requests = {"nvidia.com/gpu": gpus, "pods": 1}
            moment = moment.with_pod(BoundPod(f"default/{leaf}-{host}", f"l{leaf}-n{host}", requests))
        fitting = sorted(((8 - gpus) // gpu for gpus in hosts), reverse=True)
        room += min(sum(fitting[:nodes_per_leaf]), gpus_per_leaf // gpu)
    pods = max(1, room + difference)
    answer = plan(moment, wishing(pods, gpu=gpu))
    assert (answer.decision == "admitted") is (pods <= room), answer.message
    for leaf in leaves_of(answer):
        own = [a for a in answer.assignments if a.node.startswith(f"{leaf}-")]
        assert len({a.node for a in own}) <= nodes_per_leaf
        assert sum(a.count for a in own) * gpu <= gpus_per_leaf


def test_of_nodes_that_are_away_nothing_is_said_for_ever():
    """With a cordoned node the gang waits: nobody knows what it will hold."""
    limits = {"nodes_per_leaf": 2, "gpus_per_leaf": 16, "limited": True}
    moment = fabric(4, **limits)
    moment = moment.with_node(replace(moment.nodes["l1-n1"], cordoned=True))
    assert plan(moment, wishing(9)).decision == "queued"


def test_a_node_is_used_in_part_within_the_limit_of_gpus():
    """12 GPUs of a leaf of 8-GPU nodes: three pods of four GPUs are on two nodes, two and one."""
    limits = {"nodes_per_leaf": 4, "gpus_per_leaf": 12, "limited": True}
    answer = plan(fabric(1, **limits), wishing(3, gpu=4))
    assert answer.decision == "admitted"
    assert [a.count for a in answer.assignments] == [2, 1]
    never = plan(fabric(1, **limits), wishing(4, gpu=4))
    assert (never.decision, never.reason) == ("rejected", "LimitPerLeaf")
    assert "room for at most 3 pods" in never.message


def test_pods_with_different_numbers_of_gpus_share_the_limit():
    """12 GPUs of a leaf: a pod of eight GPUs and one of four; beside two of eight there is no room."""
    limits = {"nodes_per_leaf": 4, "gpus_per_leaf": 12, "limited": True}
    large, small = pod_set(1, shape(gpu=8), name="large"), pod_set(1, shape(gpu=4), name="small")
    pair = replace(gang(large, small, reserve="nodes"), fabric=FabricWish(stated=True))
    assert plan(fabric(1, **limits), pair).decision == "admitted"
    three = replace(pair, pod_sets=(replace(large, count=2), small))
    assert plan(fabric(1, **limits), three).decision == "queued"
    assert len(leaves_of(plan(fabric(2, **limits), three))) == 2


def test_a_small_pod_beside_a_large_one_excludes_no_leaf():
    """A leader of a whole node and eight workers of one GPU each: no node has more than eight GPUs, so the
    limit of 32 is kept on two nodes of a leaf."""
    pair = gang(pod_set(1, shape(gpu=8), name="leader"), pod_set(8, shape(gpu=1)), reserve="nodes")
    answer = plan(fabric(), replace(pair, fabric=FabricWish(stated=True)))
    assert len(leaves_of(answer)) == 1
    assert answer.warnings == ()


def test_distributed_keeps_the_limit_of_gpus():
    """Each leaf takes three pods of four GPUs: six pods on two leaves of four nodes."""
    limits = {"nodes_per_leaf": 4, "gpus_per_leaf": 12, "limited": True}
    answer = plan(fabric(2, **limits), wishing(6, gpu=4, strategy="distributed"))
    assert sorted(a.node.split("-")[0] for a in answer.assignments) == ["l1"] * 3 + ["l2"] * 3
    assert plan(fabric(2, **limits), wishing(7, gpu=4, strategy="distributed")).decision == "rejected"


def test_the_limit_holds_beside_rules_over_labels():
    """Pods spread over power supplies that cut across the leaves: each leaf keeps its twelve GPUs."""
    limits = {"nodes_per_leaf": 4, "gpus_per_leaf": 12, "limited": True}
    moment = fabric(2, **limits)
    for number, host in enumerate(list(moment.nodes.values())):
        labels = {**host.labels, "ups": f"u{number % 2}"}
        moment = moment.with_node(replace(host, labels=labels))
    spread = SpreadConstraint("ups", 1, (Requirement("app", "In", ("a",)),), 1, True)
    group = wishing(6, gpu=4)
    pods = replace(group.pod_sets[0].shape, labels={"app": "a"}, spread=(spread,))
    group = replace(group, pod_sets=(replace(group.pod_sets[0], shape=pods),))
    answer = plan(moment, group)
    counts = Counter[str]()
    for assignment in answer.assignments:
        counts[assignment.node.split("-")[0]] += assignment.count
    assert (answer.decision, counts) == ("admitted", {"l1": 3, "l2": 3})


def test_a_gang_over_the_limits_is_refused_in_a_full_cluster_too():
    """It would wait for ever: even alone it has no place. Alone, three pods of four GPUs fit, and wait."""
    moment = fabric(1, nodes_per_leaf=4, gpus_per_leaf=12, limited=True)
    for name in moment.nodes:
        moment = moment.with_pod(BoundPod(f"default/{name}", name, {"nvidia.com/gpu": 8, "pods": 1}))
    never = plan(moment, wishing(4, gpu=4))
    assert (never.decision, never.reason) == ("rejected", "LimitPerLeaf")
    assert plan(moment, wishing(3, gpu=4)).decision == "queued"


def test_a_gang_that_needs_other_nodes_of_a_leaf_than_the_roomiest_waits():
    """Three pods of a chassis: the rule of three nodes in a leaf takes the first three, which are in two."""
    chassis = {"n0": "a", "n1": "a", "n2": "b", "n3": "b", "n4": "b"}
    hosts = [
        node(name, labels={"spine": "s", "leaf": "l", "chassis": row}, gpu=8) for name, row in chassis.items()
    ]
    levels = Topology("fabric", ("spine", "leaf", "chassis", HOSTNAME))
    limits = replace(DEFAULTS, nodes_per_leaf=3, gpus_per_leaf=64, limited=True)
    pods = [
        BoundPod(f"default/{name}", name, {"nvidia.com/gpu": 8, "pods": 1}) for name in ("n1", "n2", "n3")
    ]
    moment = snapshot(hosts, [levels], pods, settings=limits)
    group = gang(3, gpu=8, required="chassis", reserve="nodes")
    assert plan(moment, replace(group, fabric=FabricWish(stated=True))).decision == "queued"


def test_three_kinds_of_pods_are_placed_within_the_limit_where_the_search_cannot_try_all():
    """144 GPUs on eight leaves of 28: the classes are placed one after the other, within the limit."""
    sets = [pod_set(count, shape(gpu=gpu), name=f"s{gpu}") for count, gpu in ((16, 4), (32, 1), (16, 3))]
    group = replace(gang(*sets, reserve="nodes"), fabric=FabricWish(stated=True))
    answer = plan(fabric(8, 8, nodes_per_leaf=4, gpus_per_leaf=28, limited=True), group)
    used = Counter[str]()
    for assignment in answer.assignments:
        used[assignment.node.split("-")[0]] += assignment.count * int(assignment.pod_set[1:])
    assert (answer.decision, sum(used.values())) == ("admitted", 144)
    assert max(used.values()) <= 28


def test_the_limit_counts_all_pods_of_a_gang_whose_kinds_are_each_spread_over_a_label(monkeypatch):
    """Eight GPUs of a leaf: two pods of four GPUs of either kind, whose search together is made to end."""
    monkeypatch.setattr(
        "planner.search.place._searched",
        lambda problem, tree, request, budget: SearchResult(tree, request, None, (), complete=False),
    )
    hosts = [
        node(f"l{leaf}-{row}", labels={"leaf": f"l{leaf}", "row": row}, gpu=8)
        for leaf in (1, 2)
        for row in "ab"
    ]
    sets = [
        pod_set(
            2,
            replace(
                shape(gpu=4, cpu=cores),
                labels={"app": app},
                spread=(SpreadConstraint("row", 1, (Requirement("app", "In", (app,)),)),),
            ),
            name=app,
        )
        for app, cores in (("a", 1), ("b", 2))
    ]
    asked = resolve(snapshot(hosts, [Topology("fabric", ("leaf", HOSTNAME))]), gang(*sets, reserve="nodes"))
    best = place(asked.limited_to("fabric", GpuLimit(0, 8))).best
    assert best is not None
    assert best.placement is not None
    pods = [sum(counts) for _, counts in best.placement.pods_by_node]
    assert pods == [1, 1, 1, 1]


def test_spread_constraints_count_the_domains_of_all_leaves():
    """Each leaf is a zone, so no leaf alone holds the gang. With `nodeAffinityPolicy: Honor`, kube-scheduler
    leaves out nodes by the pods' own affinity, and the choice of leaves is no affinity.
    """
    moment = fabric(2)
    nodes = [replace(n, labels={**n.labels, "zone": n.labels["leaf"]}) for n in moment.nodes.values()]
    moment = snapshot(nodes, moment.topologies, links={"fabric": moment.base.links["fabric"]})
    constraint = SpreadConstraint("zone", 1, (Requirement("app", "In", ("a",)),), by_affinity=True)
    pod = replace(shape(gpu=8), labels={"app": "a"}, spread=(constraint,))
    group = replace(gang(pod_set(4, pod), reserve="none"), fabric=FabricWish(stated=True))
    answer = plan(moment, group)
    zones = Counter(moment.nodes[seat.node].labels["zone"] for seat in answer.assignments)
    assert (answer.decision, zones) == ("admitted", {"l1": 2, "l2": 2})
