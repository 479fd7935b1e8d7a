"""Tests reading `nvidia-smi topo -m`, and the labels that result."""

from __future__ import annotations

import pytest

from planner.manifests.node_checks.gpu_matrix import read_matrix
from planner.model.errors import InputError, Where

WHERE = Where("topo.txt")


def matrix(*rows: str, zones: str) -> str:
    """The command's output for GPUs with these links, row by row; X is the GPU itself."""
    names = [f"GPU{index}" for index in range(len(rows))]
    lines = ["\t" + "\t".join([*names, "NIC0", "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for name, row, zone in zip(names, rows, zones, strict=True):
        links = "\t".join(f" {sign} " if sign == "X" else sign for sign in row.split())
        lines.append(f"{name}\t{links}\tPXB\t0-55,112-167\t{zone}\t\tN/A")
    return "\n".join([*lines, "NIC0\t" + "PXB\t" * len(rows) + " X ", "", "Legend:", "", "  X    = Self"])


def test_gpus_that_nvlink_joins_are_one_domain_over_two_zones():
    """A small HGX board."""
    text = matrix(
        "X NV18 NV18 NV18", "NV18 X NV18 NV18", "NV18 NV18 X NV18", "NV18 NV18 NV18 X", zones="0011"
    )
    read = read_matrix(text, WHERE)
    assert (read.gpus, read.domains, read.by_zone) == (4, (4,), {"0": 2, "1": 2})
    assert read.labels == {"gpu.topology/interconnect": "nvswitch", "bayplan.dev/gpus-per-numa-node": "2"}


def test_pairs_with_bridges_are_domains_of_two():
    """NVLink bridges between two and two."""
    text = matrix("X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X NV4", "SYS SYS NV4 X", zones="0011")
    read = read_matrix(text, WHERE)
    assert read.domains == (2, 2)
    assert read.labels["gpu.topology/nvlink-domain-size"] == "2"


def test_gpus_without_nvlink_are_on_pcie():
    """On one zone, so that nothing is to be said of zones."""
    assert read_matrix(matrix("X PHB", "PHB X", zones="00"), WHERE).labels == {
        "gpu.topology/interconnect": "pcie"
    }


def test_underlined_heads_read_the_same():
    """`nvidia-smi` underlines them on a terminal."""
    plain = matrix("X NV4", "NV4 X", zones="00")
    head, _, rest = plain.partition("\n")
    underlined = head.replace("GPU0", "\x1b[4mGPU0").replace("GPU NUMA ID", "GPU NUMA ID\x1b[0m")
    assert read_matrix(f"{underlined}\n{rest}", WHERE) == read_matrix(plain, WHERE)


@pytest.mark.parametrize("text", ["", "No devices were found", "\tGPU0\tGPU1\nGPU0\t X "])
def test_a_text_without_a_whole_matrix_is_refused(text: str):
    """The message names the file."""
    with pytest.raises(InputError, match="no matrix"):
        read_matrix(text, WHERE)
