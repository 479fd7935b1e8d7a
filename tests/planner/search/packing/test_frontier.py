"""Reading a placement from the sums backwards: the short way gives the result of the definition."""

from random import Random

import pytest

from planner.search.packing.frontier import FrontierSearch
from planner.search.pod_counts import MultiClassCounts, SingleClassCounts


def plain_shares(counts, offers, stages, target, cost):
    """Each domain's smallest option, or no pods, with which the target is reached at this cost; of several
    sums before it, the largest.
    """
    for index in range(len(offers) - 1, -1, -1):
        for option, price in [(counts.zero, 0), *offers[index]]:
            rests = [
                counts.smaller(held, target)
                for held, paid in stages[index].items()
                if paid == cost - price and counts.covers(counts.add(held, option), target)
            ]
            if rests:
                break
        share = counts.minus(target, max(rests))
        if share != counts.zero:
            yield index, share, price
        target, cost = max(rests), cost - price


def every_sum(counts, offers):
    """The lowest cost of each sum over the first 0, 1, … domains; none is dropped, so that sums above the
    target and sums of equal cost remain.
    """
    stages = [{counts.zero: 0}]
    for options in offers:
        stage = dict(stages[-1])
        for held, paid in stages[-1].items():
            for option, price in options:
                total = counts.add(held, option)
                stage[total] = min(paid + price, stage.get(total, paid + price))
        stages.append(stage)
    return stages


@pytest.mark.parametrize("counts", [SingleClassCounts(9), MultiClassCounts((3, 4))])
def test_each_domain_gets_its_smallest_option(counts):
    """Few different costs, so that domains with pods and domains without any reach the same cost."""
    passed_over = 0
    for seed in range(300):
        random = Random(seed)
        sizes = [counts.pack(tuple(random.randint(0, 3) for _ in counts.each(0))) for _ in range(12)]
        offers = [
            sorted({size: random.randint(1, 3) for size in random.sample(sizes, 3) if size}.items())
            for _ in range(5)
        ]
        stages = every_sum(counts, offers)
        for target, cost in stages[-1].items():
            shares = list(FrontierSearch(None, offers, stages).shares(counts, target, cost))
            assert shares == list(plain_shares(counts, offers, stages, target, cost)), seed
            passed_over += len(shares) < len(offers)
    assert passed_over > 1000
