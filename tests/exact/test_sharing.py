"""Parts of GPUs against trying every GPU for every part, on small random clusters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import PodGroup
from planner.planning.plan import plan
from tests.builders import GPU, amounts
from tests.exact.solver import Assigned, Instance, domains, random_instance, valid
from tests.exact.verdict import placed

INSTANCES = max(200, int(os.environ.get("BAYPLAN_EXACT", "400")) // 4)
CHUNKS = 4
EACH = 100
"""Hundredths of a GPU: the nodes have no label that tells of memory."""
SIZES = {"gpu-fraction/0.3": 30, "gpu-fraction/0.5": 50, "gpu-fraction/0.6": 60, "gpu-fraction/0.4x2": 40}


def sharing(random: Random) -> Instance:
    """An instance in which some PodSets and bound pods ask for parts of GPUs."""
    instance = random_instance(random, racks=2, hosts=2, max_pods=4)
    sets = tuple(
        replace(p, shape=_part(random, p.shape)) if random.random() < 0.7 else p
        for p in instance.group.pod_sets
    )
    pods = [*instance.snapshot.bound]
    for node in instance.snapshot.nodes.values():
        for place in range(random.choice((0, 0, 1, 2)) if node.allocatable.get(GPU) else 0):
            groups = random.choice(((), (f"{node.name}-g1",), (f"{node.name}-g2",)))
            requests = {random.choice(list(SIZES)[:3]): 1, "pods": 1}
            pods.append(BoundPod(f"y/{node.name}-{place}", node.name, requests, gpu_groups=groups))
    cluster = snapshot(
        instance.snapshot.nodes.values(), instance.snapshot.topologies, pods, instance.snapshot.reservations
    )
    return Instance(cluster, replace(instance.group, pod_sets=sets))


def _part(random: Random, shape: PodShape) -> PodShape:
    asked = {name: amount for name, amount in shape.requests.items() if name != GPU}
    return replace(shape, requests={**asked, random.choice(list(SIZES)): 1})


def gpus_fit(moment: Snapshot, name: str, requests: list[dict[str, int]]) -> bool:
    """Whether pods with these requests find GPUs on a node, by trying each GPU for each part."""
    groups: dict[str, int] = {}
    loose: list[str] = []
    whole = sum(request.get(GPU, 0) for request in requests)
    for pod in moment.bound.on(name):
        whole += pod.requests.get(GPU, 0)
        for part in (resource for resource in pod.requests if resource in SIZES):
            for group in pod.gpu_groups:
                groups[group] = groups.get(group, EACH) - SIZES[part]
            loose += [] if pod.gpu_groups else [part]
    loose += [part for request in requests for part in request if part in SIZES]
    if not any(resource == GPU or resource in SIZES for request in requests for resource in request):
        return True  # a node that is full, or more than that, still takes pods without GPUs
    empty = moment.nodes[name].allocatable.get(GPU, 0) - len(groups) - whole
    return empty >= 0 and _lie([*(max(0, room) for room in groups.values()), *[EACH] * empty], loose)


def _lie(rooms: list[int], parts: list[str]) -> bool:
    if min(rooms, default=0) < 0:
        return False
    if not parts:
        return True
    size, devices = SIZES[parts[0]], 2 if parts[0].endswith("x2") else 1
    return any(
        _lie([room - size * taken for room, taken in zip(rooms, chosen, strict=True)], parts[1:])
        for chosen in product((0, 1), repeat=len(rooms))
        if sum(chosen) == devices
    )


def _others_fit(moment: Snapshot, name: str, requests: list[dict[str, int]]) -> bool:
    taken = dict(moment.taken.get(name, {}))
    for request in requests:
        for resource, amount in request.items():
            taken[resource] = taken.get(resource, 0) + amount
    offers = moment.nodes[name].allocatable
    resources = {resource for request in requests for resource in request}
    return all(taken[r] <= offers.get(r, 0) for r in resources if r != GPU and r not in SIZES)


def every(moment: Snapshot, group: PodGroup) -> Iterator[Assigned]:
    """Every way to put the pods on nodes within what these have."""
    shapes = [dict(p.shape.requests) for p in group.pod_sets]
    verdicts: dict[tuple[str, tuple[int, ...]], bool] = {}

    def fits(name: str, counts: tuple[int, ...]) -> bool:
        if (name, counts) not in verdicts:
            pods = [shape for shape, count in zip(shapes, counts, strict=True) for _ in range(count)]
            verdicts[name, counts] = _others_fit(moment, name, pods) and gpus_fit(moment, name, pods)
        return verdicts[name, counts]

    def fill(names: list[str], left: tuple[int, ...]) -> Iterator[dict[str, tuple[int, ...]]]:
        if not names:
            if not any(left):
                yield {}
            return
        for counts in product(*(range(n + 1) for n in left)):
            if not any(counts) or fits(names[0], counts):
                for rest in fill(names[1:], tuple(n - c for n, c in zip(left, counts, strict=True))):
                    yield {names[0]: counts, **rest}

    for chosen in fill(list(moment.nodes), tuple(p.count for p in group.pod_sets)):
        yield {
            (p.name, name): count
            for name, counts in chosen.items()
            for p, count in zip(group.pod_sets, counts, strict=True)
            if count
        }


def solve(instance: Instance, *, empty: bool = False) -> tuple[int, ...] | None:
    """The least (blocks, racks, hosts) of any valid placement, None where there is none."""
    moment = Snapshot(instance.snapshot.base) if empty else instance.snapshot
    counts = (
        domains(moment, {name for _, name in assigned})
        for assigned in every(moment, instance.group)
        if valid(moment, instance.group, assigned)
    )
    return min(counts, default=None)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_parts_of_gpus_are_planned_exactly(chunk: int) -> None:
    """No wrong refusal, no wrong yes, and no domain too many."""
    seen = {"admitted": 0, "queued": 0, "rejected": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        instance = sharing(Random(number))
        answer = plan(instance.snapshot, instance.group)
        seen[answer.decision] += 1
        if answer.reason in ("SliceLevelTooCoarse", "PodSetLevelTooCoarse"):
            continue
        fewest = solve(instance)
        if not placed(answer, fewest, lambda instance=instance: solve(instance, empty=True), number):
            continue
        assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
        assert valid(instance.snapshot, instance.group, assigned), (number, answer)
        assert domains(instance.snapshot, {node for _, node in assigned}) == fewest, (number, fewest, answer)
        for name in {node for _, node in assigned}:
            pods = [
                dict(p.shape.requests)
                for p in instance.group.pod_sets
                for _ in range(assigned.get((p.name, name), 0))
            ]
            assert gpus_fit(instance.snapshot, name, pods), (number, answer)
    assert all(seen.values())


def test_the_sample_asks_for_parts() -> None:
    """Most of its gangs do."""
    groups = [sharing(Random(number)).group for number in range(40)]
    parts = [any(name in SIZES for p in group.pod_sets for name in p.shape.requests) for group in groups]
    assert sum(parts) > 20
    assert amounts(gpu=1) == {GPU: 1}
