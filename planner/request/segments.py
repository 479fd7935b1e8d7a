"""KAI's segments: groups of pods that stay together. The last may be short, and the first includes the
leader.

Kueue's slices divide a PodSet evenly; KAI's segments need not. The workers of a PyTorchJob that do not divide
evenly end in a short segment. The segments of a LeaderWorkerSet count the leader: if the workers alone divide
evenly, it is one additional pod of the first segment, else one of that segment's pods. Source: KAI-Scheduler
d5bc503a, pkg/podgrouper/podgrouper/plugins/kubeflow/pytorch/pytorch_grouper.go (`buildWorkerSubGroups`),
leaderworkerset/lws_grouper.go (`getSegmentIndex`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.model.pod_class import PodClass
from planner.model.podgroup import PodGroup

LEADER = "leader"


def segmented(group: PodGroup, kinds: list[PodClass]) -> list[PodClass]:
    """Returns the pod classes with those that request segments split into one class for each segment size.

    `kinds`: one class for each PodSet. A leader that belongs to the first segment joins its class.
    """
    asking = {
        pod_set.name
        for pod_set in group.pod_sets
        if (pod_set.constraint if pod_set.constraint.slice_level else group.constraint).segments
    }
    leader = next((kind for kind in kinds if kind.parts == ((LEADER, 1),)), None)
    pieces = [
        piece
        for kind in kinds
        for piece in (_pieces(kind, leader) if kind.parts[0][0] in asking else (kind,))
    ]
    if leader is not None and any(
        piece.parts[0] == leader.parts[0] and piece is not leader for piece in pieces
    ):
        pieces.remove(leader)
    return pieces


def _pieces(kind: PodClass, leader: PodClass | None) -> Iterator[PodClass]:
    """Yields the classes of one PodSet's segments: the first segment, the other full ones, a short one.

    The first segment includes the leader if the leader's pod has the same shape. A leader of another shape
    cannot be in the class of a segment, because all pods of a class have one shape: only the level of the
    gang constrains it.
    """
    ((name, count),) = kind.parts
    size = kind.slice_size
    if size < 2 or name == LEADER:
        yield kind
        return
    if leader is not None:
        own = min(size if count % size == 0 else size - 1, count)
        if _alike(leader, kind):
            yield replace(kind, parts=(*leader.parts, (name, own)), count=own + 1, slice_size=own + 1)
        else:
            yield _piece(kind, name, own, own)
        count -= own
    if whole := count - count % size:
        yield _piece(kind, name, whole, size)
    if count % size:
        yield _piece(kind, name, count % size, count % size)


def _piece(kind: PodClass, name: str, count: int, size: int) -> PodClass:
    return replace(kind, parts=((name, count),), count=count, slice_size=size)


def _alike(leader: PodClass, kind: PodClass) -> bool:
    slices = {"slice_level": kind.slice_level, "slice_size": kind.slice_size}
    return replace(leader, parts=kind.parts, count=kind.count, **slices) == kind  # type: ignore[arg-type]
