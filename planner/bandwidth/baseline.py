"""Places a gang's pods without a plan: one after another, as kube-scheduler scores nodes.

The rule: of the nodes that accept the pod (labels, taints, resources, no second pod of a PodSet if its pods
must be on different hosts or domains), the one with the lowest share of cpu and memory requested, counting
the pod (NodeResourcesFit with LeastAllocated, its default; GPUs are not part of that score). Among equal
nodes kube-scheduler picks one at random; here a hash of the node's name decides, so that the same input gives
the same answer. Levels, gangs and reserved domains are ignored, because kube-scheduler does not know them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from zlib import crc32

from planner.cluster.snapshot import Snapshot
from planner.devices.availability import AvailableDevices
from planner.devices.pools import on_node
from planner.model.node import Node
from planner.model.podgroup import Assignment, PodGroup
from planner.model.resolved import ResolvedPodSet, ResolvedShape, resolved_group
from planner.model.resources import Resources
from planner.node.eligibility import obstacle
from planner.node.packing import max_pods, requests_on
from planner.request.created_pods import as_admitted

RULE = "kube-scheduler's least allocated, pod by pod"


_UNSTATED = {"cpu": 100, "memory": 200 * 2**20}
"""What kube-scheduler assumes for a pod that requests no cpu or memory: 100m and 200 MiB, here in
base units.
"""


def topology_blind(snapshot: Snapshot, group: PodGroup) -> tuple[Assignment, ...]:
    """Returns the placement of the gang's pods; pods for which no node has room are left out.

    `snapshot` must not contain the gang itself.
    """
    taken: dict[str, Resources] = {}
    devices_by_node: dict[str, AvailableDevices] = {}
    assignments: list[Assignment] = []
    for pod_set in resolved_group(as_admitted(snapshot, group)).pod_sets:
        counts = _spread(snapshot, pod_set, taken, devices_by_node)
        assignments.extend(Assignment(pod_set.name, node, count) for node, count in counts.items())
    return tuple(assignments)


def _spread(
    snapshot: Snapshot,
    pod_set: ResolvedPodSet,
    taken: dict[str, Resources],
    devices_by_node: dict[str, AvailableDevices],
) -> dict[str, int]:
    """Returns the number of pods of one PodSet on each node.

    `taken`: the used amounts of each node that has pods of this placement. `devices_by_node`: the devices and
    claims of each node that was looked up. What the pods use is added to both.
    """
    shape, counts = pod_set.shape, dict[str, int]()
    before = snapshot.taken
    # The hash orders nodes of equal share, instead of kube-scheduler's random choice. Whether a node accepts
    # the pod is checked when it is the next: most nodes never are.
    queue = [
        (_share(node, taken.get(name) or before.get(name, {}), shape), crc32(name.encode()), name)
        for name, node in snapshot.nodes.items()
    ]
    heapify(queue)
    apart: set[tuple[str, str]] = set()
    placed = 0
    while queue and placed < pod_set.count:
        _, draw, name = heappop(queue)
        node = snapshot.nodes[name]
        where = {(key, node.labels.get(key, "")) for key in shape.anti_affinity if node.labels.get(key)}
        if apart & where:
            continue
        used = dict(taken.get(name) or before.get(name, {}))
        if name not in counts and (
            obstacle(shape, node, occupied=True) or not _room(snapshot, node, used, shape, devices_by_node)
        ):
            continue
        apart |= where
        for resource, amount in shape.requests.items():
            used[resource] = used.get(resource, 0) + amount
        taken[name] = used
        counts[name] = counts.get(name, 0) + 1
        placed += 1
        if devices := devices_by_node.get(name):
            devices_by_node[name] = devices.with_one_more_pod(
                requests_on(shape, snapshot.base.offers(node))[1]
            )
        if _room(snapshot, node, used, shape, devices_by_node):
            heappush(queue, (_share(node, used, shape), draw, name))
    return counts


def _room(
    snapshot: Snapshot,
    node: Node,
    used: Resources,
    shape: ResolvedShape,
    devices_by_node: dict[str, AvailableDevices],
) -> int:
    """Returns 1 if the node has room for one more pod, else 0. The node's devices are looked up once, and
    kept in `devices_by_node`.
    """
    if (
        (shape.claim_specs or shape.extended_claims)
        and node.name not in devices_by_node
        and (devices := snapshot.usage.free_on(node)[2])
    ):
        devices_by_node[node.name] = devices
    return min(1, max_pods(_free(snapshot, node, used), shape, None, 1, devices_by_node.get(node.name)))


def _free(snapshot: Snapshot, node: Node, used: Resources) -> Resources:
    offers = snapshot.base.offers(node)
    used = on_node(used, offers)
    return {name: amount - used.get(name, 0) for name, amount in offers.items()}


def _share(node: Node, used: Resources, shape: ResolvedShape) -> float:
    """Returns the mean of the shares of the node's cpu and memory that are requested with one more pod, 0 to
    1. A resource that the node lacks counts as 1.
    """
    shares = []
    for name, default in _UNSTATED.items():
        offered = node.allocatable.get(name, 0)
        requested = used.get(name, 0) + (shape.requests.get(name, 0) or default)
        shares.append(min(1.0, requested / offered) if offered else 1.0)
    return sum(shares) / len(shares)
