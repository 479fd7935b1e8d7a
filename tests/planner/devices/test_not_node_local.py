"""Devices that belong to no single node are not counted, so a claim that they may serve is never refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planner.devices.test_allocator import NIC, claim, device, request, slice_with
from tests.planner.devices.test_catalog import Json, answered, claiming, cluster, node, slice_of, template

ON_B = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}


def fabric(*devices: Json, driver: str = "gpu.nvidia.com", **places: Any) -> Json:
    """A ResourceSlice without `nodeName`."""
    pooled = slice_with("fabric", *devices, driver=driver, **places)
    del pooled["spec"]["nodeName"]
    return pooled


@pytest.mark.parametrize(
    "places",
    [{"allNodes": True}, {"nodeSelector": {"nodeSelectorTerms": [ON_B]}}],
    ids=lambda places: next(iter(places)),
)
def test_a_cluster_with_no_other_devices_has_slices_too(places: Json) -> None:
    """Its claims are not judged by node labels, which tell of GPUs only."""
    lanes = fabric(device("lane-0", "lane", "nic.example"), driver="nic.example", **places)
    answer = answered(cluster(node("a"), lanes, NIC, claim(request("nic", 1, "rdma"))), claiming(1))
    assert answer.decision == "admitted"
    assert any("devices of class rdma" in text and "not planned" in text for text in answer.warnings)


def test_nodes_with_equal_devices_of_their_own_do_not_hide_them() -> None:
    """The second pod takes the GPUs that node b reaches; a warning says that they are not planned."""
    gpus = fabric(*(device(f"gpu-{n}") for n in range(4)), nodeSelector={"nodeSelectorTerms": [ON_B]})
    answer = answered(cluster(node("a"), node("b"), slice_of("a", 4), gpus, template(4)), claiming(2))
    assert answer.decision == "admitted"
    assert any(
        "devices of class gpu.nvidia.com" in text and "not planned" in text for text in answer.warnings
    )


def test_other_devices_of_no_node_leave_the_claim_counted() -> None:
    """Only devices that match the request matter."""
    lanes = fabric(device("lane-0", "lane", "nic.example"), driver="nic.example", allNodes=True)
    snapshot = cluster(node("a"), node("b"), slice_of("a", 4), lanes, template(4))
    assert answered(snapshot, claiming(2)).decision == "rejected"
