"""Hard topology spread constraints: read, counted as kube-scheduler counts, planned, and explained.

zone z1   n1 n2      power supply u1: n1 n3 n5
zone z2   n3 n4                   u2: n2 n4
zone z3   n5
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.pods.pod import shape_of
from planner.model.errors import InputError, Where
from planner.model.labels import Taint
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.podgroup import PodSet
from planner.model.reservation import reservation_id
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, gang, node, topology

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WHERE = {"n1": ("z1", "u1"), "n2": ("z1", "u2"), "n3": ("z2", "u1"), "n4": ("z2", "u2"), "n5": ("z3", "u1")}


def nodes(**words: int) -> list[Node]:
    """The nodes of the drawing."""
    return [node(name, labels={ZONE: zone, "ups": ups}, **words) for name, (zone, ups) in WHERE.items()]


def cluster(*bound_pods: BoundPod, **words: int) -> Snapshot:
    """The drawing with these pods bound."""
    return snapshot(nodes(**words), [topology(ZONE)], bound_pods)


def bound(on: str, app: str = "a", space: str = "default", **used: int) -> BoundPod:
    """A pod of an app on a node."""
    return BoundPod(f"{space}/{app}-{on}", on, amounts(pods=1, **used), labels={"app": app})


def spread(key: str = ZONE, **fields: object) -> dict[str, object]:
    """A spread constraint over pods of app a."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        **fields,
    }


def pods(
    count: int, *rules: dict[str, object], app: str = "a", name: str = "w", gpu: int = 1, **spec: object
) -> PodSet:
    """A PodSet with these constraints."""
    pod_spec = {
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": str(gpu)}}}],
        "topologySpreadConstraints": list(rules),
        **spec,
    }
    return PodSet(name, count, shape_of(pod_spec, Where(), labels={"app": app}))


def used(moment: Snapshot, *sets: PodSet, key: str = ZONE, **options: object) -> Counter[str]:
    """The number of pods by label value for an admitted gang with a complete search."""
    answer = plan(moment, gang(*sets, reserve="nodes", **options))
    assert (answer.decision, answer.warnings) == ("admitted", ()), answer
    counts: Counter[str] = Counter()
    for assignment in answer.assignments:
        counts[assignment.node if key == HOST else moment.nodes[assignment.node].labels[key]] += (
            assignment.count
        )
    return counts


@pytest.mark.parametrize(("count", "zones"), [(3, [1, 1, 1]), (4, [1, 1, 2]), (8, [2, 3, 3])])
def test_pods_are_spread_over_zones_within_the_skew(count, zones):
    """Without the constraint one node would do."""
    assert len(used(cluster(), pods(count))) == 1
    assert sorted(used(cluster(), pods(count, spread())).values()) == zones


@pytest.mark.parametrize(("key", "max_pods"), [(HOST, 1), ("ups", 2)])
def test_pods_are_spread_over_hosts_and_over_any_label(key, max_pods):
    """Four pods: on four hosts, or two on each supply."""
    assert max(used(cluster(), pods(4, spread(key)), key=key).values()) == max_pods


def test_a_larger_skew_leaves_more_together():
    """Of four pods three may be in one zone when another has one and the skew is three."""
    assert sorted(used(cluster(), pods(4, spread(maxSkew=3))).values()) in ([4], [1, 3])
    assert list(used(cluster(), pods(3, spread(maxSkew=3))).values()) == [3]


def test_pods_that_are_there_count_in_their_namespace():
    """One in z1 and one in z2: the next goes to z3; those of other apps and namespaces are none of it."""
    bound_pods = (bound("n1"), bound("n3"), bound("n5", app="b"), bound("n5", space="other"))
    assert used(cluster(*bound_pods), pods(1, spread())) == {"z3": 1}


def test_reserved_pods_count_before_they_are_bound():
    """A gang that has a place for one pod: of another two none comes to its zone."""
    moment = cluster()
    first = gang(pods(1), name="default/Job/first", reserve="nodes")
    (zone,) = used(moment, pods(1))
    moment = moment.with_reservation(reservation_for(moment, first, plan(moment, first)))
    assert set(used(moment, pods(2, spread()))) == {"z1", "z2", "z3"} - {zone}


