"""Tests which search serves which request."""

from planner.model.podgroup import Constraint
from planner.request.resolve import resolve
from planner.search.outcome import assignments_of
from planner.search.place import SEARCHES, place
from tests.builders import cluster, gang, pod_set, racks, shape


def test_each_request_is_served_by_the_first_row_that_serves_its_kinds():
    """One kind, several, and pods apart over a label that is no level."""
    several = (pod_set(2, shape(gpu=8), name="a"), pod_set(2, shape(gpu=4), name="b"))
    apart = pod_set(2, shape(gpu=1, apart=("no-level",)), name="c")
    served = [
        next(
            row.request for row in SEARCHES if row.serves(resolve(racks(2, 4), group).requests[0].pod_classes)
        )
        for group in (gang(2, gpu=8), gang(*several), gang(apart))
    ]
    assert served == [
        "one kind of pods",
        "several kinds of pods",
        "pods apart, together or spread over labels that are no levels",
    ]


def test_a_level_that_a_pod_set_prefers_is_required_then_left_out_then_tried_at_the_steps_between():
    """The example of `planner.search.place`: four of the three and three nodes of a block's racks."""
    moment = cluster("b1/r1: a1 a2 a3\nb1/r2: c1 c2 c3\nb2/r3: d1 d2", ("block", "rack"))
    pods = pod_set(4, shape(gpu=8), constraint=Constraint(preferred="rack"))
    best = place(resolve(moment, gang(pods))).best
    assert best.placement.branch.path == ("b1",)
    assert best.placement.exact


def test_the_pods_of_a_class_are_dealt_to_its_pod_sets_in_the_order_of_the_hosts():
    """The example of `planner.search.outcome`: a master like its workers is one of their class."""
    pods = shape(gpu=4)
    group = gang(pod_set(1, pods, name="master"), pod_set(3, pods, name="worker"), required="rack")
    outcome = place(resolve(cluster("r1: a d"), group))
    assert [(a.pod_set, a.node, a.count) for a in assignments_of(outcome.problem, outcome.best)] == [
        ("master", "a", 1),
        ("worker", "a", 1),
        ("worker", "d", 2),
    ]
