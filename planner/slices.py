"""ResourceSlices: the devices that drivers offer, node by node.

Source: `resource.k8s.io` ResourceSlice (v1, v1beta2; v1beta1 with `basic`). A pool's devices, and counters
that they share, may stand in several slices; only those of the newest generation count. NVIDIA's driver
writes the counters of all GPUs into one slice and each GPU's devices into another (Kubernetes 1.35 and later;
before, both stood in one).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from planner.errors import InputError, Where
from planner.quantity import amount
from planner.reading import integer, mapping, maps, text
from planner.selectors import SINGLE, Device, Value

CHANNEL_DRIVER = "compute-domain.nvidia.com"
"""Its devices, the channels of ComputeDomains, are thousands a node and no GPUs: they are left out."""

DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""
Counters = tuple[tuple[str, int], ...]
"""Amounts by the name of the counter."""
Taint = tuple[str, str, str]
"""Key, value and effect."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One device as a slice offers it: its kind, and what is its own.

    `marks`: attributes that tell it from its equals, by full name. `draws`: by counter set what it consumes
    of the counters that several devices share.
    """

    device: Device
    marks: tuple[tuple[str, Value], ...] = ()
    draws: tuple[tuple[str, Counters], ...] = ()
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """One ResourceSlice. `node` "" where it is not one node's. `counters`: by counter set."""

    node: str
    driver: str
    pool: str
    generation: int = 0
    offers: Mapping[str, Offer] = field(default_factory=dict)
    counters: Mapping[str, Counters] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeSlices:
    """What a node's drivers offer, slice by slice. What they come to together is put together when asked for:
    of most nodes nobody asks anew when some claim has changed."""

    slices: tuple[Slice, ...] = ()

    def offers(self) -> dict[DeviceId, Offer]:
        """The devices."""
        return {(s.driver, s.pool, name): offer for s in self.slices for name, offer in s.offers.items()}

    def counters(self) -> dict[DeviceId, Counters]:
        """The counters that devices share, by driver, pool and counter set."""
        return {(s.driver, s.pool, name): some for s in self.slices for name, some in s.counters.items()}


@dataclass(frozen=True, slots=True)
class Slices:
    """All that slices offer, by node. `afar`: kinds of devices that are not one node's and not counted."""

    by_node: Mapping[str, NodeSlices] = field(default_factory=dict)
    afar: frozenset[Device] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.by_node)


NO_SLICES = Slices()


def gathered(slices: Iterable[Slice]) -> Slices:
    """What these slices offer together; those of older generations of a pool are left out."""
    known = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for one in known:
        newest[one.driver, one.pool] = max(one.generation, newest.get((one.driver, one.pool), 0))
    nodes: dict[str, list[Slice]] = {}
    afar: set[Device] = set()
    for one in known:
        if one.generation < newest[one.driver, one.pool]:
            continue
        if one.node:
            nodes.setdefault(one.node, []).append(one)
        else:
            afar.update(offer.device for offer in one.offers.values())
    return Slices({node: NodeSlices(tuple(some)) for node, some in nodes.items()}, frozenset(afar))


def slice_from(item: Mapping[str, object], where: Where) -> Slice:
    """A ResourceSlice. Raises `InputError` for a malformed one."""
    spec = mapping(item.get("spec"), where.at("spec"))
    driver = text(spec.get("driver"), where.at("spec.driver"))
    pool = mapping(spec.get("pool"), where.at("spec.pool"))
    offers, counters = {}, {}
    if driver != CHANNEL_DRIVER:
        for index, device in enumerate(maps(spec.get("devices"), where.at("spec.devices"))):
            at = where.at(f"spec.devices[{index}]")
            offers[text(device.get("name"), at)] = _offer(device, driver, at)
        for index, one in enumerate(maps(spec.get("sharedCounters"), where.at("spec.sharedCounters"))):
            at = where.at(f"spec.sharedCounters[{index}]")
            counters[text(one.get("name"), at)] = _counters(one, at)
    return Slice(
        text(spec.get("nodeName"), where.at("spec.nodeName")),
        driver,
        text(pool.get("name"), where.at("spec.pool.name")),
        integer(pool.get("generation"), where.at("spec.pool.generation")),
        offers,
        counters,
    )


