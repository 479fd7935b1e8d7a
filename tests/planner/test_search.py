"""The search: its budget, its beam, and what it keeps of equal domains."""

from planner.budget import Budget
from planner.climb import Climb
from planner.cost import weights
from planner.placement import plan
from planner.request import ROOT, ask, relaxations
from planner.view import look
from tests.builders import cluster, gang, pod_set, racks, shape


def climbed(moment, group, budget):
    """The climb of a group in the only topology, with so much work allowed."""
    tree = moment.base.trees["topo"]
    asked = ask(group, tree.topology)
    climb = Climb(look(moment, tree, now=True), asked, group.reserve, Budget(budget), [])
    return climb, climb.climb(relaxations(asked)[0], ROOT)


def test_a_search_that_ends_early_still_places_the_gang_and_says_so():
    """The beam finds a valid placement, which is not called exact."""
    mixed = gang(pod_set(3, shape(gpu=4), name="a"), pod_set(5, shape(gpu=2), name="b"))
    climb, found = climbed(racks(3, 2), mixed, 10)
    assert found is not None
    assert (found.exact, climb.complete) == (False, False)
    assert [sum(counts[kind] for _, counts in found.placed) for kind in (0, 1)] == [3, 5]


def test_a_search_within_its_budget_is_exact():
    """The usual case."""
    climb, found = climbed(racks(3, 2), gang(3), 100_000)
    assert (found.exact, climb.complete) == (True, True)


def test_equal_domains_cost_no_more_than_a_few_of_them():
    """A gang over two racks of sixty equal ones is planned with the work for a few."""
    climb, found = climbed(racks(60, 8), gang(12), 20_000)
    assert found.exact
    assert climb.complete


def test_no_digit_of_the_cost_carries_into_the_next():
    """The most that one digit can hold is less than one unit of the next."""
    moment = cluster("r1: a b c\nr2: d e f")
    content = look(moment, moment.base.trees["topo"], now=True).content
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
    both = gang(pod_set(1, shape(gpu=8), name="leader"), pod_set(3, shape(gpu=8), name="worker"))
    answer = plan(racks(1, 4), both)
    assert [(a.pod_set, a.node) for a in answer.assignments] == [
        ("leader", "r1-n1"),
        ("worker", "r1-n2"),
        ("worker", "r1-n3"),
        ("worker", "r1-n4"),
    ]
