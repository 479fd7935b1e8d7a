"""A refusal for too many devices names a number that is then admitted."""

from __future__ import annotations

import re

import pytest

from tests.planner.devices.test_allocator import claim, device, request, slice_with
from tests.planner.devices.test_catalog import Json, answered, claiming, cluster, node, slice_of
from tests.planner.devices.test_partitions import split

TAINT = [{"key": "sick", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("slices", "device_class", "asked", "works"),
    [
        ([slice_of("a", 4)], "gpu.nvidia.com", 5, 4),
        (split("a", 1), "mig.nvidia.com", 13, 7),
        ([slice_with("a", device("g0"), device("g1"), device("g2", taints=TAINT))], "gpu.nvidia.com", 4, 2),
        ([slice_of("a", 64)], "gpu.nvidia.com", 65, 32),
    ],
    ids=["devices of the node", "slices of one GPU", "one is tainted", "more than a claim gets"],
)
def test_the_number_that_works_is_admitted(
    slices: list[Json], device_class: str, asked: int, works: int
) -> None:
    """And one more is refused."""

    def answer(count: int) -> tuple[str, str]:
        snapshot = cluster(node("a"), *slices, claim(request("r", count, device_class)))
        result = answered(snapshot, claiming(1))
        return result.decision, result.message

    decision, message = answer(asked)
    assert decision == "rejected"
    assert re.search(r"no node has more than (\d+). Would work: \1 or less a pod", message), message
    assert f"Would work: {works} or less" in message
    assert (answer(works)[0], answer(works + 1)[0]) == ("admitted", "rejected")
