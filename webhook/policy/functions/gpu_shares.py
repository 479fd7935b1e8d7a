"""Computes one GPU's share of its node's CPU and memory: a container that states no amounts gets this share
for each of its GPUs.

Shares are those of empty nodes, so that as many pods fit as a node has GPUs, whatever runs there now. Nodes
that the pod can never use do not count: a job for eight GPUs does not get less because of a node with one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.model.pod import PodShape
from planner.model.resources import Resources
from planner.node.node_groups import RESERVE_CPU, RESERVE_MEMORY, NodeGroup, could_take, requested_gpus


@dataclass(frozen=True, slots=True)
class GpuPortion:
    """The share of one GPU: whole cores and bytes."""

    cpu: int
    memory: int


def share_of(shape: PodShape, claimed: int, kinds: Sequence[NodeGroup]) -> GpuPortion | None:
    """Returns the smallest share of one GPU on any node that could take the pod.

    `claimed`: the number of GPUs that the pod gets by ResourceClaims, in addition to its requests. `kinds`:
    the cluster's nodes, grouped by equal properties. If no node could take the pod, all nodes with such GPUs
    count whose labels and taints allow the pod; such a node's amounts are divided by the number of GPUs that
    the pod requests, so that the computed share is not the reason why the pod does not fit. None if the pod
    requests no GPU, or no suitable node is known.
    """
    asked = requested_gpus(shape.requests)
    gpus = sum(asked.values()) + claimed
    if not gpus:
        return None
    able = could_take(kinds, shape, claimed)
    able = able or [kind for kind in kinds if _offered(kind, asked) and kind.admits(shape)]
    shares = [_share(kind, max(_offered(kind, asked), gpus), gpus, shape.overhead) for kind in able]
    if not shares:
        return None
    return GpuPortion(min(share.cpu for share in shares), min(share.memory for share in shares))


def _share(kind: NodeGroup, gpus: int, gpus_per_pod: int, overhead: Resources) -> GpuPortion:
    """Returns what is left for each of the node's `gpus`, after the overhead of as many pods as it takes."""

    def left(resource: str, reserve: int) -> int:
        taken = reserve + gpus // gpus_per_pod * overhead.get(resource, 0)
        return max(0, kind.allocatable.get(resource, 0) - taken)

    return GpuPortion(left("cpu", RESERVE_CPU) // (1000 * gpus), left("memory", RESERVE_MEMORY) // gpus)


def _offered(kind: NodeGroup, asked: Mapping[str, int]) -> int:
    """Returns the GPUs of a node of this kind that are of the requested type; all of them if GPUs are
    claimed.
    """
    return sum(kind.allocatable.get(name, 0) for name in asked) if asked else kind.gpus
