"""Tests reading the output of nccl-tests, in the formats of its releases and launchers."""

from __future__ import annotations

import pytest

from planner.bandwidth.nccl_tests import read_all_reduce
from planner.model.errors import InputError, Where

WHERE = Where("all-reduce.txt")
HEAD = """#  Rank  0 Group  0 Pid    400 on w0 device  0 [0x10] NVIDIA H100
#  Rank  1 Group  0 Pid    401 on w0 device  1 [0x11] NVIDIA H100
NCCL version 2.25.1+cuda12.8
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
OUT_OF_PLACE = "  1073741824     268435456     float     sum      -1    10776   99.64  186.83      0"
ROW = f"{OUT_OF_PLACE}    10781   99.60  186.75      0"


def test_a_row_is_size_time_and_bus_bandwidth_out_of_place():
    """Microseconds become seconds; two GPUs took part."""
    run = read_all_reduce(f"{HEAD}{ROW}\n# Avg bus bandwidth    : 188.648\n", WHERE)
    assert run.ranks == 2
    assert (run.largest.size, run.largest.seconds) == (1073741824, pytest.approx(0.010776))
    assert (run.largest.bus_bandwidth, run.largest.wrong) == (186.83, 0)


@pytest.mark.parametrize(
    "row",
    [
        f" 0: {ROW}".replace("     0", "   N/A"),
        ROW.replace("      -1", "").replace("     0", " 5e-07"),
        OUT_OF_PLACE,
        "[1,0]<stdout>: 1073741824 268435456 bfloat16 sum -1 10776 99.64 186.83 0 10781 99.60 186.75 0",
    ],
    ids=["by srun, unchecked", "an older release", "out of place alone", "by mpirun with tags"],
)
def test_rows_of_other_releases_and_launchers_say_the_same(row: str):
    """Without the column of the root, with a rank before the line, with N/A for what was not checked."""
    assert read_all_reduce(row, WHERE).largest.bus_bandwidth == 186.83


def test_wrong_values_are_counted_out_of_place_and_in_place():
    """Either shows that the fabric corrupts data."""
    row = ROW.replace("186.83      0", "186.83      3").replace("186.75      0", "186.75      4")
    assert read_all_reduce(row, WHERE).largest.wrong == 7


def test_the_largest_size_counts_in_whatever_order_they_stand():
    """Small sizes are limited by latency."""
    small = ROW.replace("1073741824", "8", 1)
    assert read_all_reduce(f"{ROW}\n{small}", WHERE).largest.size == 1073741824


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Job failed\n", "no row"),
        (f"{ROW}\n# Collective test concluded: all_gather_perf\n", "all_gather_perf"),
        (ROW.replace("sum", "none"), "without a reduction"),
        (ROW.replace("99.64", "x"), "no numbers"),
    ],
    ids=["no table", "another test by name", "another test by rows", "torn"],
)
def test_what_is_no_output_of_an_all_reduce_is_refused(text: str, message: str):
    """The message names the file."""
    with pytest.raises(InputError, match=message):
        read_all_reduce(text, WHERE)
