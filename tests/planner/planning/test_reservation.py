"""Tests what a gang reserves, and what remains for others."""

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.manifests.topologies.label_presets import infer
from planner.model.errors import Where
from planner.model.labels import Requirement
from planner.model.pod import BoundPod, PodTerm, SpreadConstraint
from planner.model.reservation import Book
from planner.planning.node_affinity import requirements
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from tests.builders import GPU, amounts, cluster, gang, node, pod_set, racks, shape


def taken(moment, group):
    """The cluster with the reservation of this gang."""
    return moment.with_reservation(reservation_for(moment, group, plan(moment, group)))


def test_a_gang_holds_the_smallest_domain_that_contains_it():
    """Two hosts of a rack: the rack. One host: the host."""
    moment = racks(2, 4)
    assert plan(moment, gang(2)).reserves == (("r1",),)
    assert plan(moment, gang(1)).reserves == (("r1", "r1-n1"),)


def test_a_held_rack_is_nobody_elses():
    """The rest of the rack stays empty, though it has room."""
    moment = taken(racks(2, 4), gang(2, name="default/Job/a"))
    assert plan(moment, gang(2, name="default/Job/b")).domain == ("r2",)
    assert plan(moment, gang(1, name="default/Job/b")).domain == ("r2", "r2-n1")


def test_a_rack_in_which_another_holds_a_host_cannot_be_held():
    """Two hosts would hold the rack, which holds somebody's host; one host is still to be had."""
    moment = taken(racks(1, 4), gang(1, name="default/Job/a"))
    assert plan(moment, gang(2, name="default/Job/b")).decision == "queued"
    assert plan(moment, gang(1, name="default/Job/b")).domain == ("r1", "r1-n2")


def test_node_reservations_share_a_rack_and_a_node():
    """Mode `nodes` holds only what it uses."""
    moment = taken(racks(1, 2), gang(1, gpu=4, name="default/Job/a", reserve="nodes"))
    answer = plan(moment, gang(1, gpu=4, name="default/Job/b", reserve="nodes"))
    assert [a.node for a in answer.assignments] == ["r1-n1"]
    assert answer.reserves == ()


def test_a_gang_without_reservation_is_only_advised():
    """Mode `none` admits and holds nothing."""
    group = gang(2, reserve="none")
    answer = plan(racks(1, 2), group)
    assert answer.decision == "admitted"
    assert reservation_for(racks(1, 2), group, answer) is None


def test_several_racks_are_each_held():
    """Six hosts over two racks of four: both racks, wholly."""
    moment = racks(3, 4)
    group = gang(6)
    reservation = reservation_for(moment, group, plan(moment, group))
    assert reservation.domains == (("r1",), ("r2",))
    assert len(reservation.nodes) == 8


def test_the_reservable_level_can_be_coarser():
    """With blocks reservable, a gang over two racks of a block holds the block."""
    moment = cluster("b1/r1: a b\nb1/r2: c d\nb2/r3: e f", ("block", "rack"), reservable="block")
    assert plan(moment, gang(3)).reserves == (("b1",),)
    assert plan(moment, gang(5)).reserves == (("b1",), ("b2",))


def test_a_bound_pod_of_a_reservation_is_not_counted_twice():
    """The reservation accounts for the pods that carry its id; without it in the book they count."""
    empty = racks(1, 2)
    group = gang(2, gpu=4, reserve="nodes")
    reservation = reservation_for(empty, group, plan(empty, group))
    node_name = reservation.assignments[0].node
    pods = (BoundPod("default/p", node_name, amounts(gpu=4, pods=1), reservation.id),)
    moment = replace(empty, pods=pods)
    held = moment.with_book(Book(7, (reservation,)))
    assert held.revision == 7
    assert held.taken[node_name][GPU] == 8
    assert held.used == {}
    assert moment.taken[node_name][GPU] == 4


def test_the_same_gang_keeps_its_place_and_another_request_is_planned_anew():
    """Same fingerprint: replayed. More pods: planned as if it held nothing."""
    moment = taken(racks(2, 4), gang(3))
    again = plan(moment, gang(3))
    assert (again.replayed, again.reason) == (True, "AlreadyReserved")
    larger = plan(moment, gang(4))
    assert not larger.replayed
    assert larger.domain == ("r1",)


def test_a_place_whose_node_has_gone_is_not_replayed():
    """A removed node, or one that the pods may no longer use, makes a new plan."""
    moment = taken(racks(2, 2), gang(2))
    fewer = cluster("r1: r1-n1\nr2: r2-n1 r2-n2").with_book(Book(1, moment.reservations))
    answer = plan(fewer, gang(2))
    assert not answer.replayed
    assert answer.domain == ("r2",)
    in_other_rack = gang(pod_set(2, shape(gpu=8, affinity=((Requirement("rack", "In", ("r2",)),),))))
    assert plan(moment, in_other_rack).domain == ("r2",)


