"""The devices of one node: which of them match a request, and which the shared counters still allow.

Nodes with the same devices in the same order share one `NodeDevices`, whatever the devices' names, so that
equal nodes are evaluated once. Sets of devices are bit masks: bit i is device i, in the order of `devices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planner.devices.device import Device, Value, own_name
from planner.devices.device_masks import CounterUse, bits
from planner.devices.pools import pool_of, pools_of
from planner.devices.selectors import SelectorEngine, meets_selector
from planner.model.claim_spec import UNKNOWN, DeviceRequest
from planner.model.labels import Taint, Toleration, tolerates
from planner.model.resources import CLAIMED_GPU

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
"""Effects of device taints that keep claims away unless tolerated; other effects only inform."""


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """One device of a node.

    `unique_attributes`: attributes that distinguish the device from equal ones; their values are replaced by
    numbers, equal numbers for equal values. `consumes_counters`: what it consumes of the node's counters.
    """

    device: Device
    unique_attributes: tuple[tuple[str, int], ...] = ()
    consumes_counters: CounterUse = ()
    taints: tuple[Taint, ...] = ()

    def value(self, attribute: str) -> tuple[str, Value] | None:
        """Returns what stands for the attribute's value in comparisons; None if the device does not have the
        attribute. `attribute`: its full name.
        """
        for name, number in self.unique_attributes:
            if name == attribute:
                return "", number  # "" is no type's name, so a number never equals a real value
        value = self.device.attribute(own_name(attribute, self.device.driver))
        return None if value is None else (type(value).__name__, value)


@dataclass(frozen=True, slots=True, eq=False)
class NodeDevices:
    """The devices of equal nodes, and the amounts of their counters. `pools`: the number of devices in each
    pool.

    Compared by identity (`eq=False`): equal nodes share one instance, which is a key of many caches.
    `_matching` and `_available` cache results. They need no size limit: they have an entry for each request
    and each mask in use, and are freed with the last snapshot that has such nodes.
    """

    devices: tuple[NodeDevice, ...]
    counters: tuple[int, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict)
    engine: SelectorEngine | None = None
    _matching: dict[DeviceRequest, tuple[int, int]] = field(default_factory=dict, repr=False)
    _available: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def all_devices(self) -> int:
        """The mask of all devices."""
        return (1 << len(self.devices)) - 1

    def matching(self, request: DeviceRequest) -> tuple[int, int]:
        """Returns the masks of the devices that match a request, and of those among them whose taints are
        tolerated.

        A selector that cannot be evaluated counts as matching.
        """
        masks = self._matching.get(request)
        if masks is None:
            selected = allowed = 0
            for index, device in enumerate(self.devices):
                if meets(device.device, request, self.engine):
                    selected |= 1 << index
                    allowed |= _tolerated(device.taints, request.tolerations) << index
            masks = self._matching[request] = selected, allowed
        return masks

    def untolerated(self, request: DeviceRequest) -> set[str]:
        """Returns the taints that keep the request from devices that match it, as KEY=VALUE:EFFECT."""
        selected, allowed = self.matching(request)
        return {
            str(taint)
            for index in bits(selected & ~allowed)
            for taint in self.devices[index].taints
            if not _tolerated((taint,), request.tolerations)
        }

    def count(self, request: DeviceRequest) -> int:
        """Returns how many devices a request takes on this node: with `allocationMode: All`, all that match.
        If none matches, the result is more than the node has, so that the request never fits.
        """
        selected, _ = self.matching(request)
        return request.count if request.count != UNKNOWN else selected.bit_count() or len(self.devices) + 1

    def counters_left(self, busy: int) -> list[int]:
        """Returns what remains of each counter when the devices in the mask `busy` are in use."""
        left = list(self.counters)
        for place in bits(busy):
            for counter, amount in self.devices[place].consumes_counters:
                left[counter] -= amount
        return left

    def available(self, busy: int) -> int:
        """Returns the mask of the devices that are not in the mask `busy`, and that need no more of any
        counter than the busy devices leave.
        """
        mask = self._available.get(busy)
        if mask is None:
            left, mask = self.counters_left(busy), 0
            for index, device in enumerate(self.devices):
                if not busy >> index & 1 and all(
                    left[counter] >= amount for counter, amount in device.consumes_counters
                ):
                    mask |= 1 << index
            self._available[busy] = mask
        return mask

    def whole_gpus(self) -> int:
        """Returns the mask of the devices that are whole GPUs (pool `gpu.nvidia.com`), not MIG instances."""
        return sum(
            1 << index for index, device in enumerate(self.devices) if pool_of(device.device) == CLAIMED_GPU
        )

    def unavailable_by_pool(self, busy: int) -> dict[str, int]:
        """Returns the number of devices in each pool that are in the mask `busy`, or that need more of a
        counter than the busy devices leave.
        """
        shut = self.all_devices & ~self.available(busy)
        return pools_of(self.devices[place].device for place in bits(shut)) if shut else {}


def meets(device: Device, request: DeviceRequest, engine: SelectorEngine | None) -> bool:
    """Reports whether a device matches a request; a selector that cannot be evaluated counts as matching."""
    if not all(meets_selector(engine, text, device) is not False for text in request.expressions):
        return False
    capacity = dict(device.capacity)
    return all(
        capacity.get(own_name(name, device.driver), -1) >= size for name, size in request.capacity_requests
    )


def _tolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    return all(
        taint.effect not in _BLOCKING_EFFECTS
        or any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )
