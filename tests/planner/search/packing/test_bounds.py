"""Cost limits of real searches: what `SingleClassCounts.sums` relies on."""

from itertools import accumulate
from random import Random

import pytest

from planner.model.pod import BoundPod
from planner.planning.plan import plan
from planner.search.packing.bounds import fewest, fewest_by_amount, up_to
from planner.search.packing.domain_packing import DomainPacking
from planner.search.packing.joint_bounds import JointCostLimit, LimitsByClass
from tests.builders import GPU, cluster, gang, pod_set, shape
from tests.planner.search.packing.test_least_cost import packing_of


def used_cluster(random):
    """Blocks of unlike numbers of racks, racks of unlike numbers of nodes, some GPUs used on some of them."""
    racks = [
        (f"b{block}", f"r{block}-{rack}", random.randint(1, 7))
        for block in range(random.randint(6, 12))
        for rack in range(random.randint(1, 6))
    ]
    lines = [
        f"{block}/{rack}: " + " ".join(f"{rack}-n{host}" for host in range(hosts))
        for block, rack, hosts in racks
    ]
    pods = [
        BoundPod(f"x/on-{rack}-{host}", f"{rack}-n{host}", {GPU: random.randint(1, 8), "pods": 1})
        for _, rack, hosts in racks
        for host in range(hosts)
        if random.random() < 0.4
    ]
    return cluster("\n".join(lines), ("block", "rack"), pods=pods)


@pytest.mark.parametrize("kind", ["separate", "by_largest_domains", "joint"])
def test_the_more_pods_a_sum_has_the_more_it_may_cost(kind, monkeypatch):
    """On clusters without two equal racks, for gangs of pods of one to eight GPUs, with the bounds of each
    level alone and with both kinds of those of two levels together, wherever these are valid."""
    limits, limit_of = [], LimitsByClass.limit

    def recorded(self, *args):
        limits.append(limit_of(self, *args))
        return limits[-1]

    monkeypatch.setattr(LimitsByClass, "limit", recorded)
    if kind != "by_largest_domains":
        other = getattr(LimitsByClass, kind)
        monkeypatch.setattr(
            DomainPacking, "_by_largest_domains", lambda self, *args: other(self.limits, *args)
        )
    monkeypatch.setattr(DomainPacking, "_may_do_with_few_domains", lambda *_: True)
    for seed in range(30):
        random = Random(seed)
        plan(used_cluster(random), gang(random.randint(1, 120), gpu=random.choice([1, 4, 8]), cpu=1))
    checked = [limit for limit in limits if isinstance(limit, JointCostLimit) is (kind != "separate")]
    assert len({(limit.goal, limit.ceiling) for limit in checked}) > 20
    for limit in checked:
        for level in range(limit.first, 3):
            allowed = [limit.allowed(level)[pods] for pods in range(limit.goal + 1)]
            assert allowed == sorted(allowed)
            # Lists are computed for all numbers of pods at once, beside the formula for a single one.
            assert allowed == [limit.max_cost(level, pods) for pods in range(limit.goal + 1)]


def test_peaks_above_the_need_change_no_bound():
    """Lists of one to eight peaks, and every amount up to the need."""
    lowered = 0
    for seed in range(300):
        random = Random(seed)
        additions = sorted(random.choices(range(10), k=random.randint(1, 8)), reverse=True)
        sums = tuple(accumulate(filter(None, additions))) or (0,)
        need = random.randint(0, 40)
        ((*kept,),) = up_to((sums,), (need,))
        lowered += tuple(kept) != sums
        for amount in range(need + 1):
            assert fewest((amount,), (tuple(kept),)) == fewest((amount,), (sums,)), (seed, amount)
        assert fewest_by_amount(need, kept) == fewest_by_amount(need, sums)
    assert lowered > 100


def test_blocks_that_differ_above_the_need_share_a_limit():
    """Two racks of either block hold the gang; only the third rack has another number of nodes."""
    moment = cluster(
        "b1/r1: a b c\nb1/r2: d e f\nb1/r3: g h\nb2/r4: i j k\nb2/r5: l m n\nb2/r6: o", ("block", "rack")
    )
    group = gang(pod_set(4, shape(gpu=8), name="whole"), pod_set(4, shape(gpu=4, cpu=1), name="half"))
    packing, root, match = packing_of(moment, group)
    first, second = [packing.classes.of(block, match) for block in root.children]
    classes, full = packing.classes, packing.counts.full
    assert classes.highest.inner_peaks(classes, first) != classes.highest.inner_peaks(classes, second)
    assert packing.limits.limit(first, full, None) is packing.limits.limit(second, full, None)
