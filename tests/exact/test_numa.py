"""NUMA zones in the plan, against trying every number of pods on every node in every order.

The kubelet's rule is written here once more from its words, so that a slip in the planner shows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import combinations, permutations, product
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.pod import Alignment, BoundPod, ContainerRequest, PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.node.numa_state import numa_state_now
from planner.node.topology_manager import NumaNode, Zone
from planner.planning.plan import plan
from tests.builders import gang, node, topology
from tests.exact.verdict import placed

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Instance:
    """A cluster, a gang, and the zones of the nodes that publish any."""

    snapshot: Snapshot
    group: PodGroup
    numa: dict[str, NumaNode]


def random_instance(random: Random) -> Instance:
    """One to three nodes of two or three zones, some without any; one or two PodSets of one to three pods."""
    nodes, numa, pods = [], {}, []
    policy = random.choice(("single-numa-node", "single-numa-node", "restricted"))
    scope = random.choice(("container", "pod"))
    for number in range(random.randint(1, 3)):
        name, count = f"n{number}", random.randint(2, 3)
        each = {GPU: random.choice((2, 4)), "cpu": 8_000}
        free = [{GPU: random.choice((each[GPU], each[GPU], 1)), "cpu": 8_000} for _ in range(count)]
        nodes.append(node(name, gpu=each[GPU] * count, cpu=8 * count, labels={"rack": f"r{number % 2}"}))
        if random.random() < 0.85:
            zones = tuple(Zone(f"node-{z}", each, left) for z, left in enumerate(free))
            numa[name] = NumaNode(name, policy, scope, zones)
            used = sum(each[GPU] - left[GPU] for left in free)
            if used:
                taken = Alignment((ContainerRequest("", {GPU: used}),), (ContainerRequest("", {GPU: used}),))
                pods.append(BoundPod(f"x/{name}", name, {GPU: used, "pods": 1}, alignment=taken))
    sets = [_pod_set(random, place) for place in range(random.randint(1, 2))]
    return Instance(snapshot(nodes, [topology("rack")], pods, numa=numa), gang(*sets, reserve="nodes"), numa)


def wide_instance(random: Random) -> Instance:
    """One or two nodes of four zones, each partly in use, whose kubelets may give a pod several zones; two
    PodSets of one or two pods with some CPUs, or GPUs and CPUs.
    """
    nodes, numa, pods = [], {}, []
    for number in range(random.randint(1, 2)):
        name, whole = f"n{number}", {GPU: 4, "cpu": 4_000}
        free = [{GPU: random.randint(1, 4), "cpu": random.choice((1, 2, 3, 4, 4)) * 1000} for _ in range(4)]
        nodes.append(node(name, gpu=16, cpu=16, labels={"rack": "r"}))
        numa[name] = NumaNode(
            name, "restricted", "pod", tuple(Zone(f"node-{z}", whole, left) for z, left in enumerate(free))
        )
        used = {resource: sum(whole[resource] - left[resource] for left in free) for resource in whole}
        taken = Alignment((ContainerRequest("", used),), (ContainerRequest("", used),))
        pods.append(BoundPod(f"x/{name}", name, {**used, "pods": 1}, alignment=taken))
    resources = random.choice(((GPU,), ("cpu",), (GPU, "cpu")))
    sets = []
    for place in range(2):
        asked = random.choice((1, 2, 3, 5, 6, 7))
        requests = {resource: asked * (1000 if resource == "cpu" else 1) for resource in resources}
        each = (ContainerRequest("", requests),)
        shape = PodShape({**requests, "pods": 1}, alignment=Alignment(each, each))
        sets.append(PodSet(f"s{place}", random.randint(1, 2), shape))
    return Instance(snapshot(nodes, [topology("rack")], pods, numa=numa), gang(*sets, reserve="nodes"), numa)


def _pod_set(random: Random, place: int) -> PodSet:
    containers = [
        {GPU: random.randint(0, 4), "cpu": random.choice((0, 1, 2, 6)) * 1000}
        for _ in range(random.choice((1, 1, 2)))
    ]
    total = {name: sum(container[name] for container in containers) for name in (GPU, "cpu")}
    requests = {name: amount for name, amount in total.items() if amount} | {"pods": 1}
    asks = tuple(ContainerRequest(f"c{index}", container) for index, container in enumerate(containers))
    shape = PodShape(requests, alignment=Alignment(asks, (ContainerRequest("", total),)))
    return PodSet(f"s{place}", random.randint(1, 3), shape)


def taken(numa: NumaNode, free: list[dict[str, int]], pod: PodShape) -> list[dict[str, int]] | None:
    """What the zones have left after the kubelet took a pod, None where it refuses it."""
    assert pod.alignment is not None
    asks = pod.alignment.pod if numa.scope == "pod" else pod.alignment.containers
    left = [dict(zone) for zone in free]
    for ask in asks:
        needs = {name: amount for name, amount in ask.requests.items() if amount}
        if not needs:
            continue
        everywhere = [
            zones
            for size in range(1, len(left) + 1)
            for zones in combinations(range(len(left)), size)
            if all(_width(numa, name, n) == size for name, n in needs.items()) or numa.policy != "restricted"
        ]
        if numa.policy == "single-numa-node":
            everywhere = [zones for zones in everywhere if len(zones) == 1]
        serving = [z for z in everywhere if all(sum(left[i][r] for i in z) >= n for r, n in needs.items())]
        if not serving:
            return None
        chosen = min(serving, key=lambda zones: sum(1 << zone for zone in zones))
        for name, amount in needs.items():
            for zone in _cpu_order(numa, left, chosen, amount) if name == "cpu" else chosen:
                part = min(amount, left[zone][name])
                left[zone][name] -= part
                amount -= part
    return left


def _cpu_order(numa: NumaNode, left: list[dict[str, int]], zones: tuple[int, ...], amount: int) -> list[int]:
    """Zones in the CPU Manager's order: whole ones needed whole, then those with the fewest free."""
    order: list[int] = []
    while len(order) < len(zones):
        rest = [zone for zone in zones if zone not in order]
        needed = amount - sum(left[zone]["cpu"] for zone in order)
        whole = [
            z for z in rest if left[z]["cpu"] == numa.zones[z].allocatable["cpu"] and left[z]["cpu"] <= needed
        ]
        order.append(min(whole or rest, key=lambda zone: (left[zone]["cpu"], zone)))
    return order