def test_the_fingerprint_is_of_the_request_and_not_of_what_the_plan_added():
    """Selectors and affinity do not count; counts, requests and the mode do."""
    plain = fingerprint(gang(2))
    added = gang(pod_set(2, shape(gpu=8, affinity=((Requirement("rack", "In", ("r1",)),),))))
    assert fingerprint(added) == plain
    assert fingerprint(gang(3)) != plain
    assert fingerprint(gang(2, gpu=4)) != plain
    assert fingerprint(gang(2, reserve="nodes")) != plain


def test_affinity_pins_to_the_held_domains_by_their_whole_path():
    """A rack's name alone may occur in every block."""
    moment = racks(4, 4, block=2)
    group = gang(3)
    assert requirements(moment, group, plan(moment, group))["worker"] == (
        (Requirement("block", "In", ("b1",)), Requirement("rack", "In", ("r1",))),
    )


def test_affinity_for_one_host_is_its_hostname():
    """The parents of a host may be left out."""
    moment = racks(2, 2)
    group = gang(1)
    terms = requirements(moment, group, plan(moment, group))["worker"]
    assert terms == ((Requirement("kubernetes.io/hostname", "In", ("r1-n1",)),),)


def test_affinity_in_mode_nodes_names_the_hosts_by_label():
    """The hostname label's value counts, not the node's name."""
    tray = node("ip-10-0-0-1", labels={"kubernetes.io/hostname": "tray-1"})
    moment = snapshot([tray])
    group = gang(1, reserve="nodes")
    terms = requirements(moment, group, plan(moment, group))["worker"]
    assert terms == ((Requirement("kubernetes.io/hostname", "In", ("tray-1",)),),)


def test_each_pod_set_is_pinned_to_the_domains_that_it_uses():
    """A term for each reserved domain of the PodSet, and none for the others'."""
    moment = cluster("r1: a b gpu=8 cpu=4\nr2: c d gpu=0 cpu=64")
    group = gang(pod_set(2, shape(gpu=8), name="worker"), pod_set(2, shape(cpu=60), name="feeder"))
    answer = plan(moment, group)
    assert requirements(moment, group, answer)["worker"] == ((Requirement("rack", "In", ("r1",)),),)
    feeders = requirements(moment, group, answer)["feeder"]
    assert Requirement("rack", "In", ("r2",)) in {requirement for term in feeders for requirement in term}


@pytest.mark.parametrize("rule", ["anti-affinity", "spread"])
def test_pod_sets_of_equal_pods_with_rules_about_pods_are_pinned_to_nodes_of_their_own(rule):
    """Workers bound to the rack of the launcher would leave it no place, or would count in its spread."""
    apart = PodTerm("rack", (Requirement("app", "In", ("worker",)),))
    spread = SpreadConstraint("rack", 1, (Requirement("app", "In", ("worker",)),))
    worker = replace(shape(gpu=8), labels={"app": "worker"}, spread=(spread,) if rule == "spread" else ())
    launcher = replace(shape(gpu=8), terms=(apart,) if rule == "anti-affinity" else ())
    moment = racks(3, 2)
    group = gang(pod_set(2, launcher, name="launcher"), pod_set(3, worker), reserve="nodes")
    answer = plan(moment, group)
    for name, terms in requirements(moment, group, answer).items():
        nodes = {seat.node for seat in answer.assignments if seat.pod_set == name}
        assert {value for (term,) in terms for value in term.values} == nodes


def test_a_pod_set_that_is_not_there_is_pinned_to_nothing():
    """No pods, no terms."""
    moment = racks(1, 1)
    assert requirements(moment, gang(1), plan(moment, gang(1))).get("other") is None


def test_a_reservation_in_a_topology_without_a_name_is_found_again():
    """The levels come from the nodes' labels; object and book say "" and lead back to the same place."""
    moment = infer_from(racks(2, 4))
    group = gang(2, required="rack")
    reservation = reservation_for(moment, group, plan(moment, group))
    assert (reservation.topology, reservation.domains) == ("", (("r1",),))
    stored = reservation_from(reservation_manifest(reservation), Where("book"))
    assert stored == reservation
    later = moment.with_reservation(stored)
    again = plan(later, group)
    assert (again.reason, again.assignments) == ("AlreadyReserved", reservation.assignments)
    assert plan(later, gang(2, name="default/Job/other", required="rack")).domain == ("r2",)


def infer_from(drawn):
    """The same nodes, without a Topology object."""
    return snapshot(drawn.nodes.values(), [infer(drawn.nodes.values())])
