"""KAI's segments: pods that stay together, of which the last may be short and the first has the leader.

Kueue's slices divide a PodSet evenly. KAI's segments of a PyTorchJob's workers end in a short one where they
do not; those of a LeaderWorkerSet count the leader: as one pod more of the first segment where the workers
alone divide evenly, else as one of its pods. Source: KAI-Scheduler d5bc503a, pkg/podgrouper/podgrouper/
plugins/kubeflow/pytorch/pytorch_grouper.go (`buildWorkerSubGroups`), leaderworkerset/lws_grouper.go
(`getSegmentIndex`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.model.pod_class import PodClass
from planner.model.podgroup import PodGroup

LEADER = "leader"


def segmented(group: PodGroup, kinds: list[PodClass]) -> list[PodClass]:
    """The classes with segments of unequal sizes as classes of their own; those of equal slices stay."""
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
    """The segments of one PodSet, the first with the leader where one of its pods is like it.

    A leader of another shape is only kept within the gang's own level: a class has pods of one shape.
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
