"""Which of a cluster's GPUs have the most memory bandwidth, or compute."""

from __future__ import annotations

import pytest

from webhook.policy.functions.gpu_models import strongest

H100, H200, H20 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-H20"


@pytest.mark.parametrize(
    ("products", "strength", "expected"),
    [
        ([H100, H200], "bandwidth", [H200]),
        ([H100, H200], "compute", []),  # the same chip
        ([H20, H100], "bandwidth", [H20]),
        ([H20, H100], "compute", [H100]),
        (["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"], "bandwidth", ["NVIDIA-A100-SXM4-80GB"]),
        (["NVIDIA-H100-PCIe", "NVIDIA-H100-NVL", H100], "bandwidth", ["NVIDIA-H100-NVL"]),
        (["Tesla-T4", "NVIDIA-L4", "NVIDIA-L40S"], "compute", ["NVIDIA-L40S"]),
    ],
)
def test_the_strongest_of_a_clusters_products(products: list[str], strength: str, expected: list[str]):
    """By the data sheets; none where they are alike."""
    assert strongest(products, strength) == expected


def test_what_is_unknown_is_not_preferred():
    """Another maker's GPU, a slice, a strength that is none, no product at all."""
    assert strongest([H100, "Some-GPU"], "bandwidth") == []
    assert strongest([H100, "NVIDIA-H200-MIG-1g.18gb"], "bandwidth") == []
    assert strongest([H100, H200], "beauty") == []
    assert strongest([], "compute") == strongest(None, "compute") == []
