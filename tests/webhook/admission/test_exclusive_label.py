"""A workload whose own controller keeps it in one domain of any node label is not refused for that label.

Topology: r1: a b    r2: c d    every node is in pool-1, a label that no topology has
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.builders import cluster
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.wire.request import from_object

POOL, RACK = "example.com/pool", "example.com/rack"
JOB_SETS = "alpha.jobset.sigs.k8s.io/exclusive-topology"
REPLICAS = "leaderworkerset.sigs.k8s.io/exclusive-topology"
TREE = cluster("r1: a b\nr2: c d", (RACK,))


def in_pools() -> Snapshot:
    """The cluster, with the label of a node pool on each node."""
    nodes = TREE.nodes.values()
    return TREE.with_nodes([replace(node, labels={**node.labels, POOL: "pool-1"}) for node in nodes])


def decided(obj: dict[str, Any], on: Snapshot) -> Decision:
    """What the mutating call answers."""
    return decide(from_object(obj, uid="uid"), policies(), on, "mutate")


@pytest.mark.parametrize(
    ("obj", "key"),
    [(o.JOB_SET, JOB_SETS), (o.LWS, REPLICAS), (o.POD, JOB_SETS), (o.POD, REPLICAS)],
    ids=["JobSet", "LeaderWorkerSet", "pod of a JobSet", "pod of a LeaderWorkerSet"],
)
def test_a_label_of_nodes_that_no_topology_has_is_left_to_pod_affinity(obj: dict[str, Any], key: str) -> None:
    """A place of the planner's choice could contradict that affinity, so nothing is written."""
    decision = decided(o.annotated(obj, {key: POOL}), in_pools())
    assert decision.response.allowed
    assert (list(decision.response.patch), decision.plan, decision.steps) == ([], None, ())
    assert [note.rule for note in decision.notes] == ["ExclusiveByLabel"]
    assert f"metadata.annotations[{key}]: {POOL} is a node label" in decision.response.warnings[0]
    assert "What would work, for a plan: a Topology with this level" in decision.response.warnings[0]


def test_its_validation_lets_it_pass_too() -> None:
    """The policy that refuses unknown levels sees no level."""
    request = from_object(o.annotated(o.JOB_SET, {JOB_SETS: POOL}), uid="uid")
    assert decide(request, policies(), in_pools(), "validate").response.allowed


def test_a_label_of_no_node_is_refused_with_the_known_levels() -> None:
    """It is probably misspelt, and pods with such an affinity would wait for ever."""
    decision = decided(o.annotated(o.JOB_SET, {JOB_SETS: POOL}), TREE)
    assert not decision.response.allowed
    assert f"there is no level {POOL}" in decision.response.message


def test_a_level_of_a_topology_is_planned() -> None:
    """Each job of the JobSet gets a rack."""
    decision = decided(o.annotated(o.JOB_SET, {JOB_SETS: RACK}), in_pools())
    assert decision.plan is not None
    assert decision.notes == ()
