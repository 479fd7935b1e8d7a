"""How many cores this process is given: by its affinity, and by the limit of its control group."""

from __future__ import annotations

import os
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
"""Where a container sees its own control group (version 2), and with `cpu` below it version 1."""


def given_cores(groups: Path = GROUPS) -> int:
    """Whole cores, at least one; a limit of 2500m is two."""
    return max(1, min(len(os.sched_getaffinity(0)), int(_limit(groups))))


def _limit(groups: Path) -> float:
    """Cores by the limit, more than any machine has where there is none."""
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
