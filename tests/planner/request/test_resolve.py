"""Tests how a request is resolved once, and which relaxed requests are tried in its place."""

import pytest

from planner.model.labels import NODE_NAME_FIELD
from planner.model.resolved import ResolvedPodGroup, resolved_group
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.request import resolve as stage
from planner.request.resolve import resolve
from planner.search.outcome import assignments_of
from planner.search.place import place
from tests.builders import gang, pod_set, racks, shape

STEPS = ("as_created", "_with_cluster_constraints", "check", "candidates", "topology_request")


def nodes_of(outcome) -> set[str]:
    """The nodes of a placement."""
    return {assignment.node for assignment in assignments_of(outcome.problem, outcome.best)}


@pytest.mark.parametrize("pods", [2, 5])
def test_a_request_is_resolved_once(monkeypatch, pods):
    """For the plan, for the search of the empty cluster, and for the reservation."""
    counts = dict.fromkeys(STEPS, 0)

    def counted(name):
        step = getattr(stage, name)

        def call(*arguments, **options):
            counts[name] += 1
            return step(*arguments, **options)

        return call

    for name in STEPS:
        monkeypatch.setattr(stage, name, counted(name))
    moment, group = racks(1, 4), gang(pods, gpu=8)
    answer = plan(moment, group)
    once = dict(counts)
    reservation_for(moment, group, answer)
    assert answer.decision == ("admitted" if pods == 2 else "rejected")
    assert counts == once, "a reservation takes what the answer carries"
    if answer.decision == "admitted":
        assert once == dict.fromkeys(STEPS, 1)
    else:
        assert once["as_created"] == 1, "requests nearby have no claims to resolve anew"


def test_what_was_asked_stays_as_it_was_read():
    """The problem has a record of its own for what the cluster says."""
    group = gang(2, gpu=1)
    problem = resolve(racks(1, 4), group)
    assert type(problem.asked) is ResolvedPodGroup
    assert group == gang(2, gpu=1)
    assert not hasattr(group.pod_sets[0].shape, "claim_specs")
    assert resolved_group(problem.asked) is problem.asked


def test_a_problem_restricted_to_nodes_is_placed_on_these():
    """Also where the pods' own affinity leaves more; `one_per_node` puts each pod on its own."""
    problem = resolve(racks(2, 4), gang(2, gpu=1))
    nodes = sorted(problem.snapshot.nodes)[3:5]
    assert nodes_of(place(problem.restricted_to(nodes))) <= set(nodes)
    assert nodes_of(place(problem.restricted_to(nodes, one_per_node=True))) == set(nodes)
    restricted = problem.restricted_to(nodes).asked.pod_sets[0].shape
    (exclusion,) = restricted.exclusions
    assert (exclusion.key, exclusion.values, exclusion.inside) == (NODE_NAME_FIELD, set(nodes), True)
    assert restricted.affinity == (), "spread constraints would count the pods of these nodes only"


def test_a_resized_problem_has_other_counts_of_the_sets_that_are_named():
    """The others stay, and so does the moment at which it is looked at."""
    pair = (pod_set(3, shape(gpu=8), name="a"), pod_set(5, shape(gpu=8), name="b"))
    problem = resolve(racks(2, 4), gang(*pair)).when_empty().resized({"b": 1})
    assert [pod_set.count for pod_set in problem.gang.pod_sets] == [3, 1]
    assert not problem.occupied


def test_a_contradiction_is_a_refusal_of_the_problem_and_has_no_place():
    """Nothing is searched for it."""
    problem = resolve(racks(1, 4), gang(2, gpu=1, required="no-such-level"))
    assert problem.refusal is not None
    assert problem.refusal.reason == "UnknownLevel"
    outcome = place(problem)
    assert (outcome.best, outcome.results) == (None, ())
