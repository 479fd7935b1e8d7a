"""Names of the claims of bound pods, and the amounts of their devices on a node."""

from __future__ import annotations

from collections import Counter

from planner.devices.availability import AvailableDevices
from planner.devices.node_devices import NodeDevicesByName
from planner.devices.pools import plugged
from planner.model.node import BoundPod, Node
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG


def unallocated_devices(node: Node, by_name: NodeDevicesByName) -> AvailableDevices | None:
    """The node's devices before any allocation; None where its drivers offer none."""
    node_devices = by_name.of(node.name)
    if node_devices is None:
        return None
    return AvailableDevices(node_devices, shared_with_plugin=plugged(node, CLAIMED_GPU))


def pool_amounts(pools: Counter[str]) -> Counter[str]:
    """These amounts by pool, with the MIG slices of all profiles also summed as one pool."""
    amounts = Counter({name: count for name, count in pools.items() if count})
    slices = sum(count for name, count in pools.items() if name.startswith(CLAIMED_MIG + "/"))
    if slices:
        amounts[CLAIMED_MIG] += slices
    return amounts


def claim_names(pod: BoundPod) -> set[str]:
    """The claims and templates that a bound pod names, and the claims made for it, as NAMESPACE/NAME."""
    namespace = pod.name.partition("/")[0]
    return {f"{namespace}/{name}" for use in pod.claims for name in (use.source, use.made) if name}
