"""Kinds of pods looked at pooled, and dealt to hosts, against every mixture of them."""

import os
from dataclasses import replace
from random import Random

import pytest

from planner.model.effort.work_budget import BudgetEnded, WorkBudget
from planner.model.podgroup import Constraint
from planner.model.resolved import resolved_group
from planner.request.topology_request import topology_request
from planner.request.validation import check
from planner.search.mixtures.several_classes import SeveralClassesPacking
from planner.search.packing.domain_packing import DomainPacking
from planner.search.space import search_space
from tests.exact.solver import Instance, random_instance, valid
from tests.exact.test_exact import LARGE, within_capacity

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4


def compared(instance: Instance) -> str:
    """Compares the two searches anywhere in the cluster; returns what came of it."""
    group = replace(instance.group, constraint=Constraint(), reserve="nodes")
    check(group)
    view = search_space(instance.snapshot, instance.snapshot.base.trees["topo"], occupied=True)
    kinds = topology_request(resolved_group(group), view.tree.topology).pod_classes
    if len(kinds) == 1:
        return "one kind"
    weights, match = view.weights(kinds), view.match(kinds)
    every = DomainPacking(kinds, "shared", weights, WorkBudget(10**9)).cost(view.capacity, match)
    pooled = SeveralClassesPacking(kinds, "shared", weights, WorkBudget(0, hard=True), WorkBudget())
    try:
        cost = pooled.cost(view.capacity, match)
    except BudgetEnded:
        return "undecided"
    assert cost == every
    if cost is None:
        return "no place"
    placed = pooled.place(view.capacity, match)
    if all(len(kind.parts) == 1 for kind in kinds):
        hosts = list(view.tree.names(view.tree.root))
        assigned = {
            (kind.parts[0][0], hosts[host_index]): count
            for host_index, counts in placed
            for kind, count in zip(kinds, counts, strict=True)
            if count
        }
        assert valid(instance.snapshot, group, assigned)
        assert within_capacity(Instance(instance.snapshot, group), assigned)
    return "placed"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pooled_and_dealt_no_placement_costs_more_than_the_best_of_every_mixture(chunk):
    """Least costs agree, what is dealt is a valid placement, and pools decide four of five."""
    seen = {"one kind": 0, "undecided": 0, "no place": 0, "placed": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        seen[compared(random_instance(Random(2_000_000 + number), **LARGE))] += 1
    assert seen["placed"] > 4 * seen["undecided"]
