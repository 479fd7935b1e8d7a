"""Pods of one class that are spread over several labels get their numbers one by one, as kube-scheduler would
place them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.model.labels import Requirement
from planner.model.pod import BoundPod, SpreadConstraint
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from planner.search.rules.spread_one_by_one import pods_by_cell
from planner.search.rules.spread_over_labels import SpreadRule
from tests.builders import GPU, gang, node, pod_set, shape, topology

OF_THE_GANG = (Requirement("app", "In", ("a",)),)


def rule(existing: dict[str, int], skew: int = 1, min_domains: int = 1) -> SpreadRule:
    """A constraint over domains with these numbers of existing pods."""
    return SpreadRule(
        SpreadConstraint("row", skew, OF_THE_GANG, min_domains), existing, (0,), (0,), {}, {}, 0
    )


def test_each_pod_goes_where_the_fewest_are():
    """The pods of z1 go to row b, because z2 has only row a."""
    zones, rows = rule({"z1": 0, "z2": 0}), rule({"a": 0, "b": 0})
    room = {("z1", "a"): 9, ("z1", "b"): 9, ("z2", "a"): 9}
    pods = pods_by_cell([zones, rows], room, 5)
    assert pods == {("z1", "b"): 3, ("z2", "a"): 2}
    assert pods_by_cell([zones, rows], room, 28) is None


counts = st.lists(st.integers(0, 3), min_size=1, max_size=3)


@given(st.lists(counts, min_size=1, max_size=2), st.lists(st.integers(0, 4)), st.integers(1, 9), st.data())
def test_the_numbers_fit_and_satisfy_every_constraint(existing, fits, count, data):
    rules = [
        rule({f"{number}{place}": n for place, n in enumerate(row)}, data.draw(st.integers(1, 2)))
        for number, row in enumerate(existing)
    ]
    room = dict(zip(product(*(each.existing for each in rules)), fits, strict=False))
    pods = pods_by_cell(rules, room, count)
    if pods is None:
        if len(rules) == 1:  # then the order of the pods does not matter: a refusal is right
            assert not has_place(rules[0], {value: fits for (value,), fits in room.items()}, count)
        return
    assert pods.total() == count
    assert all(pods[cell] <= room[cell] for cell in pods)
    for number, each in enumerate(rules):
        by_value = Counter()
        for cell, n in pods.items():
            by_value[cell[number]] += n
        assert each.holds({value: (n,) for value, n in by_value.items()})


def has_place(each: SpreadRule, room: dict[str, int], count: int) -> bool:
    """Returns whether some distribution of the pods satisfies the constraint, by trying all."""
    domains = list(each.existing)
    choices = product(*(range(min(room.get(value, 0), count) + 1) for value in domains))
    return any(
        sum(chosen) == count
        and each.holds({value: (n,) for value, n in zip(domains, chosen, strict=True) if n})
        for chosen in choices
    )


@pytest.mark.parametrize(
    "keys", [("zone", "row"), ("row", "rack"), ("zone", HOSTNAME), ("zone", "row", HOSTNAME)]
)
@pytest.mark.parametrize("pods", [6, 24])
def test_a_search_that_ends_at_once_spreads_pods_over_several_labels(keys, pods, monkeypatch):
    """96 nodes, of which half are used; rows cut across zones, and racks have the same names in each zone."""
    monkeypatch.setattr("planner.search.rules.search_effort._EFFORT", 0)
    monkeypatch.setattr("planner.search.rules.placement_under_rules._RuleSearch._best_spread", ended)
    random = Random(pods)
    hosts = [
        node(
            f"n{place}",
            labels={"zone": f"z{place // 32}", "rack": f"r{place % 32 // 8}", "row": f"w{place % 4}"},
        )
        for place in range(96)
    ]
    used = [BoundPod(f"x/on-{n.name}", n.name, {GPU: 8, "pods": 1}) for n in hosts if random.random() < 0.5]
    moment = snapshot(hosts, [topology("zone", "rack")], used)
    spread = tuple(SpreadConstraint(key, 1, OF_THE_GANG) for key in keys)
    pod = replace(shape(gpu=8), labels={"app": "a"}, spread=spread)
    answer = plan(moment, gang(pod_set(pods, pod), reserve="none"))
    assert answer.decision == "admitted"
    for key in keys:
        placed = Counter({moment.nodes[host].labels[key]: 0 for host in moment.nodes})
        for assignment in answer.assignments:
            placed[moment.nodes[assignment.node].labels[key]] += assignment.count
        assert placed.total() == pods
        assert max(placed.values()) - min(placed.values()) <= 1


def ended(search):
    """Stands for a search whose effort ended before it had a placement."""
    search._complete = False
