"""Limits per leaf in the plan of leaf-spine gangs, against trying every placement.

The limits of nodes and GPUs that a ConfigMap states are hard: a gang is placed within them if any placement
keeps them, and never refused if one does in the empty cluster. With several PodSets the plan chooses the
nodes of a leaf before it knows which PodSet gets them, so there only a limit of nodes
that excludes none is exact.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.podgroup import FabricWish, PodGroup, PodSet
from planner.model.settings import DEFAULTS
from planner.model.topology import HOSTNAME, Topology
from planner.planning.plan import plan
from tests.builders import amounts, gang, node, shape
from tests.exact.solver import Assigned, Instance, every_placement
from tests.exact.test_exact import within_capacity

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4
FABRIC = Topology("fabric", ("spine", "leaf", HOSTNAME))


def random_instance(random: Random) -> Instance:
    """Up to three leaves of up to three hosts, some in use; limits that often divide a node."""
    nodes: list[Node] = []
    pods: list[BoundPod] = []
    for leaf in range(random.randint(1, 3)):
        for host in range(random.randint(1, 3)):
            name = f"l{leaf}-n{host}"
            labels = {"spine": "s", "leaf": f"l{leaf}"}
            nodes.append(node(name, labels=labels, gpu=random.choice((2, 4, 8, 8)), cpu=16))
            if random.random() < 0.2:
                pods.append(BoundPod(f"x/p{name}", name, amounts(gpu=random.randint(1, 2), pods=1)))
    sets = [_pod_set(random, place) for place in range(random.choice((1, 1, 2)))]
    nodes_per_leaf = random.choice((1, 2, 3)) if len(sets) == 1 else 3
    settings = replace(
        DEFAULTS, nodes_per_leaf=nodes_per_leaf, gpus_per_leaf=random.randint(1, 16), limited=True
    )
    group = gang(*sets, reserve=random.choice(("nodes", "domain")), required=random.choice(("", "", "leaf")))
    wish = FabricWish(strategy=random.choice(("", "balanced", "consolidated")), stated=True)
    return Instance(snapshot(nodes, [FABRIC], pods, settings=settings), replace(group, fabric=wish))


def _pod_set(random: Random, place: int) -> PodSet:
    count = random.randint(1, 5 if not place else 3)
    return PodSet(f"s{place}", count, shape(gpu=random.choice((0, 1, 2, 3, 4)), cpu=random.choice((1, 4))))


def valid(moment: Snapshot, group: PodGroup, assigned: Assigned) -> bool:
    """Whether a placement keeps the limits of each leaf and the required level."""
    gpus = {pod_set.name: pod_set.shape.gpus for pod_set in group.pod_sets}
    used = Counter[str]()
    for (pod_set, name), count in assigned.items():
        used[_leaf(name)] += gpus[pod_set] * count
    hosts = Counter(map(_leaf, {name for _, name in assigned}))
    settings = moment.base.settings
    return (
        (not group.constraint.required or len(hosts) == 1)
        and max(hosts.values()) <= settings.nodes_per_leaf
        and max(used.values()) <= settings.gpus_per_leaf
    )


def _leaf(name: str) -> str:
    return name.split("-")[0]


def _exists(moment: Snapshot, group: PodGroup) -> bool:
    return any(valid(moment, group, assigned) for assigned in every_placement(moment, group))


def check(instance: Instance, number: int) -> str:
    """Compares the plan with all placements; returns the decision."""
    moment, group = instance.snapshot, instance.group
    answer = plan(moment, group)
    if not _exists(moment, group):
        assert answer.decision != "admitted", (number, answer)
        if _exists(Snapshot(moment.base), group):
            assert answer.decision == "queued", (number, answer)
        elif len(group.pod_sets) == 1:
            assert answer.decision == "rejected", (number, answer)
        return answer.decision
    assert answer.decision == "admitted", (number, answer)
    assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
    for pod_set in group.pod_sets:
        assert sum(n for (whose, _), n in assigned.items() if whose == pod_set.name) == pod_set.count
    assert within_capacity(instance, assigned), number
    assert valid(moment, group, assigned), (number, answer)
    return answer.decision


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_gang_is_placed_if_any_placement_keeps_the_limits(chunk):
    """No refusal and no placement is wrong."""
    numbers = range(chunk, INSTANCES, CHUNKS)
    seen = Counter(check(random_instance(Random(number)), number) for number in numbers)
    assert seen["admitted"], "the sample has instances that fit"
