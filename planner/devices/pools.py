"""Pools: the resources under which devices for claims are counted, and what a node has of each.

Source: NVIDIA's driver: attributes `type` ("gpu", "mig", "vfio"), `productName`, `architecture`, `profile`,
capacity `memory`. A node's devices come from its ResourceSlices (`slices.py`); where there are none, from its
labels and allocatable amounts.

Devices that are asked for by claim are resources of their own: `gpu.nvidia.com` for whole GPUs,
`mig.nvidia.com/PROFILE` for slices, and `mig.nvidia.com` for slices of any profile. A node that offers the
same GPUs through the device plugin has only one pool of them, `nvidia.com/gpu`: what is claimed is taken
from there, so that claims and limits never both get one GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from planner.devices.device import Device, Value
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

DRIVER = "gpu.nvidia.com"


def is_claimed(resource: str) -> bool:
    """Whether the resource is a pool that claims request."""
    return resource == CLAIMED_GPU or resource.startswith(CLAIMED_MIG)


def plugin_name(resource: str) -> str:
    """The extended resource of the device plugin for the same devices as the pool `resource`."""
    if resource == CLAIMED_GPU:
        return GPU
    return MIG_PREFIX + resource.removeprefix(CLAIMED_MIG + "/").replace("+", ".")


def on_node(requests: Resources, offers: Resources) -> Resources:
    """The requests as this node counts them: claimed devices come from its own pool, or from the plugin's."""
    if not any(is_claimed(name) and name not in offers for name in requests):
        return requests
    amounts: dict[str, int] = {}
    for name, count in requests.items():
        if is_claimed(name) and name not in offers:
            if name == CLAIMED_MIG:
                continue  # the plugin counts slices by profile
            name = plugin_name(name)
        amounts[name] = amounts.get(name, 0) + count
    return amounts


def has(offers: Resources, resource: str) -> int:
    """The amount of a resource, with claims counted as in `on_node`."""
    known = resource in offers or not is_claimed(resource)
    return offers.get(resource if known else plugin_name(resource), 0)


def offered(node: Node, pools: Mapping[str, int] | None) -> Resources:
    """The node's allocatable amounts, with the pools of devices that only claims can request.

    `pools`: the devices in its ResourceSlices; None where no node has any, so that labels are used. Where
    some node has a ResourceSlice, a node without one has no DRA driver.
    """
    if pools is None:
        plugin = node.allocatable.get(GPU, 0)
        labelled = labelled_gpus(node)
        return {**node.allocatable, CLAIMED_GPU: labelled} if labelled and not plugin else node.allocatable
    counts = {CLAIMED_GPU: 0, CLAIMED_MIG: 0, **pools}
    shared = [name for name, count in counts.items() if count and name != CLAIMED_MIG and plugged(node, name)]
    return {**node.allocatable, **{name: count for name, count in counts.items() if name not in shared}}


def pools_of(devices: Iterable[Device]) -> dict[str, int]:
    """Device count by pool; slices count under their profile and under the pool of all profiles."""
    amounts: Counter[str] = Counter()
    for device in devices:
        if name := pool_of(device):
            amounts[name] += 1
            if name.startswith(CLAIMED_MIG):
                amounts[CLAIMED_MIG] += 1
    return dict(amounts)


def plugged(node: Node, name: str) -> bool:
    """Whether the device plugin manages the same devices."""
    return node.allocatable.get(plugin_name(name), 0) > 0


def labelled_gpus(node: Node) -> int:
    """Whole GPUs by the label of GPU feature discovery, 0 where MIG divides them."""
    text = node.labels.get(COUNT_LABEL, "")
    divided = "-MIG-" in node.labels.get(PRODUCT_LABEL, "") or any(
        name.startswith(MIG_PREFIX) and count for name, count in node.allocatable.items()
    )
    return int(text) if not divided and text.isascii() and text.isdecimal() and len(text) < 5 else 0


def pool_of(device: Device) -> str:
    """The resource that counts a device; "" for a device that is no GPU."""
    if device.driver != DRIVER:
        return ""
    kind = device.attribute("type")
    if kind == "mig":
        return f"{CLAIMED_MIG}/{device.attribute('profile')}"
    return CLAIMED_GPU if kind in ("gpu", "vfio", None) else ""


def labelled_devices(node: Node) -> Counter[Device]:
    """The devices that a node's labels and allocatable amounts describe, without ResourceSlices."""
    devices: Counter[Device] = Counter()
    if gpus := node.allocatable.get(GPU, 0) or labelled_gpus(node):
        devices[Device(DRIVER, (("type", "gpu"), *_labelled(node)), _memory(node))] = gpus
    for name, count in node.allocatable.items():
        if name.startswith(MIG_PREFIX) and count > 0:
            profile = name.removeprefix(MIG_PREFIX).replace(".me", "+me")
            devices[Device(DRIVER, (("type", "mig"), ("profile", profile), *_labelled(node)))] = count
    return devices


def _labelled(node: Node) -> tuple[tuple[str, Value], ...]:
    product = node.labels.get(PRODUCT_LABEL, "").replace("-", " ")
    family = node.labels.get(FAMILY_LABEL, "")
    architecture = "-".join(word.capitalize() for word in family.split("-"))
    return tuple(
        (name, value) for name, value in (("productName", product), ("architecture", architecture)) if value
    )


def _memory(node: Node) -> tuple[tuple[str, int], ...]:
    size = node.labels.get(MEMORY_LABEL, "")
    return (("memory", int(size) * 2**20),) if size.isascii() and size.isdecimal() and len(size) < 10 else ()


def pool_amounts(pools: Counter[str]) -> Counter[str]:
    """These amounts by pool, and the MIG slices of all profiles together as a pool of their own."""
    amounts = Counter({name: count for name, count in pools.items() if count})
    slices = sum(count for name, count in pools.items() if name.startswith(CLAIMED_MIG + "/"))
    if slices:
        amounts[CLAIMED_MIG] += slices
    return amounts