def held(count: int, *bound_pods: BoundPod) -> Snapshot:
    """The drawing with this many pods of app a reserved on n1, some of them bound."""
    moment = cluster(*bound_pods)
    first = gang(pods(count, nodeSelector={HOST: "n1"}), name="default/Job/first", reserve="nodes")
    return moment.with_reservation(reservation_for(moment, first, plan(cluster(), first)))


def test_each_pod_that_a_place_is_reserved_for_counts():
    """Two are to come to n1: of four more two go to each other zone."""
    assert used(held(2), pods(4, spread())) == {"z2": 2, "z3": 2}


def test_a_bound_pod_and_its_reserved_place_count_once():
    """One of the two is bound on its seat: they are two all the same."""
    seated = replace(bound("n1"), reservation=reservation_id("default/Job/first"))
    assert used(held(2, seated), pods(4, spread())) == {"z2": 2, "z3": 2}


def test_a_pod_that_is_being_deleted_no_longer_counts_but_uses_its_node():
    """With a pod in each zone any zone may have the next one, and z3 must have it once its own is deleted: it
    waits for that pod to end if this has all of z3's GPUs.
    """

    def zones(deleted: bool, gpu: int) -> Snapshot:
        third = replace(bound("n5", gpu=gpu), terminating=deleted)
        return cluster(bound("n1", gpu=7), bound("n3"), third)

    assert used(zones(deleted=False, gpu=1), pods(1, spread())) == {"z1": 1}
    assert used(zones(deleted=True, gpu=1), pods(1, spread())) == {"z3": 1}
    assert used(zones(deleted=False, gpu=8), pods(1, spread())) == {"z1": 1}
    assert plan(zones(deleted=True, gpu=8), gang(pods(1, spread()))).decision == "queued"


def test_the_seat_of_a_pod_that_is_being_deleted_counts_for_the_pod_that_comes_after_it():
    """One of two reserved pods on n1 is being replaced: they are two all the same."""
    seated = replace(bound("n1"), reservation=reservation_id("default/Job/first"), terminating=True)
    assert used(held(2, seated), pods(4, spread())) == {"z2": 2, "z3": 2}


def test_a_full_zone_keeps_the_others_from_taking_more_and_is_named():
    """Nothing has room in z3, so z1 and z2 may have one pod each."""
    moment = cluster(bound("n5", app="b", gpu=8))
    answer = plan(moment, gang(pods(3, spread()), reserve="nodes"))
    assert answer.decision == "queued"
    assert "Would work now: 2 pods" in answer.message
    assert (
        f"Topology spread over {ZONE} (maxSkew 1): zone z3 has 0 such pods and room for 0, "
        "so that no zone may have more than 1." in answer.message
    )


def test_more_domains_than_there_are_hold_the_fewest_at_zero():
    """`minDomains: 4` of three zones: one pod each, and a fourth never."""
    assert used(cluster(), pods(3, spread(minDomains=4))) == {"z1": 1, "z2": 1, "z3": 1}
    answer = plan(cluster(), gang(pods(4, spread(minDomains=4)), reserve="nodes"))
    assert answer.decision == "rejected"
    assert "there are 3 of the 4 domains that minDomains asks for" in answer.message


def test_domains_are_those_that_the_pods_selectors_let_it_be_in():
    """`nodeAffinityPolicy` Honor, the default: two supplies, both in z1; Ignore: z2 and z3 stay empty."""
    selector = {"nodeSelector": {ZONE: "z1"}}
    assert used(cluster(), pods(4, spread(), **selector)) == {"z1": 4}
    answer = plan(cluster(), gang(pods(2, spread(nodeAffinityPolicy="Ignore"), **selector), reserve="nodes"))
    assert answer.decision == "rejected"


def test_tainted_nodes_are_domains_unless_taints_are_honored():
    """z3 has a taint: an empty domain that none may fill, or none at all."""
    hosts = [
        Node(n.name, n.labels, n.allocatable, taints=(Taint("t"),) if n.name == "n5" else ()) for n in nodes()
    ]
    moment = snapshot(hosts, [topology(ZONE)])
    assert plan(moment, gang(pods(4, spread()), reserve="nodes")).decision == "rejected"
    assert used(moment, pods(4, spread(nodeTaintsPolicy="Honor"))) == {"z1": 2, "z2": 2}


def test_nodes_without_the_label_take_none_of_the_pods():
    """As kube-scheduler has it."""
    bare = node("bare", gpu=8)
    moment = snapshot([*nodes(gpu=1), bare], [topology(ZONE)])
    assert "bare" not in used(moment, pods(4, spread("ups")), key=HOST)


def test_a_leader_and_workers_are_spread_together():
    """Both carry the app's label and the constraint."""
    counts = used(cluster(), pods(1, spread(), name="l", gpu=2), pods(5, spread()))
    assert sorted(counts.values()) == [2, 2, 2]


def test_pod_sets_with_other_node_selectors_are_counted_on_other_nodes():
    """kube-scheduler counts for the second PodSet on n1, n3 and n5 only, and n1 is full: its pods must not
    share n5. Counted on all nodes they might, since the first PodSet has a pod in each other zone (n2, n4).
    """
    moment = cluster(bound("n1", app="b", gpu=8))
    on_u1 = pods(2, spread(), name="u1", gpu=4, nodeSelector={"ups": "u1"})
    answer = plan(moment, gang(pods(2, spread(), gpu=8), on_u1, reserve="nodes"))
    assert answer.decision == "admitted"
    zones = dict.fromkeys(("z1", "z2", "z3"), 0)
    for assignment in answer.assignments:
        if moment.nodes[assignment.node].labels["ups"] == "u1":
            zones[moment.nodes[assignment.node].labels[ZONE]] += assignment.count
    assert max(zones.values()) - min(zones.values()) <= 1


def test_other_pods_are_counted_on_the_nodes_that_the_plan_pins_to():
    """Pods of app b keep clear of app a. z1 has two of app a, both on n1, and z2 one, on n3, which is full.

    Over all nodes a pod on n1 keeps the skew. Pinned to n1 and n4, kube-scheduler counts none in z2.
    """
    two = (bound("n1"), BoundPod("default/second", "n1", amounts(pods=1), labels={"app": "a"}))
    full = (bound("n2", app="c", gpu=8), bound("n3", gpu=8), bound("n5", gpu=8))
    answer = plan(cluster(*two, *full), gang(pods(2, spread(), app="b", gpu=8), reserve="nodes"))
    assert (answer.decision, answer.reason) == ("queued", "NoRoomNow")
    roomy = plan(cluster(*two, *full[:2]), gang(pods(2, spread(), app="b", gpu=8), reserve="nodes"))
    assert {assignment.node for assignment in roomy.assignments} == {"n4", "n5"}


def test_fewest_domains_count_the_domains_that_the_pods_are_pinned_to():
    """`minDomains: 2`, and app a has one pod in z1 and two in z2, all on n1 and n3.

    Pods of app b on n2 and n4 are pinned to two zones without any of app a. Over all nodes the skew is one.
    """
    full = (bound("n1", gpu=8), bound("n3", gpu=4), bound("n3", app="c", gpu=4))
    second = BoundPod("default/second", "n3", amounts(pods=1), labels={"app": "a"})
    nodes_of_two_zones = [each for each in nodes() if each.name != "n5"]
    moment = snapshot(nodes_of_two_zones, [topology(ZONE)], (*full, second))
    answer = plan(moment, gang(pods(2, spread(minDomains=2), app="b", gpu=8), reserve="nodes"))
    assert {assignment.node for assignment in answer.assignments} == {"n2", "n4"}


def test_zones_and_hosts_at_once():
    """Five pods on five hosts, as even over zones as can be."""
    rules = (spread(), spread(HOST))
    assert used(cluster(), pods(5, *rules), key=HOST) == dict.fromkeys(WHERE, 1)


def test_a_required_zone_holds_no_more_than_the_skew():
    """The other zones stay empty, which no placement mends."""
    answer = plan(cluster(), gang(pods(2, spread()), reserve="nodes", required=ZONE))
    assert answer.decision == "rejected"
    assert list(used(cluster(), pods(1, spread()), required=ZONE).values()) == [1]


def test_what_is_soft_is_left_out():
    """`ScheduleAnyway` is kube-scheduler's to weigh."""
    assert len(used(cluster(), pods(4, spread(whenUnsatisfiable="ScheduleAnyway")))) == 1


