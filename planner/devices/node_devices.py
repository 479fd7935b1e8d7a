"""A node's devices as claims see them: which serve what, what they have in common, what they draw from.

Nodes with the same devices in the same order share one `NodeDevices`, whatever their devices are called;
so equal
nodes are looked at once.

Nodes with the same devices, which claims look at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.devices.claims import Claims
from planner.devices.pools import labelled_devices, pool_of, pools_of
from planner.devices.selectors import SelectorEngine, meets_selector
from planner.devices.slices import Device, DeviceId, NodeSlices, Offer, Value, own_name
from planner.model.claim_spec import UNKNOWN, DeviceRequest
from planner.model.labels import Taint, Toleration, tolerates
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.resources import CLAIMED_GPU, PRODUCT_LABEL

CounterUse = tuple[tuple[int, int], ...]
"""What a device consumes: the place of a counter, and how much of it."""


_NO_EFFECT = ("NoSchedule", "NoExecute")
"""Effects of taints that keep claims away; others are for people to read."""


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """One device of a node. `marks`: attributes that tell it from its equals; those that have the same number
    have the same value. `draws`: on the node's counters."""

    device: Device
    marks: tuple[tuple[str, int], ...] = ()
    draws: CounterUse = ()
    taints: tuple[Taint, ...] = ()

    def value(self, attribute: str) -> tuple[str, Value] | None:
        """What stands for the value of an attribute (by its full name), None where the device has none."""
        for name, number in self.marks:
            if name == attribute:
                return "", number
        value = self.device.attribute(own_name(attribute, self.device.driver))
        return None if value is None else (type(value).__name__, value)


@dataclass(frozen=True, slots=True, eq=False)
class NodeDevices:
    """The devices of nodes that are alike, and their counters. Masks have a bit for each device, in order."""

    units: tuple[NodeDevice, ...]
    counters: tuple[int, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict)
    engine: SelectorEngine | None = None
    _met: dict[DeviceRequest, tuple[int, int]] = field(default_factory=dict, repr=False)
    _open: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def all(self) -> int:
        """The mask of every device."""
        return (1 << len(self.units)) - 1

    def meeting(self, want: DeviceRequest) -> tuple[int, int]:
        """The devices that meet a want, or may (what is not understood is granted); and those of them that no
        taint keeps from it."""
        found = self._met.get(want)
        if found is None:
            selected = allowed = 0
            for place, unit in enumerate(self.units):
                if meets(unit.device, want, self.engine):
                    selected |= 1 << place
                    allowed |= _tolerated(unit.taints, want.tolerations) << place
            found = self._met[want] = selected, allowed
        return found

    def count(self, want: DeviceRequest) -> int:
        """How many devices a want takes here; more than there are where it can never be met."""
        selected, _ = self.meeting(want)
        return want.count if want.count != UNKNOWN else selected.bit_count() or len(self.units) + 1

    def left(self, busy: int) -> list[int]:
        """What is left of each counter beside the devices in use."""
        left = list(self.counters)
        for place in bits(busy):
            for counter, amount in self.units[place].draws:
                left[counter] -= amount
        return left

    def open(self, busy: int) -> int:
        """The devices that are not in use, and for which the counters have enough."""
        found = self._open.get(busy)
        if found is None:
            left, found = self.left(busy), 0
            for place, unit in enumerate(self.units):
                if not busy >> place & 1 and all(left[counter] >= amount for counter, amount in unit.draws):
                    found |= 1 << place
            self._open[busy] = found
        return found

    def gpus(self) -> int:
        """The mask of whole GPUs."""
        return sum(1 << place for place, unit in enumerate(self.units) if pool_of(unit.device) == CLAIMED_GPU)

    def blocked(self, busy: int) -> dict[str, int]:
        """By pool, the devices that cannot be given beside those in use, these included."""
        shut = self.all & ~self.open(busy)
        return pools_of(self.units[place].device for place in bits(shut)) if shut else {}