def _width(numa: NumaNode, name: str, amount: int) -> int:
    """The fewest zones that could give so much when empty."""
    for size in range(1, len(numa.zones) + 1):
        if any(sum(z.allocatable[name] for z in some) >= amount for some in combinations(numa.zones, size)):
            return size
    return 0


@pytest.mark.parametrize("draw", [random_instance, wide_instance])
def test_each_pod_gets_the_zones_that_the_kubelet_gives_it(draw):
    """One pod after another, on every node that publishes zones, until one is refused."""
    refused = 0
    for number in range(INSTANCES):
        instance = draw(Random(number))
        for numa in instance.numa.values():
            state, free = numa_state_now(numa, [], []), [dict(zone.available) for zone in numa.zones]
            for pod_set in instance.group.pod_sets * 2:
                alignment = pod_set.shape.alignment
                assert alignment is not None
                after, left = state.with_new_pod(alignment), taken(numa, free, pod_set.shape)
                assert (None if after is None else [dict(zone) for zone in after.free]) == left, number
                if after is None or left is None:
                    refused += 1
                    break
                state, free = after, left
    assert refused, "the sample has pods that are refused"


def holds(instance: Instance, name: str, counts: tuple[int, ...], *, empty: bool = False) -> bool:
    """Whether a node takes so many pods of each PodSet, by their sums and in whatever order they come."""
    shapes = [pod_set.shape for pod_set in instance.group.pod_sets]
    used = {} if empty else instance.snapshot.taken.get(name, {})
    for resource, have in instance.snapshot.nodes[name].allocatable.items():
        asked = sum(shape.requests.get(resource, 0) * n for shape, n in zip(shapes, counts, strict=True))
        if asked > have - used.get(resource, 0):
            return False
    numa = instance.numa.get(name)
    if numa is None:
        return True
    start = [dict(zone.allocatable if empty else zone.available) for zone in numa.zones]
    pods = [place for place, count in enumerate(counts) for _ in range(count)]
    for order in set(permutations(pods)):
        free: list[dict[str, int]] | None = start
        for place in order:
            free = taken(numa, free, shapes[place])
            if free is None:
                return False
    return True


def hosts_needed(instance: Instance, *, empty: bool = False) -> int | None:
    """The fewest nodes that hold the gang; None where none do."""
    names = list(instance.snapshot.nodes)
    splits = [
        [
            parts
            for parts in product(range(pod_set.count + 1), repeat=len(names))
            if sum(parts) == pod_set.count
        ]
        for pod_set in instance.group.pod_sets
    ]
    fits: dict[tuple[str, tuple[int, ...]], bool] = {}
    best: int | None = None
    for chosen in product(*splits):
        counts = {name: tuple(parts[index] for parts in chosen) for index, name in enumerate(names)}
        for name, pod_counts in counts.items():
            if (name, pod_counts) not in fits:
                fits[name, pod_counts] = holds(instance, name, pod_counts, empty=empty)
        if all(fits[name, pod_counts] for name, pod_counts in counts.items()):
            used = sum(1 for pod_counts in counts.values() if any(pod_counts))
            best = used if best is None else min(best, used)
    return best


@pytest.mark.parametrize("draw", [random_instance, wide_instance])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_numa_zones_are_planned_exactly(chunk, draw):
    """A place is found if and only if some numbers of pods are taken by every node in every order."""
    seen = {"admitted": 0, "queued": 0, "rejected": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        instance = draw(Random(number))
        answer = plan(instance.snapshot, instance.group)
        seen[answer.decision] += 1
        if not placed(
            answer,
            hosts_needed(instance),
            lambda instance=instance: hosts_needed(instance, empty=True),
            number,
        ):
            continue
        counts: dict[str, list[int]] = {}
        order = [pod_set.name for pod_set in instance.group.pod_sets]
        for assignment in answer.assignments:
            node_counts = counts.setdefault(assignment.node, [0] * len(order))
            node_counts[order.index(assignment.pod_set)] += assignment.count
        assert all(holds(instance, name, tuple(pod_counts)) for name, pod_counts in counts.items()), (
            number,
            answer,
        )
    assert all(seen.values()), "the sample has all three answers"
