"""Required pod affinity and anti-affinity: with bound pods, reserved pods, and within a gang."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.manifests.cluster import read
from planner.manifests.pods.pod import shape_of
from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.pod import BoundPod
from planner.model.podgroup import PodSet
from planner.model.topology import HOSTNAME, Topology
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, node, topology

HOST = "kubernetes.io/hostname"


def term(key: str = HOST, app: str = "a", **fields: object) -> dict[str, object]:
    """A term over pods of an app."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def affinity(*terms: dict[str, object], near: bool = False) -> dict[str, object]:
    """A pod affinity with these required terms."""
    field = "podAffinity" if near else "podAntiAffinity"
    return {field: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def pods(count: int, rules: dict[str, object] | None = None, app: str = "a", name: str = "worker") -> PodSet:
    """A PodSet of pods of an app, of one GPU each."""
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}], "affinity": rules or {}}
    return PodSet(name, count, shape_of(spec, Where(), labels={"app": app}))


def bound(node_name: str, app: str = "a", space: str = "default", rules: dict[str, object] | None = None):
    """A pod on a node."""
    terms = shape_of({"affinity": rules or {}}, Where()).terms
    return BoundPod(f"{space}/{app}-{node_name}", node_name, {"pods": 1}, labels={"app": app}, terms=terms)


def cluster(*bound_pods: BoundPod):
    """Two racks of two hosts; each rack's first host is on power supply u1, the second on u2."""
    nodes = [
        node(f"{rack}-{n}", labels={"rack": rack, "ups": f"u{n}"}, gpu=4)
        for rack in ("r1", "r2")
        for n in (1, 2)
    ]
    return snapshot(nodes, [topology("rack")], bound_pods)


def used(answer) -> dict[str, int]:
    """The number of pods by node."""
    counts: dict[str, int] = {}
    for assignment in answer.assignments:
        counts[assignment.node] = counts.get(assignment.node, 0) + assignment.count
    return counts


@pytest.mark.parametrize(
    ("key", "nodes"), [(HOST, {"r1-1", "r1-2"}), ("rack", {"r1-1", "r2-1"}), ("ups", {"r1-1", "r1-2"})]
)
def test_pods_of_one_set_are_apart_over_any_label(key, nodes):
    """By host, by a level, and by a label that is no level."""
    answer = plan(cluster(), gang(pods(2, affinity(term(key))), reserve="nodes"))
    assert used(answer) == dict.fromkeys(nodes, 1)


@pytest.mark.parametrize("key", ["rack", "ups"])
def test_more_pods_than_domains_can_never_fit(key):
    """There are two racks and two supplies; the message says that two pods would work."""
    answer = plan(cluster(), gang(pods(3, affinity(term(key))), reserve="nodes"))
    assert answer.decision == "rejected"
    assert "room for 2 of 3 pods" in answer.message
    assert "Would work: 2 pods" in answer.message


def test_bound_pods_keep_away_those_that_shun_them():
    """By host and by rack, and only in the namespace that is meant."""
    moment = cluster(bound("r1-1"), bound("r2-1", space="other"))
    assert "r1-1" not in used(plan(moment, gang(pods(3, affinity(term())), reserve="nodes")))
    rack_answer = plan(moment, gang(pods(1, affinity(term("rack"))), reserve="nodes"))
    assert set(used(rack_answer)) <= {"r2-1", "r2-2"}
    every = affinity(term("rack", namespaceSelector={}))
    answer = plan(moment, gang(pods(1, every), reserve="nodes"))
    assert (answer.decision, answer.obstacles) == ("queued", {"pod anti-affinity": 4})
    assert plan(moment, gang(pods(1, affinity(term("rack", namespaces=["other"]))))).domain[0] == "r1"


def test_bound_pods_that_shun_others_keep_them_away_too():
    """A gang without any rule of its own."""
    moment = cluster(bound("r1-1", app="x", rules=affinity(term("rack"))))
    assert set(used(plan(moment, gang(pods(8), reserve="nodes")))) == {"r2-1", "r2-2"}
    assert plan(moment, gang(pods(8, app="b"), reserve="nodes")).domain == ("r1",)


def test_pods_that_are_being_deleted_keep_others_away_until_they_have_ended():
    """In both directions, as in kube-scheduler; only topology spread no longer counts them."""
    shunned = replace(bound("r1-1"), terminating=True)
    shunning = replace(bound("r1-1", app="x", rules=affinity(term("rack"))), terminating=True)
    answer = plan(cluster(shunned), gang(pods(1, affinity(term("rack"))), reserve="nodes"))
    assert set(used(answer)) <= {"r2-1", "r2-2"}
    assert set(used(plan(cluster(shunning), gang(pods(8), reserve="nodes")))) == {"r2-1", "r2-2"}


