"""Reads the GPU matrix in the output of `nvidia-smi topo -m`, and derives node labels from it.

    GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
    GPU0     X      NV18    PXB     0-55,112-167    0               N/A
    GPU1    NV18     X      NODE    0-55,112-167    0               N/A

Columns are separated by one tab, the last columns by one or more. `NV18` is a bond of 18 NVLinks; SYS, NODE,
PHB, PXB and PIX are connections over PCIe.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from planner.model.errors import InputError, Where
from planner.model.resources import INTERCONNECT_LABEL
from planner.node.nvlink import NVLINK_SIZE
from planner.node.topology_manager import GPUS_LABEL

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_GPU = re.compile(r"GPU\d+$")
_NUMA = "NUMA Affinity"


@dataclass(frozen=True, slots=True)
class GpuMatrix:
    """The GPUs of a node. `gpus`: their number. `domains`: the number of GPUs in each NVLink domain, 1 for a
    GPU without NVLink. `by_zone`: the number of GPUs by NUMA zone; empty if the output names no zone.
    """

    gpus: int
    domains: tuple[int, ...]
    by_zone: dict[str, int]

    @property
    def labels(self) -> dict[str, str]:
        """Returns the labels that describe these GPUs to the planner, without those whose value the planner
        assumes if the label is missing.
        """
        joined = self.gpus > 1 and self.domains == (self.gpus,)
        result = {INTERCONNECT_LABEL: "nvswitch" if joined else "pcie"}
        if 1 < max(self.domains) < self.gpus and len(set(self.domains)) == 1:
            result[INTERCONNECT_LABEL] = "nvlink"
            result[NVLINK_SIZE] = str(self.domains[0])
        if len(self.by_zone) > 1 and len(set(self.by_zone.values())) == 1:
            result[GPUS_LABEL] = str(next(iter(self.by_zone.values())))
        return result


def read_matrix(text: str, where: Where) -> GpuMatrix:
    """Returns the matrix in the output. Raises `InputError` if the text does not contain one."""
    lines = [_ESCAPE.sub("", line) for line in text.splitlines()]
    # The header, unlike the row of GPU0, has no X (a GPU in relation to itself).
    head = next((line for line in lines if re.match(r"\s*GPU0\b", line) and "X" not in line.split()), "")
    columns = [column.strip() for column in head.split("\t") if column.strip()]
    names = [column for column in columns if _GPU.match(column)]
    rows = {row[0].strip(): row[1:] for line in lines if _GPU.match((row := line.split("\t"))[0].strip())}
    if not names or not set(names) <= set(rows) or any(len(rows[name]) < len(names) for name in names):
        raise InputError("has no matrix of GPUs as `nvidia-smi topo -m` prints it", where)
    linked = {
        name: {other for other, sign in zip(names, rows[name], strict=False) if sign.strip().startswith("NV")}
        for name in names
    }
    zones: Counter[str] = Counter()
    if _NUMA in columns:
        index = columns.index(_NUMA)
        zones.update(row[index].strip() for name in names if len(row := rows[name]) > index)
    by_zone = {zone: count for zone, count in sorted(zones.items()) if zone.isdecimal()}
    return GpuMatrix(len(names), _domains(names, linked), by_zone)


def _domains(names: list[str], linked: dict[str, set[str]]) -> tuple[int, ...]:
    """Returns the sizes of the sets of GPUs that NVLink connects, the largest first."""
    sizes, left = [], set(names)
    while left:
        reached, ahead = set[str](), [min(left)]
        while ahead:
            name = ahead.pop()
            if name not in reached:
                reached.add(name)
                ahead += linked[name]
        left -= reached
        sizes.append(len(reached))
    return tuple(sorted(sizes, reverse=True))
