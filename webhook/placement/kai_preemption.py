"""Whom KAI preempts, and for whom: no gate of ours keeps a gang from the room that KAI makes for it. Pure.

KAI preempts gangs of lower priority for one that it sees pending. It sees no gated pod, so a gang that could
preempt others would wait behind ours for ever (KAI-Scheduler d5bc503a, pkg/scheduler/actions/preempt/).
"""

from __future__ import annotations

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.priority import PriorityClasses
from planner.model.schedulers import KAI, RUNAI

TRAIN = 50
"""The value of `train`, the class of gangs that name none (the grouper's TrainPriorityClass): above it a gang
has whom to preempt."""

PREEMPTIBILITY = "kai.scheduler/preemptibility"
"""KAI's label of pods and workloads: `preemptible`, or `non-preemptible`; any other word counts as none."""

NON_PREEMPTIBLE_FROM = 100
"""The priority from which on KAI preempts no pods without that label (its class `build`)."""


def makes_room(snapshot: Snapshot, group: PodGroup) -> bool:
    """Whether KAI preempts others for the gang where it has no place.

    Not where it requires a level in words that KAI does not read: KAI would start it anywhere.
    """
    if group.follows != "kai.scheduler" or snapshot.base.schedulers.shown.keys().isdisjoint((KAI, RUNAI)):
        return False
    value = _value(snapshot.base.priorities, group.scheduler_class)
    stated = [field for field, meaning, _ in group.origins if meaning == "required"]
    return value is not None and value > TRAIN and all("kai.scheduler/" in field for field in stated)


def is_preemptible(stated: str, class_name: str, classes: PriorityClasses) -> bool | None:
    """Whether KAI preempts pods with this value of the label PREEMPTIBILITY and of this PriorityClass, each
    "" for none. None where that is not known: the class is not among those that were read."""
    if stated in ("preemptible", "non-preemptible"):
        return stated == "preemptible"
    value = _value(classes, class_name)
    return None if value is None else value < NON_PREEMPTIBLE_FROM


def _value(classes: PriorityClasses, class_name: str) -> int | None:
    return classes.value(class_name) if class_name else TRAIN
