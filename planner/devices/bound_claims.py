"""The nodes' devices, and what claims come to on them: amounts of pools, and bundles that find their devices.

A pod names claims, a claim asks for devices of a class that meet selectors, and nodes offer devices. Here the
three are brought together, for gangs before they are planned (`planner.claimed`) and wherever bound pods are
counted. Where nodes have ResourceSlices, each claim is a bundle (`planner.bundles`) that a node's stock holds
or does not; the amounts of pools beside it are what it takes at least. Without slices, labels tell amounts.
"""

from __future__ import annotations

from collections import Counter

from planner.devices.availability import AvailableDevices
from planner.devices.node_devices import NodeDevicesByName
from planner.devices.pools import plugged
from planner.model.node import BoundPod, Node
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG


def empty_stock(node: Node, layouts: NodeDevicesByName) -> AvailableDevices | None:
    """The node's devices when no claim has any; None where its drivers offer none."""
    layout = layouts.of(node.name)
    return None if layout is None else AvailableDevices(layout, shared=plugged(node, CLAIMED_GPU))


def amounts(pools: Counter[str]) -> Counter[str]:
    """Pools with the slices of any profile: whatever profile a slice has, it is one of them."""
    found = Counter({name: count for name, count in pools.items() if count})
    slices = sum(count for name, count in pools.items() if name.startswith(CLAIMED_MIG + "/"))
    if slices:
        found[CLAIMED_MIG] += slices
    return found


def claim_names(pod: BoundPod) -> set[str]:
    """The claims and templates that a bound pod names, and the claims made for it, as NAMESPACE/NAME."""
    namespace = pod.name.partition("/")[0]
    return {f"{namespace}/{name}" for use in pod.claims for name in (use.source, use.made) if name}
