"""Without a Topology object every node may be used, whichever labels it has.

the tree from node labels
├── rack r1: r1-n1 r1-n2 (8 GPUs each)
├── rack r2: r2-n1 r2-n2 (8 GPUs each)
└── (no rack): lone (16 GPUs), the control-plane node of another cluster say
"""

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.topologies.label_presets import infer
from planner.model.topology import HOSTNAME, Topology
from planner.planning.plan import plan
from tests.builders import gang, node

RACK = "topology.kubernetes.io/rack"


@pytest.fixture
def moment() -> Snapshot:
    """The cluster of the drawing."""
    nodes = [node(f"r{rack}-n{host}", labels={RACK: f"r{rack}"}) for rack in (1, 2) for host in (1, 2)]
    nodes.append(node("lone", gpu=16))
    return snapshot(nodes, [infer(nodes)])


def test_a_node_without_rack_is_a_host_that_a_gang_may_require(moment: Snapshot) -> None:
    """Only it has 16 GPUs."""
    answer = plan(moment, gang(1, gpu=16, required=HOSTNAME))
    assert (answer.decision, answer.domain[-1:]) == ("admitted", ("lone",))


def test_a_preference_makes_no_request_impossible(moment: Snapshot) -> None:
    """Five pods on five nodes: no rack holds them, and the gang only prefers one."""
    answer = plan(moment, gang(5, gpu=8, preferred=RACK))
    assert answer.decision == "admitted"
    assert "lone" in {assignment.node for assignment in answer.assignments}


def test_a_required_rack_is_never_taken_without_its_label(moment: Snapshot) -> None:
    """Three whole nodes in one rack of two: the node without a rack is in none, and the refusal says so."""
    answer = plan(moment, gang(3, gpu=8, required=RACK))
    assert answer.decision == "rejected"
    assert f"Of 5 nodes, 1 has no label {RACK}" in answer.message


def test_a_level_that_only_a_node_outside_the_topology_object_has_is_not_recommended() -> None:
    """A Topology object without a selector leaves out the node without a rack label: the host that would
    take the pod is in no domain of the topology, so only the request without a level works."""
    nodes = [node(f"r1-n{host}", labels={RACK: "r1"}) for host in (1, 2)]
    nodes.append(node("lone", gpu=16))
    answer = plan(snapshot(nodes, [Topology("topo", (RACK, HOSTNAME))]), gang(1, gpu=16, required=HOSTNAME))
    assert answer.decision == "rejected"
    assert "required at" not in answer.message
    assert "Would work: no required level" in answer.message


def test_nodes_that_a_topology_object_has_are_counted_as_such() -> None:
    """A node is in a pool that a Topology object covers; the gang asks for the topology of node labels."""
    pooled = node("p1", labels={"pool": "a", RACK: "r9"})
    others = [node(f"r1-n{host}", labels={RACK: "r1"}) for host in (1, 2)]
    covering = Topology("covering", (RACK, HOSTNAME), node_selector={"pool": "a"})
    answer = plan(snapshot([pooled, *others], [infer(others), covering]), gang(3, gpu=8, required=RACK))
    assert answer.decision == "rejected"
    assert "1 is not in topology of node labels (Topology objects have them)" in answer.message
