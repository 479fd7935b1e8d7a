"""Decides whether the devices of one node meet a demand: a number of device groups, each allocated together.

    two GPUs (g0, g1), two NICs (n0, n1), two PCIe roots; demand: two groups of a GPU and a NIC of one root

The node's devices are divided into partitions that share neither counters nor values of a tied attribute,
here {g0, n0} and {g1, n1}: allocating devices of one does not affect the other. `partitions.py` computes
which numbers of groups each partition can hold, here one. They are subtracted from the demand, partition by
partition, until nothing is left: 2 - 1 - 1 = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from planner.devices.allocation.partitions import (
    MAX_STEPS,
    AttributeTie,
    Item,
    Partition,
    fits_together,
    largest_counts,
    minimal_remainders,
)
from planner.devices.device_masks import bits
from planner.devices.node_devices import NodeDevices
from planner.model.effort.work_budget import BudgetEnded, WorkBudget

Demand = tuple[tuple["DeviceGroup", int], ...]
"""Pairs of a device group and how many of it are needed."""


@dataclass(frozen=True, slots=True, order=True)
class DeviceGroup:
    """Devices that are allocated together. Part i is `counts[i]` devices out of the mask `masks[i]`.

    `ties`: tuples (attribute, distinct, parts). The devices of these parts must have the same value of the
    attribute or, if `distinct`, all different values.
    """

    masks: tuple[int, ...]
    counts: tuple[int, ...]
    ties: tuple[tuple[str, bool, tuple[int, ...]], ...] = ()

    @property
    def size(self) -> int:
        """The total number of devices."""
        return sum(self.counts)


def demand_fits(node_devices: NodeDevices, allocated: int, demand: Demand, budget: WorkBudget) -> bool:
    """Reports whether devices can be assigned to the whole demand without using a device twice.

    Raises `BudgetEnded`. A cached result costs as many steps as computing it, so that the answer does not
    depend on the content of the cache.
    """
    fit, steps = solve(node_devices, allocated, demand)
    budget.spend(steps + 1)
    if fit is None:
        raise BudgetEnded
    return fit


@lru_cache(maxsize=65_536)  # an entry for each kind of node, its allocated devices, and demand
def solve(node_devices: NodeDevices, allocated: int, demand: Demand) -> tuple[bool | None, int]:
    """Returns whether the demand fits (None: not decided within `MAX_STEPS`), and the steps used."""
    budget = WorkBudget(MAX_STEPS)
    try:
        fit = _covers(node_devices, allocated, demand, budget)
    except BudgetEnded:
        return None, MAX_STEPS
    return fit, MAX_STEPS - budget.left


def _covers(node_devices: NodeDevices, allocated: int, demand: Demand, budget: WorkBudget) -> bool:
    """Reports whether the partitions together can hold the whole demand. Raises `BudgetEnded`.

    Goes from partition to partition and keeps the possible remaining demands (numbers of each group), except
    those that contain another one.
    """
    free = node_devices.available(allocated)
    groups = [(_restricted_to(group, free), number) for group, number in demand]
    if not all(_has_enough(group, number) for group, number in groups):
        return False
    partitions = _partitions(node_devices, allocated, free, [group for group, _ in groups])
    wanted = tuple(number for _, number in groups)
    if len(partitions) == 1:
        return fits_together(partitions[0], wanted, budget)
    caps = [tuple(min(n, partition.max_items(i)) for i, n in enumerate(wanted)) for partition in partitions]
    frontier = {wanted}
    for index, (partition, cap) in enumerate(zip(partitions, caps, strict=True)):
        # The later partitions hold at most this many of each group, so a larger remainder cannot be met.
        later = tuple(map(sum, zip(*caps[index + 1 :], strict=True))) or (0,) * len(wanted)
        largest, steps = largest_counts(partition, cap)
        budget.spend(steps + len(frontier) * len(largest or ()))
        if largest is None:
            raise BudgetEnded
        missing = {
            tuple(max(0, n - s) for n, s in zip(remainder, counts, strict=True))
            for remainder in frontier
            for counts in largest
        }
        frontier = minimal_remainders({left for left in missing if all(map(int.__le__, left, later))})
    return bool(frontier)


def _restricted_to(group: DeviceGroup, free: int) -> DeviceGroup:
    return DeviceGroup(tuple(mask & free for mask in group.masks), group.counts, group.ties)


def _has_enough(group: DeviceGroup, number: int) -> bool:
    """Reports whether each part of the group has enough devices for `number` groups: a quick first check."""
    return all(
        mask.bit_count() >= count * number for mask, count in zip(group.masks, group.counts, strict=True)
    )


def _partitions(
    node_devices: NodeDevices, allocated: int, free: int, groups: Sequence[DeviceGroup]
) -> list[Partition]:
    """Returns the free devices that the groups can use, divided into partitions that share no counter and no
    value of an attribute that a constraint (`matchAttribute`) ties together.
    """
    asked = 0
    for group in groups:
        for mask in group.masks:
            asked |= mask
    links = _UnionFind()
    for index in bits(asked & free):
        counters = node_devices.devices[index].consumes_counters
        links.join(("device", index), *(("counter", counter) for counter, _ in counters))
    for group in groups:
        for attribute, distinct, parts in group.ties:
            for part in parts:
                for index in bits(group.masks[part]):
                    # For a distinct tie, a device's value restricts all other devices: None links them all.
                    value = None if distinct else node_devices.devices[index].value(attribute)
                    links.join(("device", index), ("value", attribute, value))
    members: dict[object, list[int]] = {}
    for index in bits(asked & free):
        members.setdefault(links.root(("device", index)), []).append(index)
    attributes = sorted({attribute for group in groups for attribute, _, _ in group.ties})
    left = node_devices.counters_left(allocated)
    return [_partition(node_devices, indexes, attributes, left, groups) for indexes in members.values()]


def _partition(
    node_devices: NodeDevices,
    indexes: Sequence[int],
    attributes: Sequence[str],
    counters_left: Sequence[int],
    groups: Sequence[DeviceGroup],
) -> Partition:
    """Returns the partition of these devices. Counters, values and bits are renumbered from 0, so that
    partitions of equal content compare equal.
    """
    counters: dict[int, int] = {}
    values: dict[object, int] = {}
    devices = []
    for index in indexes:
        device = node_devices.devices[index]
        consumes = tuple(
            (counters.setdefault(counter, len(counters)), amount)
            for counter, amount in device.consumes_counters
        )
        numbers = []
        for attribute in attributes:
            value = device.value(attribute)
            numbers.append(-1 if value is None else values.setdefault((attribute, value), len(values)))
        devices.append((consumes, tuple(numbers)))
    items = tuple(
        Item(
            tuple(
                sum((mask >> index & 1) << place for place, index in enumerate(indexes))
                for mask in group.masks
            ),
            group.counts,
            tuple(AttributeTie(attributes.index(a), distinct, parts) for a, distinct, parts in group.ties),
        )
        for group in groups
    )
    return Partition(tuple(devices), tuple(counters_left[counter] for counter in counters), items)


class _UnionFind:
    """Sets of linked keys (devices, counters, attribute values), which are linked directly or through others.

    Each set has one of its keys as root.
    """

    def __init__(self) -> None:
        self._parents: dict[object, object] = {}

    def root(self, item: object) -> object:
        """Returns the root of the set that contains this key."""
        while (parent := self._parents.get(item, item)) != item:
            item = parent
        return item

    def join(self, item: object, *other_items: object) -> None:
        """Links these keys, and so merges their sets."""
        for other_item in other_items:
            self._parents[self.root(other_item)] = self.root(item)
