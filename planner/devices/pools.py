"""Pools: the resources under which devices for claims are counted.

Source: NVIDIA's driver: attributes `type` ("gpu", "mig", "vfio"), `productName`, `architecture`, `profile`,
capacity `memory`.

Devices that are asked for by claim are resources of their own: `gpu.nvidia.com` for whole GPUs,
`mig.nvidia.com/PROFILE` for slices, and `mig.nvidia.com` for slices of any profile. A node that offers the
same GPUs through the device plugin has only one pool of them, `nvidia.com/gpu`: what is claimed is taken
from there, so that claims and limits never both get one GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from planner.devices.device import Device
from planner.model.resources import (
    CLAIMED_GPU,
    CLAIMED_MIG,
    GPU,
    MIG_PREFIX,
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
    by_name = resource in offers or not is_claimed(resource)
    return offers.get(resource if by_name else plugin_name(resource), 0)


def pools_of(devices: Iterable[Device]) -> dict[str, int]:
    """Device count by pool; slices count under their profile and under the pool of all profiles."""
    amounts: Counter[str] = Counter()
    for device in devices:
        if name := pool_of(device):
            amounts[name] += 1
            if name.startswith(CLAIMED_MIG):
                amounts[CLAIMED_MIG] += 1
    return dict(amounts)


def pool_of(device: Device) -> str:
    """The resource that counts a device; "" for a device that is no GPU."""
    if device.driver != DRIVER:
        return ""
    kind = device.attribute("type")
    if kind == "mig":
        return f"{CLAIMED_MIG}/{device.attribute('profile')}"
    return CLAIMED_GPU if kind in ("gpu", "vfio", None) else ""


def pool_amounts(pools: Counter[str]) -> Counter[str]:
    """These amounts by pool, and the MIG slices of all profiles together as a pool of their own."""
    amounts = Counter({name: count for name, count in pools.items() if count})
    slices = sum(count for name, count in pools.items() if name.startswith(CLAIMED_MIG + "/"))
    if slices:
        amounts[CLAIMED_MIG] += slices
    return amounts