def test_pods_of_another_group_of_a_leader_worker_set_are_not_those_of_the_own_group():
    """LeaderWorkerSet labels the groups at creation; workers follow their own leader, not an older one."""
    group_key = "leaderworkerset.sigs.k8s.io/group-key"
    labels = {"app": "leader", group_key: "older"}
    older = replace(bound("r1-1"), labels=labels, requests={"nvidia.com/gpu": 1})

    def planned(*keys: str):
        follow = affinity(term("rack", app="leader", matchLabelKeys=list(keys)), near=True)
        sets = pods(1, app="leader", name="leader"), pods(7, follow, app="worker")
        return used(plan(cluster(older), gang(*sets)))

    assert {"r1-1", "r1-2"} < set(planned()), "the workers beside the older leader"
    assert planned("example.com/other") == planned()
    assert set(planned(group_key)) == {"r2-1", "r2-2"}


def beside(count: int, *keys: str, app: str = "launcher", to: str = "worker") -> PodSet:
    """Pods with affinity to the pods of another app."""
    return pods(count, affinity(*(term(key, app=to) for key in keys), near=True), app=app, name=app)


@pytest.mark.parametrize("key", [HOST, "rack", "ups"])
def test_pods_beside_workers_of_several_domains_start_with_them(key):
    """The workers fill three hosts and most of the fourth: no domain of the label has room for all."""
    answer = plan(cluster(), gang(pods(14, app="worker"), beside(2, key), reserve="nodes"))
    assert answer.decision == "admitted"
    assert sum(used(answer).values()) == 16


def test_what_has_no_room_beside_any_worker_is_not_rejected_for_being_apart():
    """Seventeen pods are too many for the cluster, not for a host."""
    answer = plan(cluster(), gang(pods(14, app="worker"), beside(3, HOST)))
    assert answer.decision == "rejected"
    assert "room for 16 of 17 pods" in answer.message
    assert "required in one node" not in answer.message


def test_workers_follow_their_own_launcher_where_that_of_another_job_has_no_room_beside_it():
    """Both launchers match, and kube-scheduler takes a node beside either."""
    other = replace(bound("r1-1", app="launcher"), requests={"nvidia.com/gpu": 4})
    full = replace(bound("r1-2"), requests={"nvidia.com/gpu": 4})
    workers = beside(7, "rack", app="worker", to="launcher")
    launcher = pods(1, app="launcher", name="launcher")
    assert set(used(plan(cluster(other, full), gang(launcher, workers)))) == {"r2-1", "r2-2"}
    near = plan(
        cluster(other), gang(launcher, beside(3, "rack", app="worker", to="launcher"), reserve="nodes")
    )
    assert "r1-2" in used(near), "beside the other launcher where there is room"


def test_pods_that_wait_for_each_other_wait_for_a_third():
    """Neither may be the first; a bound pod that one of them matches lets both start."""
    sets = beside(1, HOST, app="a", to="b"), beside(1, HOST, app="b", to="a")
    answer = plan(cluster(), gang(*sets, reserve="nodes"))
    assert (answer.decision, answer.obstacles["pod affinity"]) == ("queued", 4)
    assert set(used(plan(cluster(bound("r2-1", app="b")), gang(*sets, reserve="nodes")))) == {"r2-1"}


def test_reserved_pods_count_before_they_are_bound():
    """In both directions, and after the reservation was written and read."""
    moment = cluster()
    first = gang(pods(1, affinity(term("rack"))), name="default/Job/first", reserve="nodes")
    held = reservation_from(
        reservation_manifest(reservation_for(moment, first, plan(moment, first))), Where()
    )
    moment = moment.with_reservation(held)
    assert set(used(plan(moment, gang(pods(4), reserve="nodes")))) == {"r2-1"}
    assert plan(moment.ended("default/Job/first"), gang(pods(8), reserve="nodes")).domain == ("r1",)


def test_pods_with_affinity_to_their_own_kind_follow_reserved_ones():
    """Whichever gang's pods are bound first, kube-scheduler binds the others only beside them."""
    near, moment = affinity(term("rack"), near=True), cluster()
    first = gang(pods(5, near), name="default/Job/first", reserve="nodes")
    moment = moment.with_reservation(reservation_for(moment, first, plan(moment, first)))
    second = gang(pods(3, near), reserve="nodes")
    assert plan(moment, second).domain[0] == "r1"
    waits = plan(moment, gang(pods(4, near), reserve="nodes"))
    assert (waits.decision, waits.obstacles["pod affinity"]) == ("queued", 2)
    assert plan(moment, gang(pods(4, near, app="b"), reserve="nodes")).decision == "queued"
    beside_bound = cluster(bound("r2-1")).with_reservation(moment.reservations[0])
    assert set(used(plan(beside_bound, second))) <= {"r2-1", "r2-2"}


