"""Counts the cores that this process may use, by its CPU affinity and the limit of its control group
(cgroup).
"""

from __future__ import annotations

import os
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
"""The folder of a container's own control group (version 2); in version 1 it is `cpu` below it."""


def given_cores(groups: Path = GROUPS) -> int:
    """Returns the number of whole cores, at least one: two for a limit of 2500m."""
    return max(1, min(len(os.sched_getaffinity(0)), int(_limit(groups))))


def _limit(groups: Path) -> float:
    """Returns the limit in cores; a number greater than any machine has if there is no limit."""
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
