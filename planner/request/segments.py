"""KAI's segments: groups of pods that stay together. The last may be short, and the first includes the
leader.

Kueue's slices divide a PodSet evenly; KAI's segments need not. The workers of a PyTorchJob that do not divide
evenly end in a short segment. The segments of a LeaderWorkerSet count the leader: if the workers alone divide
evenly, the leader is one additional pod of the first segment, else one of that segment's pods. Source:
KAI-Scheduler d5bc503a, pkg/podgrouper/podgrouper/plugins/kubeflow/pytorch/pytorch_grouper.go
(`buildWorkerSubGroups`), leaderworkerset/lws_grouper.go (`getSegmentIndex`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.model.pod_class import PodClass
from planner.model.podgroup import PodGroup

LEADER = "leader"
"""The name of the PodSet that contains the leader of a LeaderWorkerSet."""


def segmented(group: PodGroup, pod_classes: list[PodClass]) -> list[PodClass]:
    """Returns the pod classes with those that request segments split into one class for each segment size.

    `pod_classes`: one class for each PodSet. A leader that belongs to the first segment joins its class.
    """
    asking = {
        pod_set.name
        for pod_set in group.pod_sets
        if (pod_set.constraint if pod_set.constraint.slice_level else group.constraint).segments
    }
    leader = next((pod_class for pod_class in pod_classes if pod_class.parts == ((LEADER, 1),)), None)
    pieces = [
        piece
        for pod_class in pod_classes
        for piece in (_pieces(pod_class, leader) if pod_class.parts[0][0] in asking else (pod_class,))
    ]
    if leader is not None and any(
        piece.parts[0] == leader.parts[0] and piece is not leader for piece in pieces
    ):
        pieces.remove(leader)
    return pieces


def _pieces(pod_class: PodClass, leader: PodClass | None) -> Iterator[PodClass]:
    """Yields the classes of one PodSet's segments: the first segment, the other full ones, a short one.

    The first segment includes the leader if the leader's pod has the same shape. A leader of another shape
    cannot be in the class of a segment, because all pods of a class have one shape: only the level of the
    gang constrains it.
    """
    ((name, count),) = pod_class.parts
    size = pod_class.slice_size
    if size < 2 or name == LEADER:
        yield pod_class
        return
    if leader is not None:
        own = min(size if count % size == 0 else size - 1, count)
        if _alike(leader, pod_class):
            yield replace(pod_class, parts=(*leader.parts, (name, own)), count=own + 1, slice_size=own + 1)
        else:
            yield _piece(pod_class, name, own, own)
        count -= own
    if whole := count - count % size:
        yield _piece(pod_class, name, whole, size)
    if count % size:
        yield _piece(pod_class, name, count % size, count % size)


def _piece(pod_class: PodClass, name: str, count: int, size: int) -> PodClass:
    return replace(pod_class, parts=((name, count),), count=count, slice_size=size)


def _alike(leader: PodClass, pod_class: PodClass) -> bool:
    slices = {"slice_level": pod_class.slice_level, "slice_size": pod_class.slice_size}
    return replace(leader, parts=pod_class.parts, count=pod_class.count, **slices) == pod_class  # type: ignore[arg-type]
