"""Exclusive placement by a node label that is no level of a topology. Pure.

JobSet and LeaderWorkerSet give each job or replica a domain of its own by pod affinity, over any node label:
most manifests name the label of the node pool. The planner knows only the levels of topologies, and a place
that it chose could contradict this pod affinity, so such a workload is admitted as it is, without a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.request.levels import level_key
from webhook.workloads import Workload
from webhook.workloads.keys.annotation_keys import EXCLUSIVE
from webhook.workloads.templates import value_at


def left_to_pod_affinity(workload: Workload, obj: Mapping[str, Any], snapshot: Snapshot) -> Workload:
    """Returns the workload; without gangs, and opted out of planning, if its exclusive topology is no level
    of a topology but a label of some node.

    A label of no node stays in the request, which is refused for it: it is probably misspelt.
    """
    if not _exclusive_label(obj, snapshot):
        return workload
    return replace(workload, gangs=(), unplanned=0, skip=True, holds=False)


def why_not_planned(obj: Mapping[str, Any], snapshot: Snapshot | None) -> str:
    """Returns a sentence for the author of an object that is left to pod affinity, "" for any other."""
    if snapshot is None or not (label := _exclusive_label(obj, snapshot)):
        return ""
    key, level = label
    return (
        f"metadata.annotations[{key}]: {level} is a node label and no level of a topology. The object is "
        "admitted unchanged, without a plan and a reservation; its own controller keeps its pods together by "
        "pod affinity. What would work, for a plan: a Topology with this level"
    )


def _exclusive_label(obj: Mapping[str, Any], snapshot: Snapshot) -> tuple[str, str] | None:
    """Returns the annotation, and the node label that it names if that is no level of a topology; else
    None."""
    annotations = value_at(obj, ("metadata", "annotations"))
    if not isinstance(annotations, Mapping):
        return None
    for key in EXCLUSIVE:
        level = annotations.get(key)
        if not isinstance(level, str) or not level:
            continue
        is_level = any(level_key(topology, level) for topology in snapshot.topologies)
        if not is_level and any(level in node.labels for node in snapshot.nodes.values()):
            return key, level
    return None
