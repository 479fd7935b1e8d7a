"""Placements of one pod class after another keep every rule, as if all had been placed together.

The search of all classes together is made to end without a result, as it does for large gangs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from planner.model.labels import Requirement
from planner.model.podgroup import Constraint
from planner.planning.plan import plan
from planner.search.result import SearchResult
from tests.exact import test_affinity, test_spread
from tests.exact.solver import Instance, valid

INSTANCES = 400


def placed(instance: Instance) -> dict[tuple[str, str], int]:
    """The pods of each PodSet on each host; empty for gangs without a place and for those of one PodSet."""
    answer = plan(instance.snapshot, instance.group)
    return {(assignment.pod_set, assignment.node): assignment.count for assignment in answer.assignments}


@pytest.fixture(autouse=True)
def no_search_of_all_classes(monkeypatch):
    monkeypatch.setattr(
        "planner.search.place._searched",
        lambda problem, tree, request, budget: SearchResult(tree, request, None, (), complete=False),
    )


def of_two_apps(instance: Instance) -> Instance:
    """The instance with a label of its own for each PodSet, which its spread constraints select."""
    sets = []
    for pod_set, app in zip(instance.group.pod_sets, "ab", strict=False):
        selector = (Requirement("app", "In", (app,)),)
        spread = tuple(replace(constraint, selector=selector) for constraint in pod_set.shape.spread)
        terms = pod_set.shape.terms if app == "a" else ()  # which select app=a
        shape = replace(pod_set.shape, labels={"app": app}, spread=spread, terms=terms)
        sets.append(replace(pod_set, shape=shape))
    return replace(instance, group=replace(instance.group, pod_sets=tuple(sets), constraint=Constraint()))


@pytest.mark.parametrize("chunk", range(2))
def test_spread_constraints_of_each_class_hold(chunk):
    """Of two PodSets with spread constraints and anti-affinity, none of which is about the other."""
    admitted = 0
    for number in range(chunk, INSTANCES, 2):
        instance = of_two_apps(test_spread.random_instance(Random(number)))
        assigned = placed(instance)
        admitted += bool(assigned)
        assert not assigned or test_spread.fine(instance, assigned), (number, assigned)
    assert admitted > 10


@pytest.mark.parametrize("chunk", range(2))
def test_spread_constraints_hold_within_and_between_classes(chunk):
    """Of up to two PodSets, whose pods count each other in most instances."""
    admitted = Counter()
    for number in range(chunk, INSTANCES, 2):
        instance = test_spread.random_instance(Random(number))
        assigned = placed(instance)
        admitted[instance.group.constraint.required] += bool(assigned)
        assert not assigned or test_spread.fine(instance, assigned), (number, assigned)
    assert admitted[""] > 10
    assert sum(admitted.values()) - admitted[""] > 2, "gangs that require a level"


@pytest.mark.parametrize("chunk", range(2))
def test_affinity_and_anti_affinity_hold_within_and_between_classes(chunk):
    """Of up to three PodSets with affinity terms, most of which are about another."""
    admitted = Counter()
    for number in range(chunk, INSTANCES, 2):
        instance = test_affinity.random_instance(Random(number))
        assigned = placed(instance)
        admitted[instance.group.constraint.required] += bool(assigned)
        fine = valid(instance.snapshot, instance.group, assigned) and test_affinity.neighbourly(
            instance.snapshot, instance.group, assigned
        )
        assert not assigned or fine, (number, assigned)
    assert admitted[""] > 10
    assert sum(admitted.values()) - admitted[""] > 2, "gangs that require a level"