def bits(mask: int) -> Iterator[int]:
    """The places of the bits of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def meets(device: Device, want: DeviceRequest, engine: SelectorEngine | None) -> bool:
    """Whether a device meets a want, or may."""
    if not all(meets_selector(engine, text, device) is not False for text in want.expressions):
        return False
    capacity = dict(device.capacity)
    return all(capacity.get(own_name(name, device.driver), -1) >= size for name, size in want.least)


def _tolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    return all(
        taint.effect not in _NO_EFFECT or any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


class NodeDevicesByName:
    """The layout of each node that has ResourceSlices, and which of its devices claims have been given."""

    def __init__(self, claims: Claims, former: NodeDevicesByName | None = None) -> None:
        self._claims = claims
        same = former is not None and former._claims.slices == claims.slices
        self._by_node: dict[str, NodeDevices | None] = former._by_node if same and former else {}
        self._equal: dict[tuple[tuple[NodeDevice, ...], tuple[int, ...]], NodeDevices] = (
            former._equal if former else {}
        )
        self._places: dict[str, dict[DeviceId, int]] = former._places if same and former else {}
        self._homes: dict[tuple[str, str], str] = former._homes if same and former else {}
        self._given: dict[str, int] | None = None

    def of(self, node: str) -> NodeDevices | None:
        """The node's layout, None where its drivers offer nothing."""
        if node not in self._by_node:
            there = self._claims.slices.by_node.get(node)
            self._by_node[node] = self._laid(there) if there else None
        return self._by_node[node]

    def _laid(self, there: NodeSlices) -> NodeDevices | None:
        key = _canonical(there)
        if not key[0]:
            return None
        if key not in self._equal:
            units, counters = key
            self._equal[key] = NodeDevices(
                units, counters, pools_of(unit.device for unit in units), self._claims.engine
            )
        return self._equal[key]

    def given(self, node: str) -> int:
        """The mask of the node's devices that claims have been given."""
        if self._given is None:
            self._given = {}
            for claim in self._claims.claims.values():
                for one in claim.allocated:
                    home = self.home(one)
                    place = self._place(home, one) if home else None
                    if place is not None:
                        self._given[home] = self._given.get(home, 0) | 1 << place
        return self._given.get(node, 0)

    def unit(self, one: DeviceId) -> NodeDevice | None:
        """The device of this name, None where no node offers it."""
        home = self.home(one)
        layout, place = (self.of(home), self._place(home, one)) if home else (None, None)
        return layout.units[place] if layout is not None and place is not None else None

    def home(self, one: DeviceId) -> str:
        """The node of a device, "" where none is known. Most drivers call a node's pool by the node."""
        driver, pool, _ = one
        by_node = self._claims.slices.by_node
        if pool in by_node and self._place(pool, one) is not None:
            return pool
        if not self._homes:
            self._homes.update({(s.driver, s.pool): n for n, some in by_node.items() for s in some.slices})
        return self._homes.get((driver, pool), "")

    def _place(self, node: str, one: DeviceId) -> int | None:
        if node not in self._places:
            there = self._claims.slices.by_node[node]
            self._places[node] = {name: place for place, name in enumerate(_usable(there))}
        return self._places[node].get(one)


def _usable(there: NodeSlices) -> dict[DeviceId, Offer]:
    """The devices in their order; those that draw on counters of which no slice tells are none."""
    counters = there.counters()
    found = [
        (one, offer)
        for one, offer in there.offers().items()
        if all((one[0], one[1], which) in counters for which, _ in offer.draws)
    ]
    return dict(sorted(found, key=lambda pair: (pair[0][0], natural(pair[0][2]), pair[0][1])))


def _canonical(there: NodeSlices) -> tuple[tuple[NodeDevice, ...], tuple[int, ...]]:
    """The devices and counters by number: values and counters are counted as they are first met."""
    numbers: dict[tuple[str, Value], int] = {}
    counters: dict[tuple[DeviceId, str], int] = {}
    amounts: list[int] = []
    totals = there.counters()
    units = []
    for one, offer in _usable(there).items():
        marks = tuple((name, numbers.setdefault((name, value), len(numbers))) for name, value in offer.marks)
        draws: dict[int, int] = {}
        for which, some in offer.draws:
            owner = (one[0], one[1], which)
            offered = dict(totals[owner])
            for name, size in some:
                if not size:
                    continue
                if (owner, name) not in counters:
                    counters[owner, name] = len(amounts)
                    amounts.append(offered.get(name, 0))
                place = counters[owner, name]
                draws[place] = draws.get(place, 0) + size
        units.append(NodeDevice(offer.device, marks, tuple(sorted(draws.items())), offer.taints))
    return tuple(units), tuple(amounts)


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes with the same devices: how many there are of each, the nodes' names, their GPU products, and
    their layout where slices tell it."""

    devices: Counter[Device]
    names: tuple[str, ...]
    products: frozenset[str]
    layout: NodeDevices | None = None


def by_layout(nodes: Iterable[Node], layouts: NodeDevicesByName) -> tuple[Alike, ...]:
    """The kinds of nodes by the devices that slices tell."""
    found: dict[NodeDevices, list[Node]] = {}
    for node in nodes:
        if layout := layouts.of(node.name):
            found.setdefault(layout, []).append(node)
    return tuple(
        _alike(Counter(unit.device for unit in layout.units), there, layout)
        for layout, there in found.items()
    )


def by_labels(nodes: Iterable[Node]) -> tuple[Alike, ...]:
    """The kinds of nodes by the devices that labels tell."""
    found: dict[frozenset[tuple[Device, int]], list[Node]] = {}
    for node in nodes:
        if devices := labelled_devices(node):
            found.setdefault(frozenset(devices.items()), []).append(node)
    return tuple(_alike(Counter(dict(kinds)), there, None) for kinds, there in found.items())


def _alike(devices: Counter[Device], there: Sequence[Node], layout: NodeDevices | None) -> Alike:
    products = frozenset(node.labels.get(PRODUCT_LABEL, "") for node in there)
    return Alike(devices, tuple(node.name for node in there), products, layout)
