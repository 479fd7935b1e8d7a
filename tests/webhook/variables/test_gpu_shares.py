"""A GPU's share of its node: from empty nodes, the smallest of a product."""

from __future__ import annotations

from dataclasses import replace

from planner.model.node import Node
from webhook.variables.gpu_shares import gpu_shares

GI = 2**30
H100 = Node(
    name="h1",
    labels={"nvidia.com/gpu.product": "H100"},
    allocatable={"cpu": 220_000, "memory": 1980 * GI, "nvidia.com/gpu": 8},
)


def test_a_share_leaves_something_to_daemon_sets() -> None:
    """218 of 220 CPUs and 1976 of 1980 GiB by eight GPUs, in whole cores."""
    assert gpu_shares([H100]) == [
        {"product": "H100", "resource": "nvidia.com/gpu", "gpus": 8, "cpu": 27, "memory": 247 * GI}
    ]


def test_the_smallest_node_of_a_product_decides() -> None:
    """Whatever the order, so that the share fits on each of them."""
    small = replace(H100, name="h2", allocatable={**H100.allocatable, "cpu": 98_000})
    assert gpu_shares([H100, small]) == gpu_shares([small, H100])
    assert gpu_shares([H100, small])[0]["cpu"] == 12


def test_products_and_makers_have_shares_of_their_own() -> None:
    """And a node without GPUs has none."""
    amd = replace(
        H100, name="m1", labels={}, allocatable={"cpu": 34_000, "memory": 36 * GI, "amd.com/gpu": 4}
    )
    plain = replace(H100, name="c1", allocatable={"cpu": 64_000, "memory": 256 * GI})
    assert [
        (share["product"], share["resource"], share["cpu"]) for share in gpu_shares([H100, amd, plain])
    ] == [
        ("", "amd.com/gpu", 8),
        ("H100", "nvidia.com/gpu", 27),
    ]


def test_a_node_with_hardly_any_cpu_shares_nothing_and_breaks_nothing() -> None:
    """Never a negative share."""
    tiny = replace(H100, allocatable={"cpu": 1_000, "memory": GI, "nvidia.com/gpu": 8})
    assert gpu_shares([tiny])[0]["cpu"] == gpu_shares([tiny])[0]["memory"] == 0
