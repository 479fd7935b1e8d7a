"""Nodes with too few free devices for a pod get no further look, and no answer changes by that."""

from random import Random

import pytest

from planner.model.pod import BoundPod
from planner.node import packing
from planner.planning.plan import plan
from planner.search.packing import capacity_classes
from tests.builders import amounts, cluster, gang, pod_set, shape
from tests.exact.solver import random_instance

RACKS = "r1: a b c\nr2: d e f"
WHOLE, PART = pod_set(4, shape(gpu=8), name="whole"), pod_set(1, shape(gpu=2, cpu=4), name="part")
LAUNCHER = pod_set(1, shape(gpu=0, cpu=4), name="launcher")


@pytest.mark.parametrize(
    ("pod_sets", "looked_at"),
    [((WHOLE,), 1), ((WHOLE, PART), 2), ((WHOLE, LAUNCHER), 4)],
    ids=["whole nodes", "and a pod of two GPUs", "and a pod without GPUs"],
)
def test_only_nodes_with_the_devices_of_a_pod_are_packed(monkeypatch, pod_sets, looked_at):
    """Four nodes are free, so equal; on a, which no gang can use whole, three GPUs are in use, on d all."""
    used = {"a": 3, "b": 7, "d": 8}
    pods = [BoundPod(f"x/{node}", node, amounts(gpu=gpus, pods=1)) for node, gpus in used.items()]
    hosts = set()
    for kind in (packing._OneClassFit, packing._SeveralClassesFit):
        best = kind.best
        monkeypatch.setattr(
            kind, "best", lambda self, host, allowed, best=best: hosts.add(host) or best(self, host, allowed)
        )
    plan(cluster(f"{RACKS}\nr3: g", pods=pods), gang(*pod_sets))
    assert len(hosts) == looked_at


def test_no_answer_depends_on_the_nodes_that_are_left_out(monkeypatch):
    """Random gangs on random clusters, with the nodes left out and with every node packed."""

    def answers():
        instances = [random_instance(Random(seed), max_pods=6) for seed in range(300)]
        return [plan(instance.snapshot, instance.group) for instance in instances]

    short = answers()
    monkeypatch.setattr(capacity_classes, "device_worth", lambda shape: 0)
    assert answers() == short
