"""A GPU's share of the nodes that could take a pod: what its containers get per GPU where they state nothing.

Shares are taken from empty nodes, so that as many pods fit as a node has GPUs, whatever runs there now. Nodes
that the pod could never go to have no say: a job for eight GPUs is not cut down by a node that has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.model.pod import PodShape
from planner.node.node_groups import RESERVE_CPU, RESERVE_MEMORY, NodeGroup, asked_gpus, could_take


@dataclass(frozen=True, slots=True)
class GpuPortion:
    """What belongs to one GPU: whole cores and bytes."""

    cpu: int
    memory: int


def share_of(shape: PodShape, claimed: int, kinds: Sequence[NodeGroup]) -> GpuPortion | None:
    """The smallest share on any node that could take the pod, which claims so many GPUs besides its requests.

    Where no node has enough for it, nodes count that it may go to by labels and taints; such a node is then
    shared by as many GPUs as are asked for, so that what is missing is what the pod asked for, not its share.
    None where it asks for no GPU, or no node of the right sort is known.
    """
    asked = asked_gpus(shape.requests)
    if not asked and not claimed:
        return None
    able = could_take(kinds, shape, claimed)
    able = able or [kind for kind in kinds if _offered(kind, asked) and kind.admits(shape)]
    shares = [_share(kind, asked, claimed) for kind in able]
    if not shares:
        return None
    return GpuPortion(min(share.cpu for share in shares), min(share.memory for share in shares))


def _share(kind: NodeGroup, asked: Mapping[str, int], claimed: int) -> GpuPortion:
    gpus = max(_offered(kind, asked), sum(asked.values()) + claimed)
    cpu = max(0, kind.allocatable.get("cpu", 0) - RESERVE_CPU) // (1000 * gpus)
    return GpuPortion(cpu, max(0, kind.allocatable.get("memory", 0) - RESERVE_MEMORY) // gpus)


def _offered(kind: NodeGroup, asked: Mapping[str, int]) -> int:
    """The GPUs of a node of this kind that are of the sort asked for; all of them where GPUs are claimed."""
    return sum(kind.allocatable.get(name, 0) for name in asked) if asked else kind.gpus