def _offer(device: Mapping[str, object], driver: str, where: Where) -> Offer:
    basic = device
    if "basic" in device:
        basic = mapping(device["basic"], where.at(f"{where.field}.basic"))
    attributes: dict[str, Value] = {}
    marks: dict[str, Value] = {}
    for name, typed in mapping(basic.get("attributes"), where.at(f"{where.field}.attributes")).items():
        own = own_name(name, driver)
        if (value := _value(typed, name, where)) is not None:
            if own.rpartition("/")[2] in SINGLE:
                marks[own if "/" in own else f"{driver}/{own}"] = value
            else:
                attributes[own] = value
    capacity = {}
    for name, stated in mapping(basic.get("capacity"), where.at(f"{where.field}.capacity")).items():
        size = stated.get("value") if isinstance(stated, Mapping) else stated
        capacity[own_name(name, driver)] = _sized(size, where, "capacity", name)
    shareable = basic.get("allowMultipleAllocations") is True
    kind = _equal(driver, tuple(sorted(attributes.items())), tuple(sorted(capacity.items())), shareable)
    draws = tuple(
        (text(one.get("counterSet"), where), _counters(one, where))
        for one in maps(basic.get("consumesCounters"), where.at(f"{where.field}.consumesCounters"))
    )
    return Offer(kind, tuple(sorted(marks.items())), draws, _taints(basic, where))


def _taints(basic: Mapping[str, object], where: Where) -> tuple[Taint, ...]:
    if not basic.get("taints"):
        return ()
    at = where.at(f"{where.field}.taints")
    found = [
        (text(one.get("key"), at), text(one.get("value"), at), text(one.get("effect"), at))
        for one in maps(basic.get("taints"), at)
    ]
    return tuple(sorted(found))


def _counters(one: Mapping[str, object], where: Where) -> Counters:
    found = []
    for name, stated in mapping(one.get("counters"), where).items():
        size = stated.get("value") if isinstance(stated, Mapping) else stated
        found.append((str(name), _sized(size, where, "counters", name)))
    return tuple(sorted(found))


def _sized(size: object, where: Where, field: str, name: object) -> int:
    """The same as `sized`, of a field whose place is put into words where it is wrong only."""
    try:
        return _bytes(str(size))
    except InputError as error:
        raise InputError(error.message, where.at(f"{where.field}.{field}.{name}")) from None


@lru_cache(maxsize=1024)
def _equal(
    driver: str,
    attributes: tuple[tuple[str, Value], ...],
    capacity: tuple[tuple[str, int], ...],
    shareable: bool,
) -> Device:
    """The one device for all that are equal."""
    return Device(driver, attributes, capacity, shareable, complete=True)


@lru_cache(maxsize=1024)
def _bytes(size: str) -> int:
    return amount("memory", size, Where(), up=False)


def sized(size: object, where: Where) -> int:
    """A capacity, or an amount of a counter, in base units. Raises `InputError` for what is no quantity."""
    try:
        return _bytes(str(size))
    except InputError as error:
        raise InputError(error.message, where) from None


def own_name(name: object, driver: str) -> str:
    """The name without the driver's own domain."""
    return str(name).removeprefix(driver + "/")


def _value(typed: object, name: object, where: Where) -> Value | None:
    if not isinstance(typed, Mapping):
        typed = mapping(typed, where.at(f"{where.field}.attributes.{name}"))
    for kind in ("string", "version", "int", "bool"):
        value = typed.get(kind)
        if isinstance(value, (str, int)):
            return value
    return None
