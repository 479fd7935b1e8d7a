"""Which nodes a pod may use is computed for nodes with equal labels once, and remembered for pods with the
same constraints only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.cluster.plan_cache import PlanCache
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.pod import PodShape
from planner.model.pod_class import PodClass
from planner.model.resolved import NodeExclusion, ResolvedShape
from planner.model.topology import HOSTNAME
from planner.node.eligibility import is_excluded, label_obstacle, preference
from planner.planning.plan import plan
from planner.search import eligibility_map
from planner.search.eligibility_map import EligibilityMap, match_of
from tests.builders import GPU, cluster, gang, node, pod_set, racks, topology

PRODUCT = "nvidia.com/gpu.product"


def test_pods_with_two_gpus_do_not_decide_for_pods_that_also_want_two_time_slices() -> None:
    """No node gives a pod two time slices, and the answer does not depend on who asked before."""
    whole = node("whole", labels={PRODUCT: "NVIDIA-H100"})
    whole = replace(whole, allocatable={**whole.allocatable, "nvidia.com/gpu.shared": 8})
    moment = snapshot([whole, node("sliced", labels={PRODUCT: "NVIDIA-H100-SHARED"})])
    requests = {GPU: 2, "pods": 1}
    assert plan(moment, gang(pod_set(1, PodShape(requests)))).decision == "admitted"
    greedy = PodShape({**requests, "nvidia.com/gpu.shared": 2})
    assert plan(moment, gang(pod_set(1, greedy))).decision == "rejected"


def class_of(shape: ResolvedShape) -> PodClass:
    return PodClass((("worker", 1),), 1, shape)


NAMES = ("r1-n1", "r2-n2", "r2-n3")


@pytest.mark.parametrize(
    "shape",
    [
        ResolvedShape({}, affinity=((Requirement(HOSTNAME, "In", NAMES),),)),
        ResolvedShape({}, affinity=((Requirement(NODE_NAME_FIELD, "NotIn", NAMES),),)),
        ResolvedShape({}, exclusions=(NodeExclusion(NODE_NAME_FIELD, frozenset(NAMES), "spread"),)),
        ResolvedShape({}, exclusions=(NodeExclusion("rack", frozenset(("r1", "r3")), "spread"),)),
    ],
)
def test_constraints_on_names_are_evaluated_for_named_nodes_and_one_other(monkeypatch, shape) -> None:
    evaluated = []
    monkeypatch.setattr(
        eligibility_map,
        "label_obstacle",
        lambda shape, node, **words: evaluated.append(node.name) or label_obstacle(shape, node, **words),
    )
    moment = racks(20, 10)
    match_of(PlanCache(), moment.base.trees["topo"], (class_of(shape),), divided=False)
    assert len(evaluated) <= len(NAMES) + 1


VALUES = ("1", "2", "3")

requirements = st.builds(
    Requirement,
    st.sampled_from(("size", "pool", HOSTNAME, NODE_NAME_FIELD)),
    st.sampled_from(("In", "NotIn")),
    st.lists(st.sampled_from((*VALUES, "n0", "n3")), min_size=1, max_size=2).map(tuple),
) | st.builds(
    lambda key, operator: Requirement(key, operator, ("2",) if operator in ("Gt", "Lt") else ()),
    st.sampled_from(("size", "pool")),
    st.sampled_from(("Gt", "Lt", "Exists", "DoesNotExist")),
)
terms = st.lists(requirements, min_size=1, max_size=2).map(tuple)
exclusions = st.builds(
    NodeExclusion,
    st.sampled_from(("size", "pool", NODE_NAME_FIELD)),
    st.sets(st.sampled_from((*VALUES, "n1", "n2")), min_size=1).map(frozenset),
    st.just("spread"),
    inside=st.booleans(),
)
shapes = st.builds(
    ResolvedShape,
    st.just({}),
    node_selector=st.dictionaries(st.just("pool"), st.sampled_from(VALUES), max_size=1),
    affinity=st.lists(terms, max_size=2).map(tuple),
    preferences=st.lists(st.tuples(st.integers(1, 9), terms), max_size=2).map(tuple),
    exclusions=st.lists(exclusions, max_size=2).map(tuple),
)
labels = st.fixed_dictionaries({}, optional=dict.fromkeys(("size", "pool"), st.sampled_from(VALUES)))


@pytest.mark.parametrize("levels", [(), ("pool",), ("size", "pool"), ("pool", "size")], ids="-".join)
@given(rows=st.lists(labels, min_size=1, max_size=6), shapes=st.lists(shapes, min_size=1, max_size=2))
def test_each_node_has_the_causes_and_the_penalty_of_its_own_labels(levels, rows, shapes) -> None:
    """Whether the labels are levels of the tree, of which a node may lack any, or not."""
    nodes = [node(f"n{place}", labels=row) for place, row in enumerate(rows)]
    tree = snapshot(nodes, [topology(*levels)]).base.trees["topo"]
    match = match_of(PlanCache(), tree, tuple(map(class_of, shapes)), divided=False)
    hosts = dict(of_hosts(match, tree.root))
    assert len(hosts) == len(tree.nodes)
    for own in tree.nodes:
        assert hosts[own.name].why == tuple(label_obstacle(shape, own) for shape in shapes)
        missed = (sum(weight for weight, _ in shape.preferences) - preference(shape, own) for shape in shapes)
        assert hosts[own.name].penalty == sum(missed)


def of_hosts(match, branch) -> Iterator[tuple[str, EligibilityMap]]:
    """The map of each host of a branch."""
    if branch.node:
        yield branch.node, match
    for child_match, child in zip(match.of_children(len(branch.children)), branch.children, strict=True):
        yield from of_hosts(child_match, child)


@pytest.mark.parametrize(("key", "count"), [("rack", 20), ("block", 1), ("row", 200)])
def test_exclusions_by_a_level_are_looked_up_for_a_node_of_each_domain(monkeypatch, key, count) -> None:
    """20 racks of 10 nodes in a block. The label "row" is no level, so each node is looked up."""
    looked_up = []
    monkeypatch.setattr(
        eligibility_map,
        "is_excluded",
        lambda exclusion, node: looked_up.append(node.name) or is_excluded(exclusion, node),
    )
    moment = cluster(
        "\n".join(f"b/r{rack}: {' '.join(f'n{rack}-{host}' for host in range(10))}" for rack in range(20)),
        ("block", "rack"),
    )
    shape = ResolvedShape({}, exclusions=(NodeExclusion(key, frozenset(("r1", "r3")), "spread"),))
    match_of(PlanCache(), moment.base.trees["topo"], (class_of(shape),), divided=False)
    assert len(looked_up) == count
