"""Requests with adminAccess take no device from other claims, but none that their own claim has."""

from __future__ import annotations

from planner.model.answer import Answer
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import PodGroup, PodSet
from tests.planner.devices.test_allocator import claim, request
from tests.planner.devices.test_catalog import Json, answered, claiming, cluster, node, slice_of

WATCH: Json = {
    "name": "watch",
    "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "adminAccess": True},
}


def decided(*requests: Json) -> Answer:
    """The answer to a pod with one claim of these requests, on a node with four GPUs."""
    return answered(cluster(node("a"), slice_of("a", 4), claim(*requests)), claiming(1))


def test_a_claim_never_has_a_device_twice() -> None:
    """All four for admin access and one besides are five; the refusal tells what works."""
    answer = decided(WATCH, request("gpu", 1))
    assert (answer.decision, answer.reason) == ("rejected", "NoSuchDevice")
    assert "Would work: that request in a claim of its own" in answer.message
    assert decided(WATCH).decision == "admitted"
    assert decided(request("watch", 3, adminAccess=True), request("gpu", 1)).decision == "admitted"
    assert decided(request("watch", 3, adminAccess=True), request("gpu", 2)).decision == "rejected"


def test_another_cause_is_named_where_the_node_has_too_few_devices_for_one_request() -> None:
    """All devices are tainted: a claim of its own would not help the request with adminAccess."""
    tainted = {"taints": [{"key": "repair", "value": "now", "effect": "NoSchedule"}]}
    devices = slice_of("a", 4)
    for device in devices["spec"]["devices"]:
        device.update(tainted)
    requests = claim(request("watch", 1, adminAccess=True), request("gpu", 1))
    message = answered(cluster(node("a"), devices, requests), claiming(1)).message
    assert "devices that match are tainted (repair=now:NoSchedule)" in message


def test_two_claims_of_a_pod_may_have_one_device() -> None:
    """The remedy, tried."""
    claims = claim(request("gpu", 4)), claim(WATCH, name="watch")
    shape = PodShape({"pods": 1}, claims=(ClaimUse("gpus", True), ClaimUse("watch", True)))
    group = PodGroup("team/Job/train", (PodSet("main", 1, shape),), reserve="nodes")
    assert answered(cluster(node("a"), slice_of("a", 4), *claims), group).decision == "admitted"
