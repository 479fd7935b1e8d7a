"""Bounds of two levels by the largest domains: never above those by all domains, and steady."""

from random import Random

import pytest

from planner.cluster import capacity
from planner.model.pod import BoundPod
from planner.search.packing.bounds import fewest
from planner.search.packing.joint_bounds import (
    LimitsByClass,
    fewest_by_level,
    largest_pair_bounds,
    surpluses,
)
from planner.search.packing.largest_domains import LargestDomains
from tests.builders import GPU, cluster, gang
from tests.planner.search.packing.test_bounds import used_cluster
from tests.planner.search.packing.test_joint_bounds import hall
from tests.planner.search.packing.test_least_cost import packing_of


@pytest.mark.parametrize("wide", [3, 4, 24])
def test_bounds_are_between_those_of_each_level_and_those_of_all_domains(wide, monkeypatch):
    """On clusters without two equal racks, for every number of pods. The domains are whole, or those of more
    than three or four children are in parts of two."""
    monkeypatch.setattr(capacity, "WIDE", wide)
    monkeypatch.setattr(capacity, "CHUNK", 2)
    higher = 0
    for seed in range(60):
        random = Random(seed)
        group = gang(random.randint(20, 120), gpu=random.choice([1, 4, 8]), cpu=1)
        packing, root, match = packing_of(used_cluster(random), group)
        class_id, wanted = packing.classes.of(root, match), packing.counts.full
        if not packing.may_hold_all(root, match, -1):
            continue
        limits = LimitsByClass(packing.classes, packing.weights, rounded=False)
        held = LargestDomains(packing.classes).held(class_id)
        for pods in range(1, wanted + 1):
            separate = limits.separate(class_id, (wanted,)).fewest((pods,))
            largest = limits.by_largest_domains(class_id, (wanted,), held).fewest((pods,))
            joint = limits.joint(class_id, (wanted,)).fewest((pods,))
            assert separate <= largest <= joint, (seed, pods)  # the coarsest level decides
            higher += largest > separate
    assert higher > 100


def test_racks_of_one_block_are_bounded_together():
    """The example of the module: in two blocks, four racks hold at most 72 pods."""
    peaks = [((48,),), ((19,),), ((1,),)]
    pairs = largest_pair_bounds([surpluses((19, 36, 48)), surpluses((1,))])
    assert [pairs[0].fewest_finer(2, pods) for pods in (72, 73, 76)] == [4, 5, 5]
    assert [fewest((90,), level_peaks) for level_peaks in peaks] == [2, 5, 90]
    assert fewest_by_level(90, peaks, pairs) == [2, 6, 90]


def test_hosts_are_bounded_by_the_largest_one(monkeypatch):
    """One rack is in parts: its five hosts hold two pods each, those of the other rack eight."""
    monkeypatch.setattr(capacity, "WIDE", 3)
    monkeypatch.setattr(capacity, "CHUNK", 2)
    pods = [BoundPod(f"x/{node}", node, {GPU: 6, "pods": 1}) for node in "abcde"]
    moment = cluster("b1/r1: a b c d e\nb1/r2: f g", ("block", "rack"), pods=pods)
    packing, root, match = packing_of(moment, gang(16, gpu=1))
    bounds = packing._by_largest_domains(packing.classes.of(root, match), (16,))
    assert bounds.fewest((16,)) == [1, 1, 2]


def test_pods_on_used_racks_change_no_limit():
    """So later plans use what is cached under it: on 9,216 nodes, half of the racks in use."""
    moment, group, limits = hall(frozenset(range(1, 512, 2)), Random(1)), gang(144, gpu=8, cpu=1), set()
    for rack in range(1, 41, 2):
        packing, root, match = packing_of(moment, group)
        class_id, need = packing.classes.of(root, match), (144,)
        limits.add(packing._by_largest_domains(class_id, need))
        free = [node for node in moment.nodes if node.startswith(f"r{rack}-") and not moment.bound.on(node)]
        moment = moment.with_pod(BoundPod(f"y/{rack}", free[0], {GPU: 8, "pods": 1}))
    assert len(limits) == 1
