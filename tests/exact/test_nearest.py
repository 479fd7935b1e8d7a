"""What is named as nearest is admitted, for gangs of parts of GPUs, of claims, by NUMA zones, and apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.podgroup import PodGroup, PodSet
from planner.node.topology_manager import NumaNode, Zone
from planner.planning.details import details
from planner.planning.plan import plan
from tests.builders import gang, node, topology
from tests.exact import test_affinity, test_numa, test_sharing
from tests.exact.test_claims import World

INSTANCES = max(60, int(os.environ.get("BAYPLAN_EXACT", "400")) // 10)
Draw = Callable[[Random], tuple[Snapshot, PodGroup]]


def claims(random: Random) -> tuple[Snapshot, PodGroup]:
    """GPUs by claim and by limits."""
    world = World(random)
    return world.snapshot(), world.group()


def parts(random: Random) -> tuple[Snapshot, PodGroup]:
    """Parts of GPUs."""
    instance = test_sharing.sharing(random)
    return instance.snapshot, instance.group


def zones(random: Random) -> tuple[Snapshot, PodGroup]:
    """Nodes whose kubelet aligns."""
    instance = test_numa.random_instance(random)
    return instance.snapshot, instance.group


def uneven(random: Random) -> tuple[Snapshot, PodGroup]:
    """Nodes whose zones differ: the one with the most GPUs may have the fewest CPUs."""
    policy, scope = random.choice(("single-numa-node", "restricted")), random.choice(("container", "pod"))
    hosts, numa = [], {}
    for number in range(random.randint(1, 3)):
        sizes = [(random.randint(1, 6), random.randint(2, 12)) for _ in range(random.randint(2, 4))]
        gpus, cpus = (sum(amounts) for amounts in zip(*sizes, strict=True))
        host = node(f"n{number}", gpu=gpus, cpu=cpus, labels={"rack": f"r{number % 2}"})
        amounts = [{test_numa.GPU: gpu, "cpu": cpu * 1000} for gpu, cpu in sizes]
        each = tuple(Zone(f"node-{place}", zone, zone) for place, zone in enumerate(amounts))
        hosts.append(host)
        numa[host.name] = NumaNode(host.name, policy, scope, each)
    sets = [_large(random, place) for place in range(random.randint(1, 2))]
    return snapshot(hosts, [topology("rack")], numa=numa), gang(*sets, reserve="nodes")


def _large(random: Random, place: int) -> PodSet:
    containers = [(random.randint(0, 6), random.randint(1, 10)) for _ in range(random.choice((1, 1, 2)))]
    limits = [{test_numa.GPU: str(gpu), "cpu": str(cpu), "memory": "1Mi"} for gpu, cpu in containers]
    each = [{"name": f"c{number}", "resources": {"limits": asked}} for number, asked in enumerate(limits)]
    return PodSet(f"s{place}", random.randint(1, 2), shape_of({"containers": each}, Where()))


def apart(random: Random) -> tuple[Snapshot, PodGroup]:
    """Pods apart and together."""
    instance = test_affinity.random_instance(random)
    return instance.snapshot, instance.group


@pytest.mark.parametrize("draw", [claims, parts, zones, apart])
def test_what_is_named_is_admitted_now(draw: Draw) -> None:
    """Each way, in the cluster as it is, or once the gang has ended whose end it names."""
    named_ways = 0
    for number in range(INSTANCES):
        moment, group = draw(Random(f"nearest {number}"))
        answer = plan(moment, group)
        account = details(moment, group, answer)
        if account is None or answer.decision == "admitted":
            continue
        for way in account.ways_now:
            named_ways += 1
            now = moment.ended(way.ended) if way.ended else moment
            assert plan(now, way.group).decision == "admitted", (number, way.words)
    assert named_ways, "the sample names something"


@pytest.mark.parametrize("draw", [claims, parts, uneven])
def test_what_is_named_for_ever_fits_the_empty_cluster(draw: Draw) -> None:
    """Each way, with nothing bound and nothing held."""
    for number in range(INSTANCES):
        moment, group = draw(Random(f"nearest {number}"))
        account = details(moment, group, plan(moment, group))
        for way in account.ways_ever if account else ():
            assert plan(Snapshot(moment.base), way.group).decision == "admitted", (number, way.words)
