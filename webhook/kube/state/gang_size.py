"""The gang size that KAI is told for a Job, lowered as its pods succeed. Pure.

KAI counts only living pods: if it was told four, it starts no retry once one of four indexes has succeeded
(KAI-Scheduler d5bc503a, pkg/podgrouper/podgrouper/plugins/job/job_grouper.go `calcMinMember`). Its podgrouper
reads the annotation again for every new pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.workloads.keys.annotation_keys import POLICIES
from webhook.workloads.layouts import BATCH_MIN_MEMBER

WRITER = "kai-batch-min-member"
"""The policy that writes the size; a size that a user wrote is not changed."""


def gang_size_left(item: Mapping[str, Any], kind: str) -> int:
    """Returns how many pods KAI should start together from now on, 0 to leave the Job unchanged."""
    annotations = item["metadata"].get("annotations") or {}
    stated = str(annotations.get(BATCH_MIN_MEMBER, ""))
    # The annotation has the form NAME,NAME@REVISION.
    written = WRITER in str(annotations.get(POLICIES, "")).partition("@")[0].split(",")
    done = (item.get("status") or {}).get("succeeded") or 0
    if kind != "Job" or not written or not stated.isdecimal() or not done:
        return 0
    stated_counts = (item["spec"].get("parallelism"), item["spec"].get("completions"))
    running = min((count for count in stated_counts if count is not None), default=1)
    left = max(1, running - done)
    return left if left < int(stated) else 0