def test_a_gangs_own_bound_pods_are_none_of_its_neighbours():
    """Planned again, it may be where it is."""
    moment = cluster()
    group = gang(pods(4, affinity(term())), reserve="nodes")
    held = reservation_for(moment, group, plan(moment, group))
    bound_pods = [replace(bound(name), reservation=held.id) for name in moment.nodes]
    assert plan(cluster(*bound_pods), group).decision == "admitted"


@pytest.mark.parametrize(("key", "decision"), [("rack", "queued"), ("power-feed", "rejected")])
def test_affinity_over_a_label_that_no_node_has_can_never_hold(key, decision):
    """Others may still be bound in a rack; no node will be in a domain of a label that none carries."""
    near = affinity(term(key, app="cache"), near=True)
    assert plan(cluster(), gang(pods(1, near))).decision == decision


@pytest.mark.parametrize("key", [HOST, "rack", "ups"])
def test_sets_that_shun_each_other_share_no_domain(key):
    """The leader shuns the workers; they say nothing of it."""
    leader = pods(1, affinity(term(key, app="b")), name="leader")
    answer = plan(cluster(), gang(leader, pods(4, app="b"), reserve="nodes"))
    value = {n.name: n.name if key == HOST else n.labels[key] for n in cluster().nodes.values()}
    worker_values = {
        value[assignment.node] for assignment in answer.assignments if assignment.pod_set == "worker"
    }
    (own,) = (value[assignment.node] for assignment in answer.assignments if assignment.pod_set == "leader")
    assert own not in worker_values


def test_affinity_follows_pods_that_are_bound():
    """Near a pod of the cache; where there is none, it waits for one."""
    near = affinity(term("rack", app="cache"), near=True)
    assert plan(cluster(bound("r2-2", app="cache")), gang(pods(4, near))).domain[0] == "r2"
    answer = plan(cluster(), gang(pods(4, near)))
    assert (answer.decision, answer.obstacles) == ("queued", {"pod affinity": 4})


@pytest.mark.parametrize("key", ["rack", "ups"])
def test_affinity_to_ones_own_is_one_domain_for_all(key):
    """Eight pods fill a rack, or the two hosts of a supply; nine have no place."""
    near = affinity(term(key), near=True)
    answer = plan(cluster(), gang(pods(8, near), reserve="nodes"))
    assert {cluster().nodes[name].labels[key] for name in used(answer)} in ({"r1"}, {"u1"})
    assert plan(cluster(), gang(pods(9, near), reserve="nodes")).decision == "rejected"


def test_match_label_keys_narrow_a_term_to_pods_of_the_same_value():
    """Only those of the same version are shunned."""
    rule = affinity({"topologyKey": "rack", "labelSelector": {}, "matchLabelKeys": ["version", "missing"]})
    spec = {"affinity": rule, "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    shape = shape_of(spec, Where(), labels={"version": "2"})
    old = replace(bound("r1-1"), labels={"version": "1"})
    same_version = replace(bound("r2-1"), labels={"version": "2"})
    assert plan(cluster(old, same_version), gang(PodSet("worker", 1, shape))).domain[0] == "r1"


SPACES = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}
    for name, team in (("default", "red"), ("other", "blue"))
]


@pytest.mark.parametrize(("team", "rack"), [("blue", "r2"), ("green", "r1")])
def test_a_namespace_selector_means_the_namespaces_that_carry_the_labels(team, rack):
    """A pod of namespace `other`, of team blue, is in r1; where no Namespace is known, it might be of any."""
    asked = gang(pods(1, affinity(term("rack", namespaceSelector={"matchLabels": {"team": team}}))))
    moment = cluster(bound("r1-1", space="other"))
    spaces = read([("spaces.yaml", SPACES)]).base.spaces
    with_spaces = snapshot(moment.nodes.values(), moment.topologies, moment.pods, spaces=spaces)
    assert plan(with_spaces, asked).domain[0] == rack
    assert plan(moment, asked).domain[0] == "r2"


