"""The gang size that KAI is told for a Job, lowered as its pods succeed and as it is scaled down. Pure.

KAI counts only living pods: if it was told four, it starts no retry once one of four indexes has succeeded
(KAI-Scheduler d5bc503a, pkg/podgrouper/podgrouper/plugins/job/job_grouper.go `calcMinMember`). Its podgrouper
reads the annotation again for every new pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.workloads.keys.annotation_keys import POLICIES
from webhook.workloads.layouts.kubernetes import BATCH_MIN_MEMBER, policy_wrote_size


def gang_size_left(item: Mapping[str, Any], kind: str) -> int:
    """Returns how many pods KAI should start together from now on, 0 to leave the Job unchanged."""
    annotations = item["metadata"].get("annotations") or {}
    stated = str(annotations.get(BATCH_MIN_MEMBER, ""))
    written = policy_wrote_size(annotations.get(POLICIES))  # a size that a user wrote is not changed
    done = (item.get("status") or {}).get("succeeded") or 0
    if kind != "Job" or not written or not stated.isdecimal():
        return 0
    stated_counts = (item["spec"].get("parallelism"), item["spec"].get("completions"))
    running = min((count for count in stated_counts if count is not None), default=1)
    left = max(1, running - done)
    return left if left < int(stated) and running else 0
