"""A tree refined by labels is remembered while the labels stay; all else is read from the nodes of now."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.build import snapshot
from planner.model.labels import Requirement, Taint
from planner.model.pod import SpreadConstraint
from planner.planning.plan import plan
from planner.search.rules import label_levels
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


def test_a_tree_is_refined_once_for_all_searches_of_gangs_with_pods_that_need_not_be_spread(monkeypatch):
    """The launcher counts for the constraint of the workers, which applies to the nodes of one pool only."""
    rule = SpreadConstraint("row", 1, (Requirement("app", "In", ("a",)),))
    worker = replace(shape(gpu=8, selector={"pool": "x"}), labels={"app": "a"}, spread=(rule,))
    launcher = replace(shape(cpu=1), labels={"app": "a"})
    nodes = [
        node(f"n{place}", labels={"row": f"row{place % 3}", "pool": "y" if place % 4 else "x"})
        for place in range(24)
    ]
    refined = []
    refine = label_levels._refined
    monkeypatch.setattr(
        label_levels, "_refined", lambda *arguments: refined.append(arguments) or refine(*arguments)
    )
    moment = snapshot(nodes, [topology()])
    for workers in (4, 5, 6):
        plan(moment, gang(pod_set(workers, worker), pod_set(2, launcher, name="launcher"), reserve="nodes"))
        assert len(refined) == 1
    plan(moment.with_node(node("m", labels={"row": "row1", "pool": "x"})), gang(pod_set(4, worker)))
    assert len(refined) == 2
