"""The devices of one node for claims: matching requests, shared devices, consumed counters.

Nodes with the same devices in the same order share one `NodeDevices`, whatever the devices' names, so that
equal nodes are computed once. Sets of devices are bit masks: bit i is device i, in the order of `devices`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.devices.claims import Claims
from planner.devices.device import Device, Value, own_name
from planner.devices.device_masks import CounterUse, bits
from planner.devices.pools import labelled_devices, pool_of, pools_of
from planner.devices.selectors import SelectorEngine, meets_selector
from planner.devices.slices import DeviceId, NodeSlices, Offer
from planner.model.claim_spec import UNKNOWN, DeviceRequest
from planner.model.labels import Taint, Toleration, tolerates
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.resources import CLAIMED_GPU, PRODUCT_LABEL

_NO_EFFECT = ("NoSchedule", "NoExecute")
"""Effects of taints that keep claims away; others are for people to read."""


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """One device of a node.

    `unique_attributes`: attributes that distinguish it from equal devices, with values as numbers: equal
    numbers are equal values. `consumes_counters`: of the node's counters.
    """

    device: Device
    unique_attributes: tuple[tuple[str, int], ...] = ()
    consumes_counters: CounterUse = ()
    taints: tuple[Taint, ...] = ()

    def value(self, attribute: str) -> tuple[str, Value] | None:
        """A value that stands for the attribute (by its full name) in comparisons; None where absent."""
        for name, number in self.unique_attributes:
            if name == attribute:
                return "", number
        value = self.device.attribute(own_name(attribute, self.device.driver))
        return None if value is None else (type(value).__name__, value)


@dataclass(frozen=True, slots=True, eq=False)
class NodeDevices:
    """The devices of equal nodes, and the amounts of their counters. `pools`: device count by pool.

    `_matching` and `_available` cache answers. Their size is bounded by the requests and masks in use, and
    they are freed with the last snapshot that has such nodes.
    """

    devices: tuple[NodeDevice, ...]
    counters: tuple[int, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict)
    engine: SelectorEngine | None = None
    _matching: dict[DeviceRequest, tuple[int, int]] = field(default_factory=dict, repr=False)
    _available: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def all(self) -> int:
        """The mask of every device."""
        return (1 << len(self.devices)) - 1

    def matching(self, request: DeviceRequest) -> tuple[int, int]:
        """The devices that match a request (an expression that cannot be evaluated counts as matching), and
        those of them with tolerated taints.
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

    def count(self, request: DeviceRequest) -> int:
        """How many devices a request takes here; more than there are where it can never be met."""
        selected, _ = self.matching(request)
        return request.count if request.count != UNKNOWN else selected.bit_count() or len(self.devices) + 1

    def counters_left(self, busy: int) -> list[int]:
        """The remaining amount of each counter besides the devices in use."""
        left = list(self.counters)
        for place in bits(busy):
            for counter, amount in self.devices[place].consumes_counters:
                left[counter] -= amount
        return left

    def available(self, busy: int) -> int:
        """The devices that are not in use and for which the counters suffice."""
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
        """The mask of whole GPUs."""
        return sum(
            1 << index for index, device in enumerate(self.devices) if pool_of(device.device) == CLAIMED_GPU
        )

    def unavailable_by_pool(self, busy: int) -> dict[str, int]:
        """Devices that cannot be allocated besides those in use, by pool; those in use count too."""
        shut = self.all & ~self.available(busy)
        return pools_of(self.devices[place].device for place in bits(shut)) if shut else {}


def meets(device: Device, request: DeviceRequest, engine: SelectorEngine | None) -> bool:
    """Whether a device matches a request; an expression that cannot be evaluated counts as matching."""
    if not all(meets_selector(engine, text, device) is not False for text in request.expressions):
        return False
    capacity = dict(device.capacity)
    return all(
        capacity.get(own_name(name, device.driver), -1) >= size for name, size in request.capacity_requests
    )


