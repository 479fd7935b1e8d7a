"""Tests which nodes accept a pod, one rule at a time: taints, selectors, affinity, cordons, readiness,
missing labels.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.manifests.pods.pod import shape_of
from planner.model.errors import InputError, Where
from planner.model.labels import Taint
from planner.model.node import Node
from planner.model.podgroup import PodSet
from planner.planning.plan import plan
from tests.builders import gang, node, topology

LABELS = {"zone": "z1", "rack": "r1", "tier": "gold", "speed": "400"}


def with_node(node: Node, spec: dict[str, object]):
    """The answer for one pod with this spec on a cluster of one node."""
    containers = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    shape = shape_of({"containers": containers, **spec}, Where())
    return plan(snapshot([node], [topology("zone", "rack")]), gang(PodSet("worker", 1, shape)))


def host(**changes: object) -> Node:
    """A host with a few labels."""
    return replace(node("host-1", labels=LABELS), **changes)


def tolerating(**toleration: str) -> dict[str, object]:
    """A spec with this toleration."""
    return {"tolerations": [toleration]}


def wanting(*requirements: tuple[str, str, list[str]], fields: bool = False) -> dict[str, object]:
    """A spec with a required node affinity of one term."""
    entries = [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements]
    term = {"matchFields" if fields else "matchExpressions": entries}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("toleration", "taken"),
    [
        ({"key": "sla", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "sla", "operator": "Equal", "value": "950"}, True),
        ({"key": "sla", "value": "950", "effect": "NoSchedule"}, True),
        ({"key": "sla", "value": "900"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "sla", "operator": "Gt", "value": "900"}, True),
        ({"key": "sla", "operator": "Gt", "value": "950"}, False),
        ({"key": "sla", "operator": "Lt", "value": "999"}, True),
        ({"key": "sla", "operator": "Lt", "value": "900"}, False),
        ({"key": "sla", "operator": "Gt", "value": "0900"}, False),
        ({"key": "sla", "operator": "Lt", "value": "much"}, False),
    ],
)
def test_a_taint_keeps_away_what_does_not_tolerate_it(toleration, taken):
    """Every operator; the numeric ones compare the taint's value with the toleration's."""
    answer = with_node(host(taints=(Taint("sla", "950"),)), tolerating(**toleration))
    assert (answer.decision == "admitted") is taken
    if not taken:
        assert answer.obstacles == {"taint sla=950:NoSchedule": 1}


def test_a_taint_that_only_prefers_keeps_nobody_away():
    """PreferNoSchedule is a preference."""
    assert with_node(host(taints=(Taint("a", "", "PreferNoSchedule"),)), {}).decision == "admitted"


def test_an_operator_that_does_not_exist_is_refused():
    """With the valid ones."""
    with pytest.raises(InputError, match=r"tolerations\[0\].operator: 'Above'.*Equal, Exists, Gt, Lt"):
        with_node(host(), tolerating(key="a", operator="Above"))


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"nodeSelector": {"tier": "gold"}}, ""),
        ({"nodeSelector": {"tier": "silver"}}, "node selector tier=silver"),
        (wanting(("tier", "In", ["gold", "silver"])), ""),
        (wanting(("tier", "In", ["silver"])), "node affinity tier In [silver]"),
        (wanting(("tier", "NotIn", ["gold"])), "node affinity tier NotIn [gold]"),
        (wanting(("colour", "NotIn", ["red"])), ""),
        (wanting(("tier", "Exists", [])), ""),
        (wanting(("tier", "DoesNotExist", [])), "node affinity tier DoesNotExist"),
        (wanting(("speed", "Gt", ["399"])), ""),
        (wanting(("speed", "Gt", ["400"])), "node affinity speed Gt [400]"),
        (wanting(("speed", "Lt", ["401"])), ""),
        (wanting(("tier", "Gt", ["1"])), "node affinity tier Gt [1]"),
        (wanting(("speed", "Gt", ["0399"])), ""),
        (wanting(("speed", "Gt", ["3_99"])), "node affinity speed Gt [3_99]"),
        (wanting(("speed", "Lt", [str(2**63)])), f"node affinity speed Lt [{2**63}]"),
        (wanting(("tier", "In", ["gold"]), ("speed", "Lt", ["1"])), "node affinity speed Lt [1]"),
        (wanting(("metadata.name", "In", ["host-1"]), fields=True), ""),
        (
            wanting(("metadata.name", "NotIn", ["host-1"]), fields=True),
            "node affinity metadata.name NotIn [host-1]",
        ),
    ],
)
def test_selectors_and_affinity_choose_among_nodes(spec, cause):
    """Each operator over labels, and over the node's name."""
    answer = with_node(host(), spec)
    assert answer.decision == ("rejected" if cause else "admitted")
    assert answer.obstacles == ({cause: 1} if cause else {})


def test_one_term_of_several_is_enough():
    """The terms are ORed."""
    spec = wanting(("tier", "In", ["silver"]))
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    terms.append({"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]})
    assert with_node(host(), spec).decision == "admitted"


def test_preferred_affinity_chooses_among_equals_only():
    """The heavier wish decides between two racks; where only the other has room, that one serves."""
    wishes = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]},
        }
        for weight, rack in ((10, "r1"), (60, "r2"))
    ]
    spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}
    containers = [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]
    shape = shape_of({"containers": containers, **spec}, Where())
    racks = {"r1": 2, "r2": 1}
    nodes = [
        node(f"{rack}-{n}", labels={"rack": rack}) for rack, count in racks.items() for n in range(count)
    ]
    moment = snapshot(nodes, [topology("rack")])
    assert plan(moment, gang(PodSet("worker", 1, shape))).domain[0] == "r2"
    assert plan(moment, gang(PodSet("worker", 2, shape))).domain == ("r1",)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"cordoned": True}, "cordoned"),
        ({"ready": False}, "not ready"),
        (
            {"taints": (Taint("node.kubernetes.io/disk-pressure"),)},
            "taint node.kubernetes.io/disk-pressure:NoSchedule",
        ),
    ],
)
def test_what_ails_a_node_now_makes_a_gang_wait(change, cause):
    """The gang is queued, since the node may recover."""
    answer = with_node(host(**change), {})
    assert (answer.decision, answer.obstacles) == ("queued", {cause: 1})


def test_a_cordon_can_be_tolerated():
    """As pods of a DaemonSet do."""
    spec = tolerating(key="node.kubernetes.io/unschedulable", operator="Exists")
    assert with_node(host(cordoned=True), spec).decision == "admitted"


def test_a_node_without_a_finer_label_serves_coarser_levels():
    """Without a rack it is still in its zone; for a rack it is left out, by name."""
    bare = [node(f"n{n}", labels={"zone": "z1"}) for n in (1, 2)]
    moment = snapshot(bare, [topology("zone", "rack")])
    assert plan(moment, gang(2, required="zone")).domain == ("z1",)
    answer = plan(moment, gang(2, required="rack"))
    assert (answer.decision, answer.obstacles) == ("rejected", {"no label rack": 2})
