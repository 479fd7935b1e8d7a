"""Gangs that claim a channel of a ComputeDomain stay in one NVLink clique, because the domain spans no
more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.planning.plan import plan
from tests.builders import GPU
from webhook.policy.engine.device_selectors import read_cluster

CLIQUE = "nvidia.com/gpu.clique"
DOMAIN: dict[str, Any] = {
    "apiVersion": "resource.nvidia.com/v1beta1",
    "kind": "ComputeDomain",
    "metadata": {"name": "train", "namespace": "team"},
    "spec": {"channel": {"resourceClaimTemplate": {"name": "channel"}}},
}
CHANNEL = ClaimUse("channel", True)


def cluster(*levels: str) -> Snapshot:
    """Two cliques of two trays with four GPUs, in one block."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"{clique}{tray}",
                "labels": {"kubernetes.io/hostname": f"{clique}{tray}", "block": "b1", CLIQUE: clique},
            },
            "status": {"allocatable": {GPU: "4"}},
        }
        for clique in "ab"
        for tray in (1, 2)
    ]
    spec = {"levels": [{"nodeLabel": level} for level in (*levels, "kubernetes.io/hostname")]}
    topology = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"}}
    return read_cluster([("", [*nodes, {**topology, "spec": spec}, DOMAIN])])


def pods(count: int, *claims: ClaimUse, name: str = "worker", gpus: int = 4, required: str = "") -> PodSet:
    """This many pods with these claims."""
    shape = PodShape({"pods": 1, **({GPU: gpus} if gpus else {})}, claims=claims)
    return PodSet(name, count, shape, Constraint(required=required))


def gang(*sets: PodSet) -> PodGroup:
    """A gang of these pods that reserves the nodes that it uses."""
    return PodGroup("team/Job/train", sets, reserve="nodes")


def test_the_gang_is_planned_in_one_clique() -> None:
    """Two trays fit one; three do not, though the block has four."""
    snapshot = cluster("block", CLIQUE)
    assert plan(snapshot, gang(pods(2, CHANNEL))).domain == ("b1", "a")
    three = plan(snapshot, gang(pods(3, CHANNEL)))
    assert (three.decision, three.reason) == ("rejected", "TooLargeForLevel")
    assert any("ComputeDomain" in text for text in three.warnings)
    assert plan(snapshot, gang(pods(3))).decision == "admitted"


def test_only_the_pods_that_claim_the_channel_have_to() -> None:
    """A launcher without it may be anywhere."""
    launcher = pods(1, name="launcher", gpus=4)
    assert plan(cluster("block", CLIQUE), gang(launcher, pods(2, CHANNEL))).decision == "admitted"
    assert plan(cluster("block", CLIQUE), gang(launcher, pods(3, CHANNEL))).decision == "rejected"


@pytest.mark.parametrize("required", ["block", ""])
def test_a_coarser_requirement_is_tightened(required: str) -> None:
    """The channel's reach is no wish."""
    group = replace(gang(pods(3, CHANNEL)), constraint=Constraint(required=required))
    assert plan(cluster("block", CLIQUE), group).decision == "rejected"


def test_a_finer_requirement_stays() -> None:
    """A host lies in a clique."""
    group = replace(gang(pods(2, CHANNEL, gpus=2)), constraint=Constraint(required="kubernetes.io/hostname"))
    answer = plan(cluster("block", CLIQUE), group)
    assert (answer.level, answer.warnings) == ("kubernetes.io/hostname", ())


def test_a_topology_without_cliques_changes_nothing() -> None:
    """There is no such level to require."""
    answer = plan(cluster("block"), gang(pods(3, CHANNEL)))
    assert (answer.decision, answer.warnings) == ("admitted", ())


def test_one_pod_is_in_one_clique_anyway() -> None:
    """No note is needed."""
    assert plan(cluster("block", CLIQUE), gang(pods(1, CHANNEL))).warnings == ()
