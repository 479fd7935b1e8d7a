"""Tests quantities of resources as manifests write them, repeatedly."""

import pytest

from planner.model.errors import InputError, Where
from planner.model.quantity import amount, amounts

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("resource", "value", "up", "whole"),
    [
        ("cpu", "1500u", True, 2),
        ("cpu", "1500u", False, 1),
        ("memory", "1500u", True, 1),
        ("cpu", 2, True, 2000),
        ("pods", 2, True, 2),
        ("pods", "2", True, 2),
        (GPU, "2k", True, 2000),
    ],
)
def test_an_amount_is_the_same_each_time_it_is_read(resource, value, up, whole):
    """Rounded up or down, in millicores for cpu alone; the second look remembers the first."""
    assert [amount(resource, value, Where(), up=up) for _ in range(2)] == [whole] * 2


@pytest.mark.parametrize("value", [True, "0.5", "-1", "1e30", "9" * 50, {"limits": 1}])
def test_what_is_refused_is_refused_again_where_it_then_stands(value):
    """Though 1, "1" and other values like it are remembered as amounts."""
    assert amounts({GPU: 1, "pods": "1"}, Where(), up=True) == {GPU: 1, "pods": 1}
    for field in ("limits", "requests"):
        where = Where("file", "object", field)
        with pytest.raises(InputError, match=f"file: object: {field}.{GPU}: "):
            amounts({GPU: value}, where, up=True)


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("8Gi ", "8Gi"),
        ("8 Gi", "8Gi"),
        (" 8", "8"),
        ("64GB", "64G"),
        ("64GiB", "64Gi"),
        ("64gi", "64Gi"),
        ("1.5tb", "1.5T"),
        ("100 m", "100m"),
        ("8K", "8k"),
        ("8 kb", "8k"),
        ("lots", "4, 500m or 16Gi"),
        ("8 cores", "4, 500m or 16Gi"),
    ],
)
def test_what_is_no_quantity_is_told_the_one_that_is_probably_meant(written, right):
    """The API server refuses blanks and other units; people write them after bytes and in quotes."""
    with pytest.raises(InputError, match=f"is no quantity; write it as {right}$"):
        amount("memory", written, Where(), up=True)


def test_a_part_of_a_device_is_told_the_next_whole_number():
    """Kubernetes counts devices in whole numbers."""
    with pytest.raises(InputError, match=r"it comes in whole pieces; write for example 2$"):
        amount(GPU, "1.5", Where(), up=True)
