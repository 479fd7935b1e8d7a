"""What is named as nearest is admitted, for gangs of parts of GPUs, of claims, by NUMA zones, and apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.planning.details import details
from planner.planning.plan import plan
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


@pytest.mark.parametrize("draw", [claims, parts])
def test_what_is_named_for_ever_fits_the_empty_cluster(draw: Draw) -> None:
    """Each way, with nothing bound and nothing held."""
    for number in range(INSTANCES):
        moment, group = draw(Random(f"nearest {number}"))
        account = details(moment, group, plan(moment, group))
        for way in account.ways_ever if account else ():
            assert plan(Snapshot(moment.base), way.group).decision == "admitted", (number, way.words)
