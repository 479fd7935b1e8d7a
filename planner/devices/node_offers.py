"""What a node offers of each pool: from its ResourceSlices, or from its labels and allocatable amounts.

Source: labels of NVIDIA's GPU feature discovery; allocatable amounts of its device plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from planner.devices.device import Device, Value
from planner.devices.pools import DRIVER, plugin_name
from planner.model.node import Node
from planner.model.resources import (
    CLAIMED_GPU,
    CLAIMED_MIG,
    COUNT_LABEL,
    FAMILY_LABEL,
    GPU,
    MEMORY_LABEL,
    MIG_PREFIX,
    PRODUCT_LABEL,
    Resources,
)


def offered(node: Node, pools: Mapping[str, int] | None) -> Resources:
    """Returns the node's allocatable amounts and, in addition, the pools that only claims can request.

    `pools`: the devices in its ResourceSlices, or None if no node of the cluster has a ResourceSlice, so that
    labels are used. If other nodes have ResourceSlices, a node without one has no DRA driver: its pools are
    0. A pool whose devices the device plugin offers too is left out: requests for it count against the
    plugin's resource (`pools.on_node`).
    """
    if pools is None:
        plugin = node.allocatable.get(GPU, 0)
        labelled = labelled_gpus(node)
        return {**node.allocatable, CLAIMED_GPU: labelled} if labelled and not plugin else node.allocatable
    counts = {CLAIMED_GPU: 0, CLAIMED_MIG: 0, **pools}
    shared = [name for name, count in counts.items() if count and name != CLAIMED_MIG and plugged(node, name)]
    return {**node.allocatable, **{name: count for name, count in counts.items() if name not in shared}}


def plugged(node: Node, name: str) -> bool:
    """Reports whether the node's device plugin offers the devices of the pool `name` too."""
    return node.allocatable.get(plugin_name(name), 0) > 0


def labelled_gpus(node: Node) -> int:
    """Returns the number of whole GPUs by the label of GPU feature discovery; 0 if MIG divides them."""
    text = node.labels.get(COUNT_LABEL, "")
    divided = "-MIG-" in node.labels.get(PRODUCT_LABEL, "") or any(
        name.startswith(MIG_PREFIX) and count for name, count in node.allocatable.items()
    )
    return int(text) if not divided and text.isascii() and text.isdecimal() and len(text) < 5 else 0


def labelled_devices(node: Node) -> Counter[Device]:
    """Returns the devices that a node's labels and allocatable amounts describe, with their number."""
    devices: Counter[Device] = Counter()
    if gpus := node.allocatable.get(GPU, 0) or labelled_gpus(node):
        devices[Device(DRIVER, (("type", "gpu"), *_labelled_attributes(node)), _memory(node))] = gpus
    for name, count in node.allocatable.items():
        if name.startswith(MIG_PREFIX) and count > 0:
            # Resource names have no "+": mig-1g.10gb.me is the profile 1g.10gb+me.
            profile = name.removeprefix(MIG_PREFIX).replace(".me", "+me")
            devices[Device(DRIVER, (("type", "mig"), ("profile", profile), *_labelled_attributes(node)))] = (
                count
            )
    return devices


def _labelled_attributes(node: Node) -> tuple[tuple[str, Value], ...]:
    product = node.labels.get(PRODUCT_LABEL, "").replace("-", " ")
    family = node.labels.get(FAMILY_LABEL, "")
    architecture = "-".join(word.capitalize() for word in family.split("-"))
    return tuple(
        (name, value) for name, value in (("productName", product), ("architecture", architecture)) if value
    )


def _memory(node: Node) -> tuple[tuple[str, int], ...]:
    size = node.labels.get(MEMORY_LABEL, "")
    return (("memory", int(size) * 2**20),) if size.isascii() and size.isdecimal() and len(size) < 10 else ()
