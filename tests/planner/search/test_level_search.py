"""Tests the search: its budget, its beam, and the handling of equal domains."""

import pytest

from planner.model.effort.work_budget import WorkBudget
from planner.model.podgroup import Constraint
from planner.model.resolved import resolved_group
from planner.model.topology import ROOT
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.request.relaxation import relaxations
from planner.request.resolve import resolve
from planner.request.topology_request import topology_request
from planner.search.level_search import LevelSearch
from planner.search.objective import weights
from planner.search.place import place
from planner.search.space import search_space
from tests.builders import cluster, gang, pod_set, racks, shape


def searched(moment, group, budget):
    """The search for a group in the only topology, with this work budget."""
    tree = moment.base.trees["topo"]
    asked = topology_request(resolved_group(group), tree.topology)
    search = LevelSearch(search_space(moment, tree, occupied=True), asked, group.reserve, WorkBudget(budget))
    return search.search(relaxations(asked)[0], ROOT)


def test_a_search_that_ends_early_still_places_the_gang_and_says_so():
    """The beam finds a valid placement, which is not called exact."""
    mixed = gang(pod_set(3, shape(gpu=4), name="a"), pod_set(5, shape(gpu=2), name="b"))
    result = searched(racks(3, 2), mixed, 10)
    placement = result.placement
    assert placement is not None
    assert (placement.exact, result.complete) == (False, False)
    assert [sum(counts[kind] for _, counts in placement.pods_by_node) for kind in (0, 1)] == [3, 5]


def ended(moment, group, monkeypatch):
    """The result of a search that ends at once, as do all narrower ones."""
    monkeypatch.setattr("planner.search.level_search._BEAMS", ())
    (tried,) = place(resolve(moment, group), WorkBudget(10)).results
    return tried


@pytest.mark.parametrize("reserve", ["domain", "nodes"])
def test_where_a_search_ends_without_a_place_the_kinds_are_placed_one_after_another(monkeypatch, reserve):
    """Each fits beside those before it, outside the rack that another gang holds; nobody calls it exact."""
    moment = racks(4, 2)
    holder = gang(1, gpu=1, name="x/Job/holder")
    moment = moment.with_reservation(reservation_for(moment, holder, plan(moment, holder)))
    held = {name for reservation in moment.reservations for name in reservation.nodes}
    pair = (pod_set(3, shape(gpu=4), name="a"), pod_set(5, shape(gpu=2), name="b"))
    mixed = gang(*pair, reserve=reserve)
    tried = ended(moment, mixed, monkeypatch)
    assert tried.placement is not None
    assert (tried.placement.exact, tried.complete) == (False, False)
    used = {tried.tree.root.leaf(place).node: counts for place, counts in tried.placement.pods_by_node}
    assert [sum(counts[kind] for counts in used.values()) for kind in (0, 1)] == [3, 5]
    assert all(4 * a + 2 * b <= 8 for a, b in used.values())
    assert held
    assert held.isdisjoint(used)


def test_pods_that_must_be_in_one_domain_are_not_placed_one_after_another(monkeypatch):
    """A required level of the gang, or a rule between its kinds, is never given up for a place."""
    pair = (pod_set(3, shape(gpu=4), name="a"), pod_set(5, shape(gpu=2), name="b"))
    assert ended(racks(4, 3), gang(*pair, required="rack"), monkeypatch).placement is None


def test_a_search_within_its_budget_is_exact():
    """The usual case."""
    result = searched(racks(3, 2), gang(3), 100_000)
    placement = result.placement
    assert (placement.exact, result.complete) == (True, True)


def test_equal_domains_cost_no_more_than_a_few_of_them():
    """A gang over two racks of sixty equal ones is planned with the work for a few."""
    result = searched(racks(60, 8), gang(12), 20_000)
    placement = result.placement
    assert placement.exact
    assert result.complete


def test_no_digit_of_the_cost_carries_into_the_next():
    """The most that one digit can hold is less than one unit of the next."""
    moment = cluster("r1: a b c\nr2: d e f")
    content = search_space(moment, moment.base.trees["topo"], occupied=True).capacity
    value = weights(moment.topologies[0], content, worst_penalty=300)
    hosts, free = content.size, content.worth
    assert value.free[1] * free < value.free[0]
    assert value.free[0] * free < value.penalty
    assert value.penalty * 300 * hosts < value.opened[1]
    assert value.opened[1] * hosts < value.unheld
    assert value.unheld * hosts < value.opened[0]
    assert value.opened[0] * hosts < value.domains[1]
    assert value.domains[1] * hosts < value.domains[0]


def test_the_leader_and_its_workers_of_one_shape_are_dealt_in_the_order_of_the_nodes():
    """PodSets that nothing tells apart are planned as one; the first named gets the first nodes."""
    pair = gang(pod_set(1, shape(gpu=8), name="leader"), pod_set(3, shape(gpu=8), name="worker"))
    answer = plan(racks(1, 4), pair)
    assert [(a.pod_set, a.node) for a in answer.assignments] == [
        ("leader", "r1-n1"),
        ("worker", "r1-n2"),
        ("worker", "r1-n3"),
        ("worker", "r1-n4"),
    ]


def test_each_pod_set_gives_up_its_preferred_level_alone():
    """Racks of three, three and two: two of the three PodSets keep a rack, the last named is split."""
    prefer = Constraint(preferred="rack")
    sets = [pod_set(3, shape(gpu=8), name=name, constraint=prefer) for name in ("a", "b", "c")]
    moment = cluster("r1: a1 a2 a3\nr2: b1 b2 b3\nr3: c1 c2\nr4: d1")
    answer = plan(moment, gang(*sets))
    used = {name: {a.node[0] for a in answer.assignments if a.pod_set == name} for name in ("a", "b", "c")}
    assert used == {"a": {"a"}, "b": {"b"}, "c": {"c", "d"}}


def test_pod_sets_that_no_node_tells_apart_are_planned_as_one():
    """Whole nodes with more or fewer cores: nodes have cores enough, so the search sees one kind of pods."""
    sets = [pod_set(30, shape(gpu=8, cpu=cores), name=f"s{cores}") for cores in (8, 16, 32)]
    moment = racks(8, 16)
    placement = searched(moment, gang(*sets), 60_000).placement
    assert placement.exact
    assert len(placement.pod_classes) == 1
    assert dict(placement.pod_classes[0].parts) == {"s8": 30, "s16": 30, "s32": 30}


def test_pods_of_which_a_node_holds_unlike_numbers_stay_apart():
    """One node with too few cores for the larger pods is enough to tell them apart."""
    sets = [pod_set(2, shape(gpu=8, cpu=cores), name=f"s{cores}") for cores in (8, 32)]
    moment = cluster("r1: a b c d\nr2: e cpu=16")
    placement = searched(moment, gang(*sets), 60_000).placement
    assert len(placement.pod_classes) == 2


def test_whole_pod_sets_over_several_blocks_are_found_within_the_budget():
    """Three PodSets of unlike shapes, each required in one block, on 32 racks: no sum of their parts."""
    sets = [
        pod_set(40, shape(gpu=gpus), name=f"s{gpus}", constraint=Constraint(required="block"))
        for gpus in (1, 4, 8)
    ]
    drawing = "\n".join(
        f"b{n // 8}/r{n}: " + " ".join(f"n{n}-{host}" for host in range(8)) for n in range(32)
    )
    answer = plan(cluster(drawing, ("block", "rack")), gang(*sets))
    assert answer.decision == "admitted"
    assert answer.warnings == ()
    assert sum(a.count for a in answer.assignments) == 120
