"""Reads the output of nccl-tests' `all_reduce_perf`: measurements, never mixed with the model's estimates.

    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw ...
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s) ...
    1073741824     268435456     float     sum      -1    10776   99.64  186.83      0    10781   99.60 ...

The first four result columns are out of place, the next four in place. Older releases have no column `root`,
and instead of `#wrong` they have an error such as 5e-07. This column is `N/A` if the data was not checked.
Launchers put the rank before each line (`0: `). Source: src/common.cu of nccl-tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.model.errors import InputError, Where

_RANK = re.compile(r"#\s+Rank\s+(\d+)\s.*\bdevice\b")
_ROW = re.compile(
    r"^\s*(?:\S+:\s+)?(?P<size>\d+)\s+\d+\s+(?P<type>[a-z]\w*)\s+(?P<redop>[a-z]\w*)\s+(?P<rest>[-\d.].*)$"
)
_CONCLUDED = re.compile(r"#\s*Collective test concluded:\s*(\w+)")
_ALL_REDUCE = "all_reduce_perf"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result for one size: bytes, seconds and bus bandwidth in GB/s, out of place; `wrong`: the number of
    wrong values.
    """

    size: int
    seconds: float
    bus_bandwidth: float
    wrong: int


@dataclass(frozen=True, slots=True)
class NcclRun:
    """One run of `all_reduce_perf`. `ranks`: the number of GPUs that took part, 0 if the output does not list
    them.

    `rows`: by size, the smallest first.
    """

    ranks: int
    rows: tuple[Measurement, ...]

    @property
    def largest(self) -> Measurement:
        """The row of the largest size, which is limited by bandwidth and not by latency."""
        return self.rows[-1]


def read_all_reduce(text: str, where: Where) -> NcclRun:
    """Returns the run in the output. Raises `InputError` if it has no rows or is of another collective."""
    rows, ranks = [], set()
    for line in text.splitlines():
        if rank := _RANK.search(line):
            ranks.add(rank[1])
        elif (ended := _CONCLUDED.search(line)) and not ended[1].startswith(_ALL_REDUCE):
            raise InputError(f"is the output of {ended[1]}; the model estimates {_ALL_REDUCE}", where)
        elif row := _ROW.match(line):
            if row["redop"] == "none":
                raise InputError(f"has rows without a reduction; the model estimates {_ALL_REDUCE}", where)
            rows.append(_measurement(int(row["size"]), row["rest"].split(), where))
    if not rows:
        raise InputError(f"has no row of a table as {_ALL_REDUCE} prints it", where)
    return NcclRun(len(ranks), tuple(sorted(rows, key=lambda row: row.size)))


def _measurement(size: int, columns: list[str], where: Where) -> Measurement:
    """Returns the measurement in a row. `columns`: those after `redop`, which are the root if their number is
    odd, then four or eight result columns.
    """
    values = columns[len(columns) % 2 :]
    try:
        microseconds, _, bus = (float(value) for value in values[:3])
        wrong = sum(int(value) for value in values[3::4] if value.isdecimal())
    except ValueError:
        raise InputError(f"the row of {size} bytes has columns that are no numbers", where) from None
    return Measurement(size, microseconds / 1e6, bus, wrong)
