"""How many cores this process may use, by its affinity and the limit of its control group."""

from __future__ import annotations

import os
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
"""The path of a container's own control group (version 2); below it, in `cpu`, that of version 1."""


def given_cores(groups: Path = GROUPS) -> int:
    """Returns whole cores, at least one; a limit of 2500m gives two."""
    return max(1, min(len(os.sched_getaffinity(0)), int(_limit(groups))))


def _limit(groups: Path) -> float:
    """Returns the limit in cores; without a limit, more than any machine has."""
    unlimited = float(2**16)
    try:
        quota, period = (groups / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (groups / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (groups / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return unlimited
    if not quota.isdecimal() or not period.isdecimal() or not int(period):  # "max", or -1
        return unlimited
    return int(quota) / int(period)
