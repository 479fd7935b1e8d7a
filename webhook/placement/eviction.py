"""Gangs for which their own scheduler makes room: no gate of ours keeps them from it. Pure.

KAI preempts gangs of lower priority for one that it sees pending. It sees no gated pod, so a gang that could
evict others would wait behind ours for ever (KAI-Scheduler d5bc503a, pkg/scheduler/actions/preempt/).
"""

from __future__ import annotations

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.schedulers import KAI, RUNAI

KAI_DEFAULT = 50
"""The value of `train`, the class of gangs that name none (the grouper's TrainPriorityClass): above it a gang
has whom to evict."""

PREEMPTIBILITY = "kai.scheduler/preemptibility"
"""KAI's label of pods and workloads: `preemptible`, or `non-preemptible`."""

NON_PREEMPTIBLE_FROM = 100
"""The priority from which on KAI preempts no pods without that label (its class `build`)."""


def may_evict(snapshot: Snapshot, group: PodGroup) -> bool:
    """Whether KAI evicts others for the gang where it has no place.

    Not where it requires a level in words that KAI does not read: KAI would start it anywhere.
    """
    if group.follows != "kai.scheduler" or snapshot.base.schedulers.shown.keys().isdisjoint((KAI, RUNAI)):
        return False
    value = snapshot.base.priorities.value(group.scheduler_class) if group.scheduler_class else None
    stated = [field for field, meaning, _ in group.origins if meaning == "required"]
    return value is not None and value > KAI_DEFAULT and all("kai.scheduler/" in field for field in stated)
