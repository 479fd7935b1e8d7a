"""Tests the lower bound of a domain's cost, and that it saves searches."""

from collections.abc import Iterator
from random import Random

import pytest

from planner.cluster.capacity import DomainCapacity
from planner.model.effort.work_budget import BudgetEnded, WorkBudget
from planner.model.pod import BoundPod
from planner.model.resolved import resolved_group
from planner.planning.plan import plan
from planner.request.relaxation import relaxations
from planner.request.topology_request import topology_request
from planner.request.validation import Refusal
from planner.search.eligibility_map import EligibilityMap
from planner.search.level_search import LevelSearch
from planner.search.mixtures.several_classes import SeveralClassesPacking
from planner.search.packing.domain_packing import DomainPacking
from planner.search.space import search_space
from tests.builders import amounts, cluster, gang, pod_set, shape
from tests.exact.solver import random_instance

MIXED = (pod_set(2, shape(gpu=8), name="prefill"), pod_set(4, shape(gpu=1, cpu=4), name="decode"))


def domains(
    capacity: DomainCapacity, match: EligibilityMap
) -> Iterator[tuple[DomainCapacity, EligibilityMap]]:
    """Each domain of a tree, with its map."""
    yield capacity, match
    for child, child_match in zip(capacity.children, match.of_children(len(capacity.children)), strict=True):
        yield from domains(child, child_match)


def packing_of(moment, group) -> tuple[DomainPacking, DomainCapacity, EligibilityMap]:
    """The packing of a gang in the only topology of a cluster, and the root with its map."""
    (tree,) = moment.base.trees.values()
    asked = topology_request(resolved_group(group), tree.topology)
    space = search_space(moment, tree, occupied=True)
    search = LevelSearch(space, asked, group.reserve, WorkBudget(100_000))
    pod_classes = relaxations(asked)[-1]
    return search.packing(pod_classes), space.capacity, space.match(pod_classes)


def test_no_gang_costs_less_than_the_bound():
    """In any domain of random clusters, for one pod class and for several."""
    compared = several = 0
    for seed in range(400):
        instance = random_instance(Random(seed), racks=4, hosts=4, max_pods=6, sets=3)
        try:
            packing, root, match = packing_of(instance.snapshot, instance.group)
        except Refusal:  # of a request that contradicts itself
            continue
        for domain, domain_match in domains(root, match):
            try:
                cost = packing.cost(domain, domain_match)
            except BudgetEnded:
                break
            if cost is not None:
                assert packing.least_cost(domain, domain_match) <= cost
                compared += 1
                several += isinstance(packing, SeveralClassesPacking)
    assert compared > several > 100


def test_the_bound_has_the_pristine_nodes_that_a_pod_class_needs():
    """Both prefill pods use whole nodes, and the only nodes in use have too few free GPUs for one."""
    moment = cluster("r1: a b c d\nr1: u v w x used=4")
    packing, root, match = packing_of(moment, gang(*MIXED))
    (rack,) = root.children
    assert packing.least_cost(rack, match) == packing.cost(rack, match)
    nodes_in_use_are_enough = 2 * packing.weights.domains[-1] + 2 * packing.weights.opened[-1]
    assert packing.least_cost(rack, match) >= packing.weights.own(rack) + nodes_in_use_are_enough


@pytest.mark.parametrize("used", [1, 2])
def test_few_of_many_used_racks_are_searched(monkeypatch, used):
    """Forty racks with no two alike, each with nodes in use: only those that may be the best are."""
    rows = [
        f"b{rack // 8}/r{rack}: " + " ".join(f"n{rack}-{host}" for host in range(6)) for rack in range(40)
    ]
    moment = cluster("\n".join(rows), ("block", "rack"))
    random = Random(used)
    for rack in range(40):
        for host in range(4):
            taken = amounts(gpu=used, cpu=random.randint(1, 20), pods=1)
            moment = moment.with_pod(BoundPod(f"y/p{rack}-{host}", f"n{rack}-{host}", taken))
    searched: list[object] = []
    min_cost = DomainPacking._min_cost
    monkeypatch.setattr(DomainPacking, "_min_cost", lambda *asked: searched.append(asked) or min_cost(*asked))
    answer = plan(moment, gang(*MIXED, preferred="rack", reserve="nodes"))
    assert answer.level == "rack"
    assert len(searched) <= 15
