"""The planner against a solver that tries everything.

`make test` runs a sample; `BAYPLAN_EXACT=100000` (as `make test-exact` sets it) runs that many instances.
"""

import os
from random import Random

import pytest

from planner.placement import plan
from tests.exact.solver import Instance, domains, instance, solve, valid

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 8


def check(one: Instance) -> str:
    """Compares the planner with the solver; returns the decision."""
    answer = plan(one.snapshot, one.group)
    if answer.reason == "SliceLevelTooCoarse":  # a contradiction is refused before any place is looked for
        return answer.decision
    best = solve(one)
    if best is None:
        ever = solve(one, empty=True) is not None
        assert answer.decision == ("queued" if ever else "rejected"), answer
        return answer.decision
    assert answer.decision == "admitted", (best, answer)
    assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
    for pod_set in one.group.pod_sets:
        assert sum(n for (whose, _), n in assigned.items() if whose == pod_set.name) == pod_set.count
    assert valid(one.snapshot, one.group, assigned)
    assert within_capacity(one, assigned)
    assert domains(one.snapshot, {name for _, name in assigned}) == best, (best, answer)
    return answer.decision


def within_capacity(one: Instance, assigned: dict[tuple[str, str], int]) -> bool:
    """Whether used plus assigned stays within allocatable on every node, for every resource."""
    shapes = {p.name: p.shape.requests for p in one.group.pod_sets}
    for name, node in one.snapshot.nodes.items():
        used = dict(one.snapshot.taken.get(name, {}))
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
        seen[check(instance(Random(number)))] += 1
    assert seen["admitted"], "the sample has instances that fit"
