"""Tests what the API server adds to created pods, for extended resources and by RuntimeClass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.model.labels import Taint
from planner.model.node import Node
from planner.node.node_groups import node_groups
from planner.planning.plan import plan
from tests.builders import GPU, gang, node, pod_set, shape, topology

GKE = {"cloud.google.com/gke-nodepool": "gpus"}
EKS = {"eks.amazonaws.com/nodegroup": "gpus"}


def tainted(name: str, *taints: Taint, **labels: str) -> Node:
    """A GPU node with these taints; by default, the one that GKE sets."""
    return replace(node(name, labels=labels), taints=taints or (Taint(GPU, "present", "NoSchedule"),))


def cluster(*nodes: Node):
    """A snapshot of these nodes."""
    return snapshot(nodes, [topology("rack")])


ASKS = gang(1)
"""A pod of GPUs, without a toleration, as templates have it."""


@pytest.mark.parametrize("labels", [GKE, EKS])
def test_nodes_of_a_provider_that_adds_the_tolerations_take_the_pods(labels):
    """The nodes' labels tell; elsewhere the taint keeps the pods away."""
    assert plan(cluster(tainted("n", **labels)), ASKS).decision == "admitted"
    assert plan(cluster(tainted("n")), ASKS).decision == "rejected"


def test_the_first_node_of_such_a_provider_adds_the_tolerations_and_the_last_takes_them_away():
    """As nodes come, are cordoned and go, between plans on the same cluster; a node that stays has none."""
    moment, hybrid = cluster(tainted("n")), node("h", labels=GKE)
    assert plan(moment, ASKS).decision == "rejected"
    moment = moment.with_node(hybrid)
    assert plan(moment, ASKS).decision == "admitted"
    moment = moment.with_node(replace(hybrid, cordoned=True))
    assert plan(moment, ASKS).assignments[0].node == "n"
    assert plan(moment.without_node("h"), ASKS).decision == "rejected"


def test_a_parameter_says_otherwise():
    """Both ways; None leaves it to the nodes."""
    bare, gke = cluster(tainted("n")), cluster(tainted("n", **GKE))
    assert plan(bare.with_stated_settings(resources_tolerated=True), ASKS).decision == "admitted"
    assert plan(gke.with_stated_settings(resources_tolerated=False), ASKS).decision == "rejected"
    assert plan(gke.with_stated_settings(resources_tolerated=None), ASKS).decision == "admitted"


@pytest.mark.parametrize(
    "taint",
    [
        Taint("amd.com/gpu", "present", "NoSchedule"),
        Taint(GPU, "", "NoExecute"),
        Taint("team", "a", "NoSchedule"),
    ],
)
def test_other_taints_are_not_tolerated(taint):
    """Those of resources that the pod does not request, of another effect, of another key."""
    assert plan(cluster(tainted("n", taint, **GKE)), ASKS).decision == "rejected"


def test_a_pod_without_the_resource_is_kept_away():
    """That is what such a taint is for."""
    cpus = gang(pod_set(1, shape(cpu=1)))
    assert plan(cluster(tainted("n", **GKE)), cpus).decision == "rejected"


def test_what_was_planned_of_other_snapshots_still_serves():
    """The told cluster shares nodes and trees with the one that it was made from, and is made once."""
    bare = cluster(tainted("n"))
    trees = bare.base.trees
    tolerating = bare.with_stated_settings(resources_tolerated=True)
    assert tolerating.base.trees is trees
    assert tolerating.base is bare.with_stated_settings(resources_tolerated=True).base
    assert bare.with_stated_settings() is bare


def test_a_share_of_such_nodes_is_what_a_template_gets():
    """They could take the pod, though its template does not tolerate their taint."""
    pod = ASKS.pod_sets[0].shape
    (kind,) = node_groups([tainted("n", Taint(GPU), Taint("team"))], resources_tolerated=True)
    assert kind.taints == (Taint("team"),)
    (kind,) = node_groups([tainted("n")], resources_tolerated=True)
    assert kind.takes(pod)
    (kind,) = node_groups([tainted("n")])
    assert not kind.takes(pod)
