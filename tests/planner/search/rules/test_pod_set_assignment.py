"""PodSets of equal pods under one spread constraint, each pinned to its own nodes: pods count there only.

row a: nodes 0 and 1      row b: nodes 2, 3 and 4      one GPU each
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import Requirement
from planner.model.pod import SpreadConstraint
from planner.model.podgroup import PodSet, ReserveMode
from planner.planning.plan import plan
from tests.builders import gang, node, shape, topology

ROWS = ("a", "a", "b", "b", "b")


@pytest.fixture(scope="module")
def rows() -> Snapshot:
    """The cluster described above."""
    nodes = [node(f"n{index}", labels={"row": row}, gpu=1) for index, row in enumerate(ROWS)]
    return snapshot(nodes, [topology("row")])


def planned(
    rows: Snapshot,
    *,
    reserve: ReserveMode = "nodes",
    min_domains: int = 1,
    by_affinity: bool = True,
    **counts: int,
) -> Answer:
    """The plan of PodSets of equal pods with maxSkew 1 over the rows."""
    spread = SpreadConstraint("row", 1, (Requirement("app", "In", ("a",)),), min_domains, by_affinity)
    pod = replace(shape(gpu=1), labels={"app": "a"}, spread=(spread,))
    return plan(rows, gang(*[PodSet(name, n, pod) for name, n in counts.items()], reserve=reserve))


def pods_by_row(answer: Answer, pod_set: str) -> dict[str, int]:
    """How many pods of a PodSet are in each row."""
    pods: Counter[str] = Counter()
    for assignment in answer.assignments:
        if assignment.pod_set == pod_set:
            pods[ROWS[int(assignment.node[1:])]] += assignment.count
    return dict(pods)


def test_the_workers_are_balanced_without_the_master(rows):
    """With the master in row a, the nodes of the workers would have one pod in a and three in b."""
    answer = planned(rows, master=1, worker=4)
    assert answer.decision == "admitted"
    assert pods_by_row(answer, "master") == {"b": 1}
    assert pods_by_row(answer, "worker") == {"a": 2, "b": 2}


@pytest.mark.parametrize("unpinned", [{"reserve": "none"}, {"by_affinity": False}], ids=str)
def test_without_pins_that_count_the_order_of_the_podsets_stays(rows, unpinned):
    """All pods count for each PodSet then."""
    answer = planned(rows, master=1, worker=4, **unpinned)
    assert answer.decision == "admitted"
    assert pods_by_row(answer, "master") == {"a": 1}


def test_each_podset_has_pods_in_as_many_domains_as_its_constraint_counts(rows):
    """With `minDomains` 2, pods of a PodSet in one row only would count against an empty second one."""
    answer = planned(rows, min_domains=2, first=2, second=2)
    assert answer.decision == "admitted"
    assert pods_by_row(answer, "first") == pods_by_row(answer, "second") == {"a": 1, "b": 1}
