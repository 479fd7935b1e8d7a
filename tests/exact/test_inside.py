"""NVLink domains inside hosts against trying every domain for every set of pods that must lie in one."""

from __future__ import annotations

import os
from collections import Counter
from itertools import product
from random import Random

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.planning.plan import plan
from tests.builders import GPU, gang, node, shape, topology

INSTANCES = max(400, int(os.environ.get("BAYPLAN_EXACT", "400")) // 8)
LEVEL, SIZE = "gpu.topology/nvlink-domain", "gpu.topology/nvlink-domain-size"


class World:
    """Up to two nodes of 8 GPUs, some in use, and PodSets of which some want a domain of their own."""

    def __init__(self, random: Random) -> None:
        self.nodes = [
            (random.choice((3, 4, 4, 5)), random.choice((0, 0, 0, 1))) for _ in range(random.randint(1, 2))
        ]
        sets = ((3, 1, 3), (3, 1, 3), (3, 1, 3), (1, 3, 1), (2, 1, 2), (2, 1, 2), (1, 1, 0), (4, 1, 2))
        self.sets = [random.choice(sets) for _ in range(random.randint(1, 2) + 2 * len(self.nodes))]

    def fits(self, place: int, counts: tuple[int, ...], *, whole: bool) -> bool:
        """Whether a node holds so many pods of each PodSet, its free GPUs taken to lie together; `whole`: as
        if the node were one domain to those that fit into one of its own."""
        size, used = self.nodes[place]
        free = 8 - used
        domains = [size] * (free // size) + [free % size]
        bunches: list[int] = []
        for count, (_, gpus, bunch) in zip(counts, self.sets, strict=True):
            if bunch and count % bunch:
                return False
            bunches += [bunch * gpus] * (count // bunch if bunch else 0)
        asked = sum(count * gpus for count, (_, gpus, _) in zip(counts, self.sets, strict=True))
        if whole:
            return asked <= free and max(bunches, default=0) <= size
        return asked <= free and packs(sorted(bunches, reverse=True), domains)

    def feasible(self, *, whole: bool = False) -> bool:
        """By trying every number of pods on every node."""
        every = tuple(count for count, _, _ in self.sets)
        if len(self.nodes) == 1:
            return self.fits(0, every, whole=whole)
        return any(
            self.fits(0, way, whole=whole) and self.fits(1, tuple(map(int.__sub__, every, way)), whole=whole)
            for way in product(*(range(count + 1) for count in every))
        )

    def snapshot(self) -> Snapshot:
        """The cluster."""
        nodes = [
            node(f"n{place}", labels={"rack": "r", SIZE: str(size)})
            for place, (size, _) in enumerate(self.nodes)
        ]
        pods = [
            BoundPod(f"default/on-{place}", f"n{place}", {GPU: used, "pods": 1})
            for place, (_, used) in enumerate(self.nodes)
            if used
        ]
        return snapshot(nodes, [topology("rack")], pods)

    def group(self) -> PodGroup:
        """The gang: a set that is one bunch requires a domain, one of several is sliced into domains."""
        sets = (
            PodSet(f"set-{place}", count, shape(gpu=gpus), asked(count, bunch))
            for place, (count, gpus, bunch) in enumerate(self.sets)
        )
        return gang(*sets, reserve="nodes")


def asked(count: int, bunch: int) -> Constraint:
    """The constraint of a PodSet whose pods lie in one domain so many at a time."""
    if not bunch:
        return Constraint()
    return Constraint(required=LEVEL) if bunch == count else Constraint(slice_level=LEVEL, slice_size=bunch)


def packs(bunches: list[int], domains: list[int]) -> bool:
    """Whether every bunch finds a domain, by trying all."""
    if not bunches:
        return True
    return any(
        packs(bunches[1:], [*domains[:place], room - bunches[0], *domains[place + 1 :]])
        for place, room in enumerate(domains)
        if room >= bunches[0]
    )


def test_domains_inside_a_node_are_packed_exactly() -> None:
    """No wrong refusal and no wrong yes; in some cases only the domains stand in the way."""
    seen: Counter[bool] = Counter()
    blocked_by_domains = 0
    for number in range(INSTANCES):
        world = World(Random(number))
        feasible = world.feasible()
        seen[feasible] += 1
        blocked_by_domains += not feasible and world.feasible(whole=True)
        answer = plan(world.snapshot(), world.group())
        assert (answer.decision == "admitted") == feasible, (number, vars(world), answer)
    assert min(seen.values()) > INSTANCES // 5
    assert blocked_by_domains > INSTANCES // 30
