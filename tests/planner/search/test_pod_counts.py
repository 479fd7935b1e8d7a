"""Sums and bounds of one pod class: the fast algorithms give the results of the plain ones."""

from random import Random

from planner.search.packing.bounds import fewest, fewest_by_amount
from planner.search.pod_counts import SingleClassCounts


def test_the_fewest_domains_are_the_same_for_all_numbers_at_once():
    """Domains that add less and less, one after another."""
    for seed in range(200):
        random = Random(seed)
        additions = sorted(random.choices(range(1, 10), k=random.randint(1, 6)), reverse=True)
        sums = tuple(sum(additions[: place + 1]) for place in range(len(additions)))
        each = [fewest((pods,), (sums,)) for pods in range(61)]
        assert fewest_by_amount(60, sums) == each, sums


def test_domains_that_hold_nothing_are_not_counted():
    """As `fewest` has it: what cannot be placed is told elsewhere."""
    assert fewest_by_amount(3, (0,)) == [fewest((pods,), ((0,),)) for pods in range(4)] == [0] * 4


def test_sums_of_too_few_pods_are_left_out_and_no_others():
    """Against all pairs: the least cost of each sum within what it may cost, capped at the goal."""
    for seed in range(200):
        random = Random(seed)
        goal = random.randint(1, 20)
        min_pods = random.randint(0, goal)
        allowed = sorted(random.choices(range(10, 40), k=goal + 1))
        before = {pods: random.randint(0, 20) for pods in random.sample(range(goal + 1), k=goal // 2 + 1)}
        sizes = sorted(random.sample(range(1, 12), k=4))
        options = list(zip(sizes, sorted(random.choices(range(15), k=4)), strict=True))
        sums = SingleClassCounts(goal).sums(before, options, goal, allowed, min_pods)
        plain = {pods: [cost] for pods, cost in before.items()}
        for pods, cost in before.items():
            for added, price in options if pods < goal else ():
                total = min(goal, pods + added)
                if cost + price <= allowed[total]:
                    plain.setdefault(total, []).append(cost + price)
        assert sums == {pods: min(costs) for pods, costs in plain.items() if pods >= min_pods}, seed