def test_a_namespace_selector_is_kept_in_a_reservation():
    """As it was read."""
    rule = affinity(term("rack", namespaceSelector={"matchLabels": {"team": "blue"}}))
    group, moment = gang(pods(1, rule), reserve="nodes"), cluster()
    held = reservation_for(moment, group, plan(moment, group))
    again = reservation_from(reservation_manifest(held), Where())
    assert dict(again.traits)["worker"].terms == group.pod_sets[0].shape.terms


def test_bound_pods_are_read_with_their_anti_affinity():
    """From what kubectl prints."""
    host = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a"},
        "status": {"allocatable": {"pods": "9"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "x"}},
        "spec": {"nodeName": "a", "affinity": affinity(term())},
    }
    (bound_pod,) = read([("c.yaml", [host, pod])]).pods
    assert [term.key for term in bound_pod.terms] == [HOST]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"labelSelector": {}}, "topologyKey: a term names the node label"),
        (
            {"topologyKey": "rack", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}},
            "'Gt'",
        ),
        ({"topologyKey": "rack", "labelSelector": "app=a"}, "labelSelector: expected a mapping"),
        ({"topologyKey": "rack", "labelSelector": {}, "namespaces": "all"}, "namespaces: expected a list"),
    ],
)
def test_a_malformed_term_is_refused_by_field(wrong, message):
    """In words, with the field."""
    with pytest.raises(InputError, match=message):
        shape_of({"affinity": affinity(wrong)}, Where())


def test_pods_together_on_a_host_and_apart_over_racks_fit_nowhere():
    """What must be together is not cut down to the one pod that a rack may hold."""
    rules = affinity(term(HOST), near=True) | affinity(term("rack"))
    answer = plan(cluster(), gang(pods(2, rules), pods(2, app="b", name="other"), reserve="nodes"))
    assert answer.decision == "rejected"


def test_racks_of_one_name_in_two_zones_are_one_rack_to_pods_apart():
    """As kube-scheduler means it: the rule is over the label's value, wherever the rack stands."""
    nodes = [
        node(f"{zone}-{rack}", labels={"zone": zone, "rack": rack}, gpu=4)
        for zone in ("z0", "z1")
        for rack in ("r0", "r1")
    ]
    moment = snapshot(nodes, [topology("zone", "rack")], ())
    apart = affinity(term("rack"))
    answer = plan(moment, gang(pods(2, apart), reserve="nodes"))
    assert {name[-2:] for name in used(answer)} == {"r0", "r1"}
    assert plan(moment, gang(pods(3, apart), reserve="nodes")).decision == "rejected"


def test_pods_with_two_affinity_terms_need_pods_that_match_each_of_them():
    """kube-scheduler counts a pod for a term only if it matches all: not a pod by app, another by tier."""
    near_each = affinity(term("rack", "a"), term("rack", "b"), near=True)
    group = gang(pods(1, near_each), reserve="nodes")
    answer = plan(cluster(bound("r1-1", "a"), bound("r1-2", "b")), group)
    assert (answer.decision, answer.reason) == ("queued", "NoRoomNow")
    assert "All 4 nodes are excluded by pod affinity" in answer.message


def test_a_pod_that_matches_all_affinity_terms_attracts():
    """Terms over the rack and over the power supply, of which the same pod fulfils each."""
    group = gang(pods(1, affinity(term("rack"), term("ups"), near=True)), reserve="nodes")
    assert used(plan(cluster(bound("r2-2")), group)) == {"r2-2": 1}


def test_a_pod_on_a_node_in_no_domain_attracts_no_pods():
    """The first pods of a job may then be in any rack together, as for kube-scheduler."""
    office = node("office", gpu=0)
    moment = snapshot([*cluster().nodes.values(), office], [topology("rack")], [bound("office")])
    answer = plan(moment, gang(pods(8, affinity(term("rack"), near=True)), reserve="nodes"))
    assert used(answer) == {"r1-1": 4, "r1-2": 4}


@pytest.mark.parametrize(
    ("racks", "decision"),
    [({"a-1": "r1", "b-1": "r1"}, "rejected"), ({"a-1": "r1", "b-1": "r2"}, "admitted")],
)
def test_pods_are_apart_over_the_racks_of_several_topologies(racks, decision):
    """Neither pool has two racks, so the pods are on nodes of both pools, but never twice in a rack."""
    nodes = [node(name, labels={"pool": name[0], "rack": rack}) for name, rack in racks.items()]
    pools = [Topology(f"pool-{pool}", ("rack", HOSTNAME), {"pool": pool}) for pool in "ab"]
    answer = plan(snapshot(nodes, pools), gang(pods(2, affinity(term("rack"))), reserve="nodes"))
    assert answer.decision == decision
    assert used(answer) == (dict.fromkeys(racks, 1) if decision == "admitted" else {})
