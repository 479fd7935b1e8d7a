"""The devices of every node, from ResourceSlices, with their allocations; and nodes grouped by their devices.

Nodes with the same devices in the same order share one `NodeDevices`, whatever the devices' names: names of
counters and values of unique attributes are replaced by numbers, so that equal nodes have equal keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.devices.claims import Claims, ResourceClaim
from planner.devices.device import Device, Value
from planner.devices.node_devices import NodeDevice, NodeDevices
from planner.devices.node_offers import labelled_devices
from planner.devices.pools import pools_of
from planner.devices.slices import DeviceId, NodeSlices, Offer
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.resources import PRODUCT_LABEL
from planner.persistent.persistent_map import PersistentMap, may_differ


class DevicesByNode:
    """By node name, the devices in ResourceSlices, and which of them are allocated.

    `former`: the previous instance, whose caches are reused. The cache of equal nodes is always shared; the
    caches by node and by pool, and the allocations of claims that are the same, if the ResourceSlices are
    unchanged.
    """

    def __init__(self, claims: Claims, former: DevicesByNode | None = None) -> None:
        self._claims = claims
        unchanged = former is not None and former._claims.slices == claims.slices
        self._by_node: dict[str, NodeDevices | None] = former._by_node if unchanged and former else {}
        self._equal: dict[tuple[tuple[NodeDevice, ...], tuple[int, ...]], NodeDevices] = (
            former._equal if former else {}
        )
        self._places: dict[str, dict[DeviceId, int]] = former._places if unchanged and former else {}
        self._node_by_pool: dict[tuple[str, str], str] = former._node_by_pool if unchanged and former else {}
        self._users: PersistentMap[str, Mapping[int, int]] | None = None
        """By node, how many claims each allocated device has, by the device's index; None: not computed yet.
        Administrative access and shared devices give a device several claims."""
        if unchanged and former and former._users is not None:
            self._users = self._users_after(former._users, former._claims.claims)

    def of(self, node: str) -> NodeDevices | None:
        """Returns the node's devices, or None if its ResourceSlices list no devices."""
        if node not in self._by_node:
            slices = self._claims.slices.by_node.get(node)
            self._by_node[node] = self._shared(slices) if slices else None
        return self._by_node[node]

    def _shared(self, slices: NodeSlices) -> NodeDevices | None:
        """Returns the `NodeDevices` that all nodes with these devices share; None if no device is usable."""
        key = _canonical_form(slices)
        if not key[0]:
            return None
        if key not in self._equal:
            devices, counters = key
            pools = pools_of(device.device for device in devices)
            self._equal[key] = NodeDevices(devices, counters, pools, self._claims.engine)
        return self._equal[key]

    def allocated(self, node: str) -> int:
        """Returns the mask of the node's devices that are allocated to claims."""
        if self._users is None:
            self._users = self._users_after(PersistentMap(), {})
        return sum(1 << place for place in self._users.get(node, ()))

    def _users_after(
        self, users: PersistentMap[str, Mapping[int, int]], former: Mapping[str, ResourceClaim]
    ) -> PersistentMap[str, Mapping[int, int]]:
        """Returns `_users`, from that of `former` claims: after one claim has changed, those of one node
        are counted again instead of all claims."""
        claims = self._claims.claims
        counts: dict[str, Counter[int]] = {}
        for name in may_differ(former, claims):
            for claim, change in ((former.get(name), -1), (claims.get(name), 1)):
                for device_id in claim.allocated if claim else ():
                    owner = self.node_of(device_id)
                    place = self._place(owner, device_id) if owner else None
                    if place is not None:
                        of_node = counts.setdefault(owner, Counter(users.get(owner, {})))
                        of_node[place] += change
        return users.updated({node: +of_node or None for node, of_node in counts.items()})

    def device(self, device_id: DeviceId) -> NodeDevice | None:
        """Returns the device with this name, or None if no node offers it."""
        owner = self.node_of(device_id)
        node_devices, place = (self.of(owner), self._place(owner, device_id)) if owner else (None, None)
        return node_devices.devices[place] if node_devices is not None and place is not None else None

    def node_of(self, device_id: DeviceId) -> str:
        """Returns the name of the node that offers a device; "" if it is unknown.

        Looks first at the node with the pool's name: most drivers name the pool of a node after the node.
        """
        driver, pool, _ = device_id
        by_node = self._claims.slices.by_node
        if pool in by_node and self._place(pool, device_id) is not None:
            return pool
        if not self._node_by_pool:
            self._node_by_pool.update(
                {(s.driver, s.pool): name for name, slices in by_node.items() for s in slices.slices}
            )
        return self._node_by_pool.get((driver, pool), "")

    def _place(self, node: str, device_id: DeviceId) -> int | None:
        """Returns the index of the device among the node's devices, or None if the node does not have it."""
        if node not in self._places:
            slices = self._claims.slices.by_node[node]
            self._places[node] = {name: index for index, name in enumerate(_usable_offers(slices))}
        return self._places[node].get(device_id)


