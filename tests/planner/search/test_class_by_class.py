"""Pod classes placed one after another, as if the search of all together had ended without a place."""

from collections import Counter
from dataclasses import replace

import pytest

from planner.model.labels import Requirement
from planner.model.pod import PodTerm, SpreadConstraint
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.search.result import SearchResult
from tests.builders import cluster, gang, pod_set, shape


@pytest.fixture(autouse=True)
def no_search_of_all_classes(monkeypatch):
    monkeypatch.setattr(
        "planner.search.place._searched",
        lambda problem, tree, request, budget: SearchResult(tree, request, None, (), complete=False),
    )


OF_THE_GANG = (Requirement("app", "In", ("gang",)),)

THREE_RACKS = """
    r1: a1 a2 a3 a4
    r2: b1 b2 b3 b4
    r3: c1 c2 c3 c4
"""


def launcher_and_workers(count, **rules):
    """A launcher without GPUs and workers of a whole node each; all have the label app=gang and the rules."""
    launcher, worker = (
        replace(pod, labels={"app": "gang"}, **rules) for pod in (shape(cpu=1), shape(gpu=8, cpu=1))
    )
    return pod_set(1, launcher, name="launcher"), pod_set(count, worker)


def pods_by_rack(answer):
    """The number of the gang's pods in each rack; the racks are named like their nodes."""
    racks = Counter()
    for assignment in answer.assignments:
        racks["r" + str("abc".index(assignment.node[0]) + 1)] += assignment.count
    return dict(sorted(racks.items()))


@pytest.mark.parametrize("workers", range(2, 9))
def test_pods_of_classes_that_count_each_other_are_spread_together(workers):
    spread = (SpreadConstraint("rack", 1, OF_THE_GANG),)
    answer = plan(cluster(THREE_RACKS), gang(*launcher_and_workers(workers, spread=spread), reserve="nodes"))
    pods = pods_by_rack(answer).values()
    assert (answer.decision, sum(pods)) == ("admitted", workers + 1)
    assert max(pods) - min(pods) <= 1


def test_a_class_that_others_count_is_placed_before_them():
    launcher, workers = launcher_and_workers(3, spread=(SpreadConstraint("rack", 1, OF_THE_GANG),))
    free_launcher = replace(launcher, count=2, shape=replace(launcher.shape, spread=()))
    answer = plan(cluster(THREE_RACKS), gang(free_launcher, workers, reserve="nodes"))
    assert answer.decision == "admitted"
    assert sorted(pods_by_rack(answer).values()) == [1, 2, 2]


def test_classes_that_must_share_a_domain_are_not_divided():
    """The workers are placed first, in the smaller rack, where the launchers do not fit beside them."""
    moment = cluster("r1: a1 a2 a3\nr2: b1 b2 b3 b4 b5")
    launcher, workers = launcher_and_workers(3)
    launchers = replace(launcher, count=2, shape=shape(cpu=64))
    divided = gang(launchers, workers, reserve="nodes")
    assert pods_by_rack(plan(moment, divided)) == {"r1": 3, "r2": 2}
    together = replace(divided, within=(("rack", ("launcher", "worker")),))
    assert plan(moment, together).decision == "queued"
    smaller_rack_used = cluster("r1: a1 a2 a3 used=1\nr2: b1 b2 b3 b4 b5")
    assert pods_by_rack(plan(smaller_rack_used, together)) == {"r2": 5}


@pytest.mark.parametrize("attracts", [True, False])
def test_classes_attract_each_other_or_stay_apart(attracts):
    launcher, workers = launcher_and_workers(2)
    term = PodTerm("rack", (Requirement("role", "In", ("worker",)),), attracts=attracts)
    workers = replace(workers, shape=replace(workers.shape, labels={"role": "worker"}))
    launcher = replace(launcher, shape=replace(launcher.shape, terms=(term,)))
    answer = plan(cluster(THREE_RACKS), gang(launcher, workers, reserve="nodes"))
    racks = {
        name: {seat.node[0] for seat in answer.assignments if seat.pod_set == name}
        for name in ("launcher", "worker")
    }
    assert answer.decision == "admitted"
    assert (racks["launcher"] <= racks["worker"]) is attracts


def test_all_classes_are_in_one_domain_of_the_required_level():
    moment = cluster(
        """
        b1/r1: a1 a2
        b2/r2: b1 b2
        b2/r3: c1 c2
        """,
        ("block", "rack"),
    )
    spread = (SpreadConstraint("rack", 2, OF_THE_GANG),)  # the third rack is in another block
    answer = plan(moment, gang(*launcher_and_workers(3, spread=spread), reserve="nodes", required="block"))
    assert (answer.decision, answer.domain[:1]) == ("admitted", ("b2",))
    assert pods_by_rack(answer) == {"r2": 2, "r3": 2}


def test_a_domain_that_the_gang_would_hold_whole_is_not_shared_by_classes():
    answer = plan(cluster(THREE_RACKS), gang(*launcher_and_workers(3), required="rack"))
    assert (answer.decision, answer.reason) == ("queued", "SearchBudgetExhausted")


def test_racks_that_another_gang_uses_are_left_to_it_even_if_a_class_fits_on_one_host():
    """The gang holds whole racks, because its classes are in several."""
    pods = pod_set(1, shape(cpu=1), name="a"), pod_set(1, shape(cpu=2), name="b")
    moment = cluster(THREE_RACKS)
    first = gang(*pods, name="default/Job/first", reserve="nodes")
    moment = moment.with_reservation(reservation_for(moment, first, plan(moment, first)))
    (rack,) = {moment.nodes[node].labels["rack"] for node in moment.reservations[0].touched}
    spread = (SpreadConstraint(HOSTNAME, 3, OF_THE_GANG),)
    second = gang(*launcher_and_workers(1, spread=spread), name="default/Job/second")
    answer = plan(moment, second)
    assert answer.decision == "admitted"
    assert len(answer.reserves) == 2
    assert rack not in pods_by_rack(answer)
