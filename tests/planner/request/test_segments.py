"""KAI's segments: the last may be short, and the leader of a LeaderWorkerSet counts.

r1: a b c d e    r2: f g h    r3: i j
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from planner.model.podgroup import Constraint, PodGroup
from planner.planning.plan import plan
from tests.builders import cluster, gang, pod_set, shape

RACKS = cluster("r1: a b c d e\nr2: f g h\nr3: i j")
RACK_OF = {node: node_.labels["rack"] for node, node_ in RACKS.nodes.items()}


def cut(size: int, workers: int, *, leader: bool = False, leader_gpu: int = 8) -> PodGroup:
    """Workers in KAI's segments of this size, each within a rack, optionally with a leader."""
    segments = Constraint(slice_level="rack", slice_size=size, segments=True)
    sets = [pod_set(workers, shape(gpu=8), constraint=segments)]
    if leader:
        sets.insert(0, pod_set(1, shape(gpu=leader_gpu), name="leader"))
    return gang(*sets, reserve="nodes")


def by_rack(group: PodGroup) -> list[int]:
    """The number of pods in each rack of the plan, largest first; empty if there is no place."""
    answer = plan(RACKS, group)
    racks: Counter[str] = Counter()
    for assignment in answer.assignments:
        racks[RACK_OF[assignment.node]] += assignment.count
    return sorted(racks.values(), reverse=True)


def test_the_last_segment_of_a_training_jobs_workers_may_be_short() -> None:
    """Seven workers in segments of three: 3, 3 and 1, each within a rack."""
    assert sum(by_rack(cut(3, 7))) == 7
    refused = plan(RACKS, replace(cut(3, 7), pod_sets=_even(cut(3, 7))))
    assert refused.reason == "SlicesDoNotDivide"


@pytest.mark.parametrize(
    ("size", "workers", "racks"),
    [
        (5, 7, [5, 3]),  # 8 pods: the leader and four workers, then three
        (4, 4, [5]),  # 5 pods: four workers divide evenly, so the leader is the fifth of the first segment
        (5, 9, []),  # 10 pods: two segments of five, and only one rack has room for five
    ],
)
def test_the_leader_of_a_leader_worker_set_counts(size: int, workers: int, racks: list[int]) -> None:
    """As KAI counts it: a pod of the first segment, or one more where the workers alone divide evenly."""
    assert by_rack(cut(size, workers, leader=True)) == racks


def test_a_leader_of_another_shape_leaves_its_seat_in_the_first_segment() -> None:
    """Its workers are cut as if it were there: 4 and 3, not 5 and 2."""
    assert sum(by_rack(cut(5, 7, leader=True, leader_gpu=1))) == 8


def _even(group: PodGroup):
    (workers,) = group.pod_sets
    return (replace(workers, constraint=replace(workers.constraint, segments=False)),)