def test_an_empty_selector_counts_no_pods():
    """As in kube-scheduler: all pods may be in one zone, but only on nodes with the label."""
    rule = spread(labelSelector={})
    moment = snapshot([*nodes(gpu=4), node("n6", gpu=8)], [topology(ZONE)], [bound("n1"), bound("n3")])
    assert used(moment, pods(8, rule)) == {"z1": 8}
    answer = plan(moment, gang(pods(1, rule, gpu=8), reserve="nodes"))
    assert answer.decision == "rejected"
    keyed = spread(labelSelector={}, matchLabelKeys=["app"])
    assert sorted(used(moment, pods(4, keyed)).values()) == [1, 1, 2]


@pytest.mark.parametrize("selector", [None, {}])
def test_without_requirements_no_pods_are_counted(selector):
    """As in kube-scheduler 1.37.2: all pods may be in one zone, and only nodes with the label take them."""
    rule = spread(labelSelector=selector)
    assert len(used(cluster(bound("n5")), pods(4, rule), key=HOST)) == 1
    answer = plan(snapshot([node("bare")], [topology(ZONE)], ()), gang(pods(1, rule), reserve="nodes"))
    assert answer.decision == "rejected"


def test_an_empty_selector_counts_the_pods_of_match_label_keys():
    """They become requirements, so that the pods of the app are spread."""
    rule = spread(labelSelector={}, matchLabelKeys=["app"])
    assert sorted(used(cluster(), pods(3, rule)).values()) == [1, 1, 1]


def test_match_label_keys_count_pods_of_the_same_value():
    """Those of an older version are none of it."""
    spec = {
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        "topologySpreadConstraints": [spread(matchLabelKeys=["version"])],
    }
    new = PodSet("w", 1, shape_of(spec, Where(), labels={"app": "a", "version": "2"}))
    old = BoundPod("default/o", "n1", amounts(pods=1), labels={"app": "a", "version": "1"})
    assert used(cluster(old), new) == {"z1": 1}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"maxSkew": 0}, r"topologySpreadConstraints\[0\].maxSkew: 0 is no maxSkew; use 1 or more"),
        ({"minDomains": -1}, "minDomains"),
        ({"topologyKey": ""}, "topologyKey: a constraint names the node label"),
        ({"whenUnsatisfiable": "Never"}, "'Never' is no whenUnsatisfiable; use one of DoNotSchedule"),
        ({"nodeTaintsPolicy": "honor"}, "use one of Ignore, Honor"),
    ],
)
def test_a_malformed_constraint_is_refused_by_field(wrong, message):
    """In words, with the valid values."""
    with pytest.raises(InputError, match=message):
        pods(1, spread(**wrong))


def with_cordoned(name: str, *bound_pods: BoundPod, gpu: int = 8) -> Snapshot:
    """The drawing with this node cordoned, which has so many GPUs."""
    cordon = (Taint("node.kubernetes.io/unschedulable"),)
    labels = {node.name: node.labels for node in nodes()}[name]
    cordoned = replace(node(name, labels=labels, gpu=gpu), cordoned=True, taints=cordon)
    others = [node for node in nodes() if node.name != name]
    return snapshot([*others, cordoned], [topology(ZONE)], bound_pods)


def test_a_gang_waits_for_the_domain_whose_only_node_is_cordoned():
    """With nodeTaintsPolicy Honor, two zones are left of the three that minDomains needs for four pods."""
    group = gang(pods(4, spread(minDomains=3, nodeTaintsPolicy="Honor")), reserve="nodes")
    assert plan(cluster(), group).decision == "admitted"
    answer = plan(with_cordoned("n5"), group)
    assert (answer.decision, answer.reason) == ("queued", "NoRoomNow")


def test_a_gang_is_refused_if_the_cordoned_domain_is_too_small_for_its_share():
    """Twenty pods have no room now; in the empty cluster the third zone counts again, and takes one pod."""
    group = gang(pods(20, spread(nodeTaintsPolicy="Honor")), reserve="nodes")
    answer = plan(with_cordoned("n5", bound("n1", app="b", gpu=8), gpu=1), group)
    assert (answer.decision, answer.reason) == ("rejected", "TooLargeForCluster")
    assert "room for 5 of 20 pods" in answer.message
