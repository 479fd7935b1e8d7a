"""A tree refined by labels is remembered while the labels stay; all else is read from the nodes of now."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.build import snapshot
from planner.model.labels import Requirement, Taint
from planner.model.pod import SpreadConstraint
from planner.planning.plan import plan
from tests.builders import gang, node, pod_set, shape, topology


def test_a_node_that_is_tainted_is_none_of_the_empty_cluster_after_a_gang_that_is_spread():
    """Its labels are the same, and the gang that is planned next asks for no spread."""
    rule = SpreadConstraint("row", 1, (Requirement("app", "In", ("a",)),))
    spread = gang(pod_set(2, replace(shape(gpu=8), labels={"app": "a"}, spread=(rule,))))
    moment = snapshot([node(name, labels={"row": row}) for name, row in ("ax", "by")], [topology()])
    assert plan(moment, spread).decision == "admitted"
    tainted = moment.with_node(replace(moment.nodes["b"], taints=(Taint("repair"),)))
    assert plan(tainted, spread).decision == "rejected"
    assert plan(tainted, gang(2)).decision == "rejected"
