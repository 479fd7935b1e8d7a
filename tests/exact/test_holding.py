"""What is held under `auto`, against the rule in plain words and a solver that tries everything."""

import os
from dataclasses import replace
from random import Random

import pytest

from planner.model.answer import Answer
from planner.model.topology import Domain
from planner.planning.plan import plan
from tests.builders import GPU
from tests.exact.solver import Instance, domains, path, random_instance, solve
from tests.exact.verdict import placed

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 8


def level_of(word: str) -> int:
    """1 a block, 2 a rack, 3 a host; 0 for none."""
    return {"": 0, "block": 1, "rack": 2, "host": 3}[word]


def required(instance: Instance) -> dict[str, int]:
    """By PodSet the coarsest level that its pods require, all together or in slices."""
    whole = level_of(instance.group.constraint.required)
    own = {
        pod_set.name: [level_of(pod_set.constraint.required), level_of(pod_set.constraint.slice_level)]
        for pod_set in instance.group.pod_sets
    }
    return {name: min((n for n in (whole, *levels) if n), default=0) for name, levels in own.items()}


def domains_to_hold(instance: Instance, answer: Answer) -> set[Domain]:
    """The smallest domain around the placement, or those inside it that are as coarse as may be held."""
    topology, group = instance.snapshot.topologies[0], instance.group
    paths = {path(instance.snapshot, assignment.node) for assignment in answer.assignments}
    asked = [level for level in required(instance).values() if level] or [
        level for level in (level_of(group.constraint.preferred),) if level
    ]
    coarsest = max(topology.reservable_index + 1, min(asked, default=0))
    for depth in (3, 2, 1):
        around = {p[:depth] for p in paths}
        if len(around) == 1 and all(domain[-1] for domain in around) and depth >= coarsest:
            return around
    return {p[:coarsest] if p[coarsest - 1] else p for p in paths}


def to_hold(instance: Instance, answer: Answer, domain: Domain) -> bool:
    """Whether the gang is to hold the domain, others aside."""
    requests = {pod_set.name: pod_set.shape.gpus for pod_set in instance.group.pod_sets}
    inside = [a for a in answer.assignments if path(instance.snapshot, a.node)[: len(domain)] == domain]
    taken = sum(requests[assignment.pod_set] * assignment.count for assignment in inside)
    gpus = sum(
        node.allocatable.get(GPU, 0)
        for name, node in instance.snapshot.nodes.items()
        if path(instance.snapshot, name)[: len(domain)] == domain
    )
    if instance.group.size == 1:
        return 0 < taken == gpus
    return all(required(instance)[assignment.pod_set] for assignment in inside) or 0 < gpus <= 2 * taken


def others_in(instance: Instance, domain: Domain) -> bool:
    """Whether another gang holds or uses a node of the domain."""
    touched = {name for held in instance.snapshot.reservations for name in held.touched}
    return any(path(instance.snapshot, name)[: len(domain)] == domain for name in touched)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_is_held_follows_from_the_place_and_the_place_is_there_whenever_one_is(chunk):
    """The rule over each domain of the placement; nothing that `nodes` admits is refused or queued."""
    held = {True: 0, False: 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        instance = random_instance(Random(number))
        instance = Instance(instance.snapshot, replace(instance.group, reserve="auto"))
        answer = plan(instance.snapshot, instance.group)
        if answer.reason in ("SliceLevelTooCoarse", "PodSetLevelTooCoarse"):
            continue
        fewest = solve(instance)
        if not placed(answer, fewest, lambda instance=instance: solve(instance, empty=True), number):
            continue
        wanted = domains_to_hold(instance, answer)
        suits = all(to_hold(instance, answer, domain) for domain in wanted)
        clear = not any(others_in(instance, domain) for domain in wanted)
        assert set(answer.reserves) == (wanted if suits and clear else set()), (number, answer)
        assert answer.holds == ("domain" if answer.reserves else "nodes"), number
        held[bool(answer.reserves)] += 1
        used = domains(instance.snapshot, {assignment.node for assignment in answer.assignments})
        alone = solve(replace(instance, group=replace(instance.group, reserve="domain")))
        if suits and not clear and any(required(instance).values()) and instance.group.size > 1:
            assert alone is None, (number, answer)
        assert used in (fewest, alone), (number, answer)
    assert all(held.values())
