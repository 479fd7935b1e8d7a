"""Finds gangs for which KAI preempts other pods, and pods that KAI preempts. Pure.

KAI preempts gangs of lower priority for a pending gang. It does not see gated pods, so a gang that could
preempt others would wait forever with Bayplan's gate (KAI-Scheduler d5bc503a,
pkg/scheduler/actions/preempt/). Such a gang is therefore gated only while others are about to start
(`evictions`).
"""

from __future__ import annotations

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.priority import PriorityClasses
from planner.model.schedulers import KAI, RUNAI

TRAIN = 50
"""The value of the PriorityClass `train`, which KAI's pod grouper gives gangs that name no class
(TrainPriorityClass). A gang with a higher value can preempt such gangs."""

PREEMPTIBILITY = "kai.scheduler/preemptibility"
"""KAI's label of pods and workloads: `preemptible` or `non-preemptible`; any other value is ignored."""

NON_PREEMPTIBLE_FROM = 100
"""From this priority on, KAI does not preempt pods without the label `PREEMPTIBILITY`: the value of KAI's
PriorityClass `build`."""


def makes_room(snapshot: Snapshot, group: PodGroup) -> bool:
    """Returns whether KAI may preempt other pods for the gang if the gang has no place: KAI schedules it, and
    its priority is above that of `TRAIN`.

    False if the gang requires a level by keys that KAI does not read: KAI would then start it anywhere."""
    if group.follows != "kai.scheduler" or snapshot.base.schedulers.shown.keys().isdisjoint((KAI, RUNAI)):
        return False
    value = _value(snapshot.base.priorities, group.scheduler_class)
    stated = [field for field, meaning, _ in group.origins if meaning == "required"]
    return value is not None and value > TRAIN and all("kai.scheduler/" in field for field in stated)


def is_preemptible(stated: str, class_name: str, classes: PriorityClasses) -> bool | None:
    """Returns whether KAI may preempt pods with this value of the label `PREEMPTIBILITY` and this
    PriorityClass ("" for none); None if that is unknown because the class was not read."""
    if stated in ("preemptible", "non-preemptible"):
        return stated == "preemptible"
    value = _value(classes, class_name)
    return None if value is None else value < NON_PREEMPTIBLE_FROM


def _value(classes: PriorityClasses, class_name: str) -> int | None:
    return classes.value(class_name) if class_name else TRAIN
