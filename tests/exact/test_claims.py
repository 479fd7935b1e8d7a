"""GPUs by claim and by limits against trying every number of pods on every node."""

from __future__ import annotations

import os
from itertools import product
from random import Random

from planner.cluster.snapshot import Snapshot
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.planning.plan import plan
from tests.builders import GPU
from tests.planner.devices.test_catalog import cluster, node, pod, slice_of, template

INSTANCES = max(150, int(os.environ.get("BAYPLAN_EXACT", "400")) // 20)


class World:
    """Up to three nodes, each with GPUs by the plugin, by a slice, or both; a gang that asks in both ways."""

    def __init__(self, random: Random) -> None:
        self.each = random.randint(1, 3)
        sliced = random.random() < 0.7
        self.plugin, self.slices, self.bound = dict[str, int](), dict[str, int](), dict[str, int]()
        for name in "abc"[: random.randint(1, 3)]:
            self.plugin[name] = random.choice((0, 0, 2, 4))
            by_slice = self.plugin[name] or random.choice((2, 4))
            self.slices[name] = by_slice if sliced and random.random() < 0.7 else 0
        self.bound = {name: 1 for name in self.plugin if self.fits(name, 1, 0) and random.random() < 0.3}
        self.claiming, self.asking = random.randint(1, 3), random.randint(0, 2)
        self.limit = random.randint(1, 2)

    def fits(self, name: str, claiming: int, gpus: int) -> bool:
        """Whether so many claiming pods and so many GPUs by limits fit a node, bound pods counted."""
        claimed = (claiming + self.bound.get(name, 0)) * self.each
        if self.plugin[name] and (self.slices[name] or not any(self.slices.values())):
            return claimed + gpus <= self.plugin[name]
        return claimed <= self.slices[name] and gpus <= self.plugin[name]

    def feasible(self) -> bool:
        """By trying everything."""
        names = list(self.plugin)
        ways = product(product(range(self.claiming + 1), range(self.asking + 1)), repeat=len(names))
        return any(
            (sum(c for c, _ in way), sum(a for _, a in way)) == (self.claiming, self.asking)
            and all(
                self.fits(name, c, a * self.limit) for name, (c, a) in zip(names, way, strict=True) if c or a
            )
            for way in ways
        )

    def snapshot(self) -> Snapshot:
        """The cluster."""
        return cluster(
            *(node(name, gpus) for name, gpus in self.plugin.items()),
            *(slice_of(name, count) for name, count in self.slices.items() if count),
            *(pod(f"on-{name}", name) for name in self.bound),
            template(self.each),
        )

    def group(self) -> PodGroup:
        """The gang."""
        claims = PodShape({"pods": 1}, claims=(ClaimUse("gpus", True),))
        limits = PodShape({"pods": 1, GPU: self.limit})
        sets = (PodSet("claims", self.claiming, claims), PodSet("limits", self.asking, limits))
        return PodGroup("team/Job/both", sets, reserve="nodes")


def test_claims_and_limits_are_planned_exactly() -> None:
    """No wrong refusal and no wrong yes."""
    seen = {True: 0, False: 0}
    for number in range(INSTANCES):
        world = World(Random(number))
        feasible = world.feasible()
        seen[feasible] += 1
        answer = plan(world.snapshot(), world.group())
        assert (answer.decision == "admitted") == feasible, (number, vars(world), answer)
    assert all(seen.values())
