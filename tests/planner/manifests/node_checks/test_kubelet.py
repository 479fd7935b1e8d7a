"""Tests the recommended KubeletConfiguration of a node, and the differences of the node from it."""

from __future__ import annotations

from typing import Any

import pytest

from planner.manifests.node_checks.kubelet import advised, drift
from planner.node.topology_manager import NumaNode, Zone
from tests.builders import GPU, node

NODE = node("a")


def numa(policy: str = "none", zones: int = 2) -> NumaNode:
    """The node's 8 GPUs divided over this many NUMA zones."""
    part = {GPU: 8 // zones}
    return NumaNode("a", policy, "container", tuple(Zone(f"node-{i}", part, part) for i in range(zones)))


def config(**changed: Any) -> dict[str, Any]:
    """A kubelet with the recommended configuration for pods of 4 GPUs, except for the changes."""
    wanted = advised(NODE, numa(), {}, 4)
    return {**wanted, **changed}


@pytest.mark.parametrize(
    ("largest", "zones", "policy"),
    [(4, 2, "single-numa-node"), (8, 2, "restricted"), (0, 2, "restricted"), (8, 1, "single-numa-node")],
    ids=["pods fit a zone", "pods of all GPUs", "no pod is known", "one zone"],
)
def test_the_policy_refuses_no_pod_for_ever(largest: int, zones: int, policy: str):
    """`single-numa-node` never starts a pod of more GPUs than a zone has."""
    assert advised(NODE, numa(zones=zones), {}, largest)["topologyManagerPolicy"] == policy


def test_reserved_memory_is_what_is_reserved_and_the_eviction_threshold():
    """Or the kubelet does not start: 1Gi, 2Gi and 500Mi, over two zones."""
    stated = {
        "kubeReserved": {"cpu": "1", "memory": "1Gi"},
        "systemReserved": {"memory": "2Gi"},
        "evictionHard": {"memory.available": "500Mi"},
    }
    wanted = advised(NODE, numa(), stated, 4)
    assert wanted["kubeReserved"] == {"cpu": "1", "memory": "1Gi"}
    sizes = [int(entry["limits"]["memory"].removesuffix("Ki")) for entry in wanted["reservedMemory"]]
    assert sum(sizes) == (1024 + 2048 + 500) * 1024
    assert [entry["numaNode"] for entry in wanted["reservedMemory"]] == [0, 1]


def test_a_node_that_reserves_nothing_is_advised_a_cpu_and_memory():
    """The static CPU manager demands a reserved CPU; the eviction threshold is the kubelet's 100Mi."""
    wanted = advised(NODE, numa(zones=1), {}, 4)
    assert wanted["systemReserved"] == {"cpu": "1", "memory": "2Gi"}
    assert wanted["reservedMemory"] == [{"numaNode": 0, "limits": {"memory": f"{(2048 + 100) * 1024}Ki"}}]


def test_cpus_that_are_reserved_by_number_are_no_amount():
    """The kubelet takes `reservedSystemCPUs` in place of amounts."""
    wanted = advised(NODE, numa(), {"reservedSystemCPUs": "0-3"}, 4)
    assert "cpu" not in wanted["systemReserved"]


def test_a_node_without_known_zones_is_advised_no_memory_manager():
    """`reservedMemory` is by zone."""
    assert "memoryManagerPolicy" not in advised(NODE, None, {}, 4)


def test_a_node_that_is_configured_as_advised_has_no_drift():
    """The next tests change one thing of it."""
    assert drift(NODE, numa(), config(), advised(NODE, numa(), config(), 4)) == []


@pytest.mark.parametrize(
    ("changed", "setting"),
    [
        ({"cpuManagerPolicy": "none"}, "cpuManagerPolicy"),
        ({"topologyManagerPolicy": "best-effort"}, "topologyManagerPolicy"),
        ({"memoryManagerPolicy": "None"}, "memoryManagerPolicy"),
        ({"cpuManagerPolicyOptions": {}}, "full-pcpus-only"),
        ({"reservedMemory": []}, "reservedMemory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_difference_is_told(changed: dict[str, Any], setting: str):
    """With the actual and the advised value."""
    present = config(**changed)
    (part,) = drift(NODE, numa(), present, advised(NODE, numa(), present, 4))
    assert (part.node, part.setting) == ("a", setting)
    assert part.actual != part.advised


def test_without_its_configuration_only_the_published_policy_is_known():
    """That of the NodeResourceTopology; either of the two that refuse is fine."""
    wanted = advised(NODE, numa(), {}, 4)
    (part,) = drift(NODE, numa("none"), {}, wanted)
    assert (part.setting, part.actual) == ("topologyManagerPolicy", "none")
    assert drift(NODE, numa("restricted"), {}, wanted) == []
    assert drift(NODE, None, {}, wanted) == []
