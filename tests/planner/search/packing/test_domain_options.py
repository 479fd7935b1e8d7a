"""What the search relies on when it filters the options of domains by their allowed costs."""

from random import Random

from planner.planning.plan import plan
from planner.search.packing.domain_options import DomainOptions
from tests.exact.solver import random_instance


def test_no_option_of_a_domain_is_above_the_goal(monkeypatch):
    """So the allowed cost of each is read as it is. Random clusters and gangs, for one pod class and for
    several, in mixtures and pooled.
    """
    checked, sums_of = set(), DomainOptions._sums_of

    def recorded(self, domain_class, class_id, limit):
        options = sums_of(self, domain_class, class_id, limit)
        for counts, _ in options:
            assert self.counts.smaller(counts, limit.goal) == counts
            checked.add((type(self).__name__, len(self.counts.each(counts)), counts == limit.goal))
        return options

    monkeypatch.setattr(DomainOptions, "_sums_of", recorded)
    monkeypatch.setattr("planner.search.mixtures.several_classes._FIRST", 20)
    for seed in range(300):
        instance = random_instance(Random(seed), racks=4, hosts=4, max_pods=8, sets=3)
        plan(instance.snapshot, instance.group)
    assert {name for name, *_ in checked} == {"DomainPacking", "SeveralClassesPacking", "_PooledPacking"}
    assert {(classes > 1, whole) for _, classes, whole in checked} == {
        (False, False), (False, True), (True, False), (True, True),
    }  # fmt: skip
