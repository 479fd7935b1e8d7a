"""The planner against a solver that tries everything.

`make test` runs a sample; `BAYPLAN_EXACT=100000` (as `make test-exact` sets it) runs that many small ones
and a tenth as many large ones.
"""

import os
from collections.abc import Callable
from random import Random

import pytest

from planner.planning.plan import plan
from tests.exact.larger import best
from tests.exact.solver import Instance, domains, random_instance, solve, valid
from tests.exact.verdict import placed

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 8
LARGE = {"racks": 5, "hosts": 6, "max_pods": 18, "sets": 3}


Solver = Callable[..., tuple[int, ...] | None]


def check(instance: Instance, solver: Solver = solve) -> str:
    """Compares the planner with the solver; returns the decision."""
    answer = plan(instance.snapshot, instance.group)
    if answer.reason in ("SliceLevelTooCoarse", "PodSetLevelTooCoarse"):  # a contradiction, refused at once
        return answer.decision
    fewest = solver(instance)
    if not placed(answer, fewest, lambda: solver(instance, empty=True)):
        return answer.decision
    assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
    for pod_set in instance.group.pod_sets:
        assert sum(n for (whose, _), n in assigned.items() if whose == pod_set.name) == pod_set.count
    assert valid(instance.snapshot, instance.group, assigned)
    assert within_capacity(instance, assigned)
    assert domains(instance.snapshot, {name for _, name in assigned}) == fewest, (fewest, answer)
    return answer.decision


def within_capacity(instance: Instance, assigned: dict[tuple[str, str], int]) -> bool:
    """Whether used plus assigned stays within allocatable on every node, for every resource."""
    shapes = {p.name: p.shape.requests for p in instance.group.pod_sets}
    for name, node in instance.snapshot.nodes.items():
        used = dict(instance.snapshot.taken.get(name, {}))
        for (whose, where), count in assigned.items():
            for resource, amount in shapes[whose].items() if where == name else ():
                used[resource] = used.get(resource, 0) + amount * count
        mine = {r for (w, n) in assigned if n == name for r in shapes[w]}
        if any(used[resource] > node.allocatable.get(resource, 0) for resource in mine):
            return False
    return True


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_wrong_refusal_no_wrong_yes_and_no_domain_too_many(chunk):
    """Feasibility and the number of blocks, racks and hosts agree with trying every placement."""
    seen = {"admitted": 0, "queued": 0, "rejected": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        seen[check(random_instance(Random(number)))] += 1
    assert seen["admitted"], "the sample has instances that fit"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_same_on_five_racks_of_six_hosts(chunk):
    """Up to 18 pods of three PodSets on up to 30 hosts, against every sum of every packing."""
    seen = {"admitted": 0, "queued": 0, "rejected": 0}
    for number in range(chunk, INSTANCES // 10, CHUNKS):
        seen[check(random_instance(Random(number), **LARGE), best)] += 1
    assert sum(seen.values()), "the sample is not empty"


def test_the_two_solvers_agree():
    """Where both can answer; each is written from the words of the design, not from the other."""
    for number in range(min(INSTANCES, 2000)):
        instance = random_instance(Random(1_000_000 + number))
        assert solve(instance) == best(instance), number


def test_single_pods_that_each_want_one_host_need_not_share_it():
    """PodSets of one pod and one shape, each required in a host; the second host is there for the second."""
    assert check(random_instance(Random(89_766))) == "admitted"


@pytest.mark.parametrize("seed", [4402, 4673])
def test_pods_that_nodes_tell_apart_only_beside_others_are_not_taken_for_one_kind(seed):
    """Two PodSets that differ in cores, and a third one that needs what they leave."""
    assert check(random_instance(Random(seed), **LARGE), best) == "admitted"