def _tolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    return all(
        taint.effect not in _NO_EFFECT or any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


class NodeDevicesByName:
    """By node name, the devices in ResourceSlices, and which of them are allocated.

    `former`: the instance for the former claims. Where ResourceSlices are unchanged, both share what follows
    from them alone, and fill the same dictionaries with the same values.
    """

    def __init__(self, claims: Claims, former: NodeDevicesByName | None = None) -> None:
        self._claims = claims
        unchanged = former is not None and former._claims.slices == claims.slices
        self._by_node: dict[str, NodeDevices | None] = former._by_node if unchanged and former else {}
        self._equal: dict[tuple[tuple[NodeDevice, ...], tuple[int, ...]], NodeDevices] = (
            former._equal if former else {}
        )
        self._places: dict[str, dict[DeviceId, int]] = former._places if unchanged and former else {}
        self._node_by_pool: dict[tuple[str, str], str] = former._node_by_pool if unchanged and former else {}
        self._allocated: dict[str, int] | None = None

    def of(self, node: str) -> NodeDevices | None:
        """The node's devices; None where its drivers offer none."""
        if node not in self._by_node:
            slices = self._claims.slices.by_node.get(node)
            self._by_node[node] = self._shared(slices) if slices else None
        return self._by_node[node]

    def _shared(self, slices: NodeSlices) -> NodeDevices | None:
        key = _canonical(slices)
        if not key[0]:
            return None
        if key not in self._equal:
            devices, counters = key
            pools = pools_of(device.device for device in devices)
            self._equal[key] = NodeDevices(devices, counters, pools, self._claims.engine)
        return self._equal[key]

    def allocated(self, node: str) -> int:
        """The mask of the node's devices that are allocated to claims."""
        if self._allocated is None:
            self._allocated = {}
            for claim in self._claims.claims.values():
                for device_id in claim.allocated:
                    owner = self.node_of(device_id)
                    place = self._place(owner, device_id) if owner else None
                    if place is not None:
                        self._allocated[owner] = self._allocated.get(owner, 0) | 1 << place
        return self._allocated.get(node, 0)

    def device(self, device_id: DeviceId) -> NodeDevice | None:
        """The device of this name, None where no node offers it."""
        owner = self.node_of(device_id)
        node_devices, place = (self.of(owner), self._place(owner, device_id)) if owner else (None, None)
        return node_devices.devices[place] if node_devices is not None and place is not None else None

    def node_of(self, device_id: DeviceId) -> str:
        """The node of a device, "" where it is unknown. Most drivers name a node's pool after the node."""
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
        if node not in self._places:
            slices = self._claims.slices.by_node[node]
            self._places[node] = {name: place for place, name in enumerate(_usable(slices))}
        return self._places[node].get(device_id)


def _usable(slices: NodeSlices) -> dict[DeviceId, Offer]:
    """The devices in order, without those that consume counters which no slice defines."""
    counters = slices.counters()
    usable = [
        (device_id, offer)
        for device_id, offer in slices.offers().items()
        if all((device_id[0], device_id[1], name) in counters for name, _ in offer.consumes_counters)
    ]
    return dict(sorted(usable, key=lambda pair: (pair[0][0], natural(pair[0][2]), pair[0][1])))


def _canonical(slices: NodeSlices) -> tuple[tuple[NodeDevice, ...], tuple[int, ...]]:
    """The devices and counters in a form that is identical for equal nodes.

    Names of counters and values of unique attributes become numbers, in order of first occurrence.
    """
    numbers: dict[tuple[str, Value], int] = {}
    counters: dict[tuple[DeviceId, str], int] = {}
    amounts: list[int] = []
    totals = slices.counters()
    devices = []
    for device_id, offer in _usable(slices).items():
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

    `devices`: how many of each a node has. `names`: the nodes' names. `products`: their GPU products.
    `node_devices`: set where the devices are known from ResourceSlices.
    """

    devices: Counter[Device]
    names: tuple[str, ...]
    products: frozenset[str]
    node_devices: NodeDevices | None = None


def kinds_by_slices(nodes: Iterable[Node], by_name: NodeDevicesByName) -> tuple[NodeKind, ...]:
    """Nodes grouped by the devices in their ResourceSlices."""
    nodes_by_devices: dict[NodeDevices, list[Node]] = {}
    for node in nodes:
        if node_devices := by_name.of(node.name):
            nodes_by_devices.setdefault(node_devices, []).append(node)
    return tuple(
        _node_kind(Counter(device.device for device in node_devices.devices), members, node_devices)
        for node_devices, members in nodes_by_devices.items()
    )


def kinds_by_labels(nodes: Iterable[Node]) -> tuple[NodeKind, ...]:
    """Nodes grouped by the devices that labels and allocatable amounts describe."""
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
