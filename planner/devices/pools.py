"""Pools: the planner's own resource names, under which it counts devices that ResourceClaims request.

A pool here is not the `spec.pool` of a ResourceSlice. There is one pool for whole GPUs, `gpu.nvidia.com`; one
for each MIG profile, `mig.nvidia.com/PROFILE`; and one for MIG devices of any profile, `mig.nvidia.com`. Some
nodes offer the same GPUs through the device plugin and through DRA. On such a node, the planner counts a
claimed GPU against `nvidia.com/gpu`, so that it never gives a GPU both to a claim and to a pod that requests
`nvidia.com/gpu`.

Source: NVIDIA's driver: attributes `type` ("gpu", "mig", "vfio"), `productName`, `architecture`, `profile`,
capacity `memory`.
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
"""The name of NVIDIA's DRA driver for GPUs; only its devices are counted in pools."""


def is_claimed(resource: str) -> bool:
    """Reports whether the resource is a pool, that is, counts devices of claims."""
    return resource == CLAIMED_GPU or resource.startswith(CLAIMED_MIG)


def plugin_name(resource: str) -> str:
    """Returns the extended resource of the device plugin for the devices of the pool `resource`."""
    if resource == CLAIMED_GPU:
        return GPU
    return MIG_PREFIX + resource.removeprefix(CLAIMED_MIG + "/").replace("+", ".")


def on_node(requests: Resources, offers: Resources) -> Resources:
    """Returns the requests by the resource names that the node offers.

    If `offers` lacks a pool, the device plugin manages its devices, and the request counts against the
    plugin's extended resource.
    """
    if not any(is_claimed(name) and name not in offers for name in requests):
        return requests
    amounts: dict[str, int] = {}
    for name, count in requests.items():
        if is_claimed(name) and name not in offers:
            if name == CLAIMED_MIG:
                continue  # the device plugin has no resource for MIG devices of any profile
            name = plugin_name(name)
        amounts[name] = amounts.get(name, 0) + count
    return amounts


def amount_in(offers: Resources, resource: str) -> int:
    """Returns the amount of a resource in `offers`; for a pool that `offers` lacks, the device plugin's
    amount.
    """
    by_name = resource in offers or not is_claimed(resource)
    return offers.get(resource if by_name else plugin_name(resource), 0)


def pools_of(devices: Iterable[Device]) -> dict[str, int]:
    """Returns the number of these devices in each pool. A MIG device counts in the pool of its profile and in
    `mig.nvidia.com`; a device that several claims may share, in none.
    """
    amounts: Counter[str] = Counter()
    for device in devices:
        if not device.shareable and (name := pool_of(device)):
            amounts[name] += 1
            if name.startswith(CLAIMED_MIG):
                amounts[CLAIMED_MIG] += 1
    return dict(amounts)


def pool_of(device: Device) -> str:
    """Returns the pool that counts a device; "" for a device that is not a GPU or a part of one."""
    if device.driver != DRIVER:
        return ""
    kind = device.attribute("type")
    if kind == "mig":
        return f"{CLAIMED_MIG}/{device.attribute('profile')}"
    return CLAIMED_GPU if kind in ("gpu", "vfio", None) else ""


def pool_amounts(pools: Counter[str]) -> Counter[str]:
    """Returns the amounts of pools above zero; the sum over all MIG profiles is added to `mig.nvidia.com`."""
    amounts = Counter({name: count for name, count in pools.items() if count})
    slices = sum(count for name, count in pools.items() if name.startswith(CLAIMED_MIG + "/"))
    if slices:
        amounts[CLAIMED_MIG] += slices
    return amounts
