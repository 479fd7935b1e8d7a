"""A claim gets at most 32 devices (AllocationResultsMaxSize); kube-scheduler never allocates a larger one."""

from __future__ import annotations

import pytest

from planner.cluster.snapshot import Snapshot
from tests.planner.devices.test_allocator import NIC, claim, request
from tests.planner.devices.test_catalog import Json, answered, claiming, cluster, node, slice_of

EVERY: Json = {"name": "all", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}}


def dense(*requests: Json, devices: int = 64) -> Snapshot:
    """A node with many devices, and a claim with these requests."""
    return cluster(node("a"), slice_of("a", devices), claim(*requests))


@pytest.mark.parametrize(
    "requests",
    [
        (request("one", 33),),
        (request("one", 20), request("two", 20)),
        (EVERY,),
        (request("watch", 33, adminAccess=True),),
    ],
    ids=["one request", "two requests", "all of the node", "admin access"],
)
def test_a_claim_of_more_devices_is_refused_with_the_limit(requests: tuple[Json, ...]) -> None:
    """Though the node has as many."""
    answer = answered(dense(*requests), claiming(1))
    assert answer.decision == "rejected"
    assert (
        "Kubernetes allocates at most 32 devices to one claim. Would work: several claims" in answer.message
    )


def test_a_claim_of_as_many_is_admitted_as_often_as_the_node_has_them() -> None:
    """The limit is of a claim, not of a node."""
    snapshot = dense(request("one", 32))
    assert [answered(snapshot, claiming(count)).decision for count in (2, 3)] == ["admitted", "rejected"]


def test_the_limit_counts_the_smallest_alternatives() -> None:
    """A claim with an alternative of fewer devices can be allocated."""
    smaller = {
        "name": "or",
        "firstAvailable": [{"name": f"a{n}", **request("", n)["exactly"]} for n in (40, 30)],
    }
    assert answered(dense(smaller), claiming(2)).decision == "admitted"
    assert answered(dense(smaller, request("more", 3)), claiming(1)).decision == "rejected"


def test_alternatives_that_the_node_cannot_serve_do_not_count_as_smaller_ones() -> None:
    """The node has no device of the first alternative, and the second is larger than a claim may be."""
    devices = [
        {"name": "none", **request("", 1, "rdma")["exactly"]},
        {"name": "many", **request("", 40)["exactly"]},
    ]
    answer = answered(
        cluster(NIC, node("a"), slice_of("a", 64), claim({"name": "or", "firstAvailable": devices})),
        claiming(1),
    )
    assert answer.decision == "rejected"
    assert "Kubernetes allocates at most 32 devices to one claim" in answer.message


def test_the_limit_is_not_named_because_of_a_node_that_serves_no_request() -> None:
    """Another node has 40 devices, of which none matches: what keeps the claim out is that it wants five."""
    adapters = slice_of("b", 40)
    adapters["spec"]["driver"] = "nic.example"
    snapshot = cluster(node("a"), node("b"), slice_of("a", 4), adapters, claim(request("one", 1), EVERY))
    answer = answered(snapshot, claiming(1))
    assert "no node has all of that together" in answer.message


def test_all_devices_of_a_smaller_node_are_allocated() -> None:
    """Whatever other nodes have."""
    snapshot = cluster(node("a"), node("b"), slice_of("a", 64), slice_of("b", 32), claim(EVERY))
    answer = answered(snapshot, claiming(1))
    assert [assignment.node for assignment in answer.assignments] == ["b"]