def _usable_offers(slices: NodeSlices) -> dict[DeviceId, Offer]:
    """Returns the node's usable devices, sorted by driver, name and pool.

    A device is not usable if it consumes counters of a counter set that none of the node's slices defines.
    """
    counters = slices.counters()
    usable = [
        (device_id, offer)
        for device_id, offer in slices.offers().items()
        if all((device_id[0], device_id[1], name) in counters for name, _ in offer.consumes_counters)
    ]
    return dict(sorted(usable, key=lambda pair: (pair[0][0], natural(pair[0][2]), pair[0][1])))


def _canonical_form(slices: NodeSlices) -> tuple[tuple[NodeDevice, ...], tuple[int, ...]]:
    """Returns the devices and the counters' amounts in a form that is identical for equal nodes.

    Names of counters and values of unique attributes are replaced by numbers, in order of first occurrence.
    """
    numbers: dict[tuple[str, Value], int] = {}
    counters: dict[tuple[DeviceId, str], int] = {}
    amounts: list[int] = []
    totals = slices.counters()
    devices = []
    for device_id, offer in _usable_offers(slices).items():
        unique_attributes = tuple(
            (name, numbers.setdefault((name, value), len(numbers))) for name, value in offer.unique_attributes
        )
        consumes: dict[int, int] = {}
        for counter_set, amounts_by_name in offer.consumes_counters:
            owner = (device_id[0], device_id[1], counter_set)
            offered = dict(totals[owner])
            for name, size in amounts_by_name:
                if not size:
                    continue
                if (owner, name) not in counters:
                    counters[owner, name] = len(amounts)
                    amounts.append(offered.get(name, 0))
                place = counters[owner, name]
                consumes[place] = consumes.get(place, 0) + size
        devices.append(
            NodeDevice(offer.device, unique_attributes, tuple(sorted(consumes.items())), offer.taints)
        )
    return tuple(devices), tuple(amounts)


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes with the same devices.

    `devices`: how many of each device one node has. `names`: the nodes' names. `products`: their GPU products
    ("" for a node without the label). `node_devices`: None if the devices come from labels.
    """

    devices: Counter[Device]
    names: tuple[str, ...]
    products: frozenset[str]
    node_devices: NodeDevices | None = None


def kinds_by_slices(nodes: Iterable[Node], by_name: DevicesByNode) -> tuple[NodeKind, ...]:
    """Returns the nodes grouped by the devices in their ResourceSlices, except nodes without devices."""
    nodes_by_devices: dict[NodeDevices, list[Node]] = {}
    for node in nodes:
        if node_devices := by_name.of(node.name):
            nodes_by_devices.setdefault(node_devices, []).append(node)
    return tuple(
        _node_kind(Counter(device.device for device in node_devices.devices), members, node_devices)
        for node_devices, members in nodes_by_devices.items()
    )


def kinds_by_labels(nodes: Iterable[Node]) -> tuple[NodeKind, ...]:
    """Returns the nodes grouped by the devices that labels and allocatable amounts describe; nodes without
    devices are left out.
    """
    nodes_by_devices: dict[frozenset[tuple[Device, int]], list[Node]] = {}
    for node in nodes:
        if devices := labelled_devices(node):
            nodes_by_devices.setdefault(frozenset(devices.items()), []).append(node)
    return tuple(
        _node_kind(Counter(dict(kinds)), members, None) for kinds, members in nodes_by_devices.items()
    )


def _node_kind(devices: Counter[Device], nodes: Sequence[Node], node_devices: NodeDevices | None) -> NodeKind:
    products = frozenset(node.labels.get(PRODUCT_LABEL, "") for node in nodes)
    return NodeKind(devices, tuple(node.name for node in nodes), products, node_devices)
