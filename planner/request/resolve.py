"""A gang as it matters in one cluster at one moment: what no node or other pod there cares for is left out.

PodSets that differ only in such things are then of one kind, which makes for less to search.
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup, PodSet
from planner.request.levels import in_numa_nodes
from planner.request.pod_affinity import minding
from planner.request.topology_spread import spread_out


def settled(snapshot: Snapshot, group: PodGroup) -> PodGroup:
    """The gang without what cannot matter in this snapshot."""
    group = spread_out(snapshot, minding(snapshot, group))
    group = in_numa_nodes(group, snapshot.nodes, snapshot.base.numa)
    if snapshot.base.aligns or not any(one.shape.alignment for one in group.pod_sets):
        return group
    return replace(group, pod_sets=tuple(_unaligned(one) for one in group.pod_sets))


def _unaligned(pod_set: PodSet) -> PodSet:
    return replace(pod_set, shape=replace(pod_set.shape, alignment=None))
