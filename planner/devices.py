"""The devices of nodes: read from ResourceSlices, or worked out from labels and allocatable amounts.

Source: `resource.k8s.io` ResourceSlice (v1, v1beta2; v1beta1 with `basic`) and NVIDIA's driver: attributes
`type` ("gpu", "mig", "vfio"), `productName`, `architecture`, `profile`, capacity `memory`.

Devices that are asked for by claim are resources of their own: `gpu.nvidia.com` for whole GPUs,
`mig.nvidia.com/PROFILE` for slices, and `mig.nvidia.com` for slices of any profile. A node that offers the
same GPUs through the device plugin has only one pool of them, `nvidia.com/gpu`: what is claimed is taken
from there, so that claims and limits never both get one GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from planner.claims import Claims, expressions
from planner.errors import InputError, Where
from planner.match import PRODUCT
from planner.node import Node
from planner.podgroup import MIG_PREFIX
from planner.quantity import Resources, amount
from planner.reading import mapping, maps, text
from planner.selectors import Device, Value

DRIVER = "gpu.nvidia.com"
GPU = "nvidia.com/gpu"
CLAIMED_GPU = "gpu.nvidia.com"
CLAIMED_MIG = "mig.nvidia.com"
"""Alone: a slice of any profile."""
COUNT_LABEL = "nvidia.com/gpu.count"
FAMILY_LABEL = "nvidia.com/gpu.family"
MEMORY_LABEL = "nvidia.com/gpu.memory"

_SINGULAR = ("uuid", "minor", "index", "pciBusID", "pcieBusID", "pcieRoot", "parentUUID", "parentIndex")
"""Attributes that tell one device from its equals; the plan looks at kinds of devices."""

Slice = Mapping[tuple[str, str], Device]
"""A driver's devices on a node, by pool and name."""


def is_claimed(resource: str) -> bool:
    """Whether the resource is one of those that claims ask for."""
    return resource == CLAIMED_GPU or resource.startswith(CLAIMED_MIG)


def plugin_name(resource: str) -> str:
    """The resource under which the device plugin gives what claims call `resource`."""
    if resource == CLAIMED_GPU:
        return GPU
    return MIG_PREFIX + resource.removeprefix(CLAIMED_MIG + "/").replace("+", ".")


def on_node(requests: Resources, offers: Resources) -> Resources:
    """The requests as this node counts them: what is claimed comes from its own pool, or the plugin's."""
    if not any(is_claimed(name) and name not in offers for name in requests):
        return requests
    found: dict[str, int] = {}
    for name, count in requests.items():
        if is_claimed(name) and name not in offers:
            if name == CLAIMED_MIG:
                continue  # the plugin's slices are counted by profile
            name = plugin_name(name)
        found[name] = found.get(name, 0) + count
    return found


def has(offers: Resources, resource: str) -> int:
    """How much of a resource there is, claims counted as `on_node` does."""
    known = resource in offers or not is_claimed(resource)
    return offers.get(resource if known else plugin_name(resource), 0)


def offered(node: Node, claims: Claims) -> Resources:
    """What the node gives, with the pools of devices that only claims can reach.

    Where some node has a ResourceSlice, a node without one has no driver for claims.
    """
    plugin = node.allocatable.get(GPU, 0)
    if not claims.devices:
        labelled = labelled_gpus(node)
        return {**node.allocatable, CLAIMED_GPU: labelled} if labelled and not plugin else node.allocatable
    pools: dict[str, int] = {CLAIMED_GPU: 0, CLAIMED_MIG: 0}
    for device in claims.devices.get(node.name, {}).values():
        if (name := pool_of(device)) and not device.partition:
            pools[name] = pools.get(name, 0) + 1
            if name.startswith(CLAIMED_MIG):
                pools[CLAIMED_MIG] += 1
    shared = [name for name, count in pools.items() if count and name != CLAIMED_MIG and _plugged(node, name)]
    return {**node.allocatable, **{name: count for name, count in pools.items() if name not in shared}}


def _plugged(node: Node, name: str) -> bool:
    return node.allocatable.get(plugin_name(name), 0) > 0


def labelled_gpus(node: Node) -> int:
    """Whole GPUs by the label of GPU feature discovery, 0 where MIG divides them."""
    text_ = node.labels.get(COUNT_LABEL, "")
    divided = "-MIG-" in node.labels.get(PRODUCT, "") or any(
        name.startswith(MIG_PREFIX) and count for name, count in node.allocatable.items()
    )
    return int(text_) if not divided and text_.isascii() and text_.isdecimal() and len(text_) < 5 else 0


def pool_of(device: Device) -> str:
    """The resource that a device counts as, "" where it is no GPU."""
    if device.driver != DRIVER:
        return ""
    kind = device.attribute("type")
    if kind == "mig":
        return f"{CLAIMED_MIG}/{device.attribute('profile')}"
    return CLAIMED_GPU if kind in ("gpu", "vfio", None) else ""


def devices_of(node: Node, claims: Claims) -> Counter[Device]:
    """The node's devices for claims, equal ones together; from its labels where no slice is known."""
    if claims.devices:
        return Counter(claims.devices.get(node.name, {}).values())
    found: Counter[Device] = Counter()
    if gpus := node.allocatable.get(GPU, 0) or labelled_gpus(node):
        found[Device(DRIVER, (("type", "gpu"), *_labelled(node)), _memory(node))] = gpus
    for name, count in node.allocatable.items():
        if name.startswith(MIG_PREFIX) and count > 0:
            profile = name.removeprefix(MIG_PREFIX).replace(".me", "+me")
            found[Device(DRIVER, (("type", "mig"), ("profile", profile), *_labelled(node)))] = count
    return found


def _labelled(node: Node) -> tuple[tuple[str, Value], ...]:
    product = node.labels.get(PRODUCT, "").replace("-", " ")
    family = node.labels.get(FAMILY_LABEL, "")
    architecture = "-".join(word.capitalize() for word in family.split("-"))
    return tuple(
        (name, value) for name, value in (("productName", product), ("architecture", architecture)) if value
    )


def _memory(node: Node) -> tuple[tuple[str, int], ...]:
    size = node.labels.get(MEMORY_LABEL, "")
    return (("memory", int(size) * 2**20),) if size.isascii() and size.isdecimal() and len(size) < 10 else ()


def slice_from(item: Mapping[str, object], where: Where) -> tuple[str, dict[tuple[str, str], Device]]:
    """The node of a ResourceSlice, "" where it is not one node's, and its GPUs. Raises `InputError`.

    Other drivers' devices (the channels of ComputeDomains are thousands a node) are left out; that the node
    has a slice still tells that GPUs by claim would have one.
    """
    spec = mapping(item.get("spec"), where.at("spec"))
    driver = text(spec.get("driver"), where.at("spec.driver"))
    pool = mapping(spec.get("pool"), where.at("spec.pool"))
    name = text(pool.get("name"), where.at("spec.pool.name"))
    found = {}
    devices = maps(spec.get("devices"), where.at("spec.devices")) if driver == DRIVER else ()
    for index, device in enumerate(devices):
        at = where.at(f"spec.devices[{index}]")
        found[name, text(device.get("name"), at)] = _device(device, driver, at)
    return text(spec.get("nodeName"), where.at("spec.nodeName")), found


def _device(device: Mapping[str, object], driver: str, where: Where) -> Device:
    basic = device
    if "basic" in device:
        basic = mapping(device["basic"], where.at(f"{where.field}.basic"))
    attributes = {}
    for name, typed in mapping(basic.get("attributes"), where.at(f"{where.field}.attributes")).items():
        own = _own(name, driver)
        if own.rpartition("/")[2] not in _SINGULAR and (value := _value(typed, name, where)) is not None:
            attributes[own] = value
    capacity = {}
    for name, stated in mapping(basic.get("capacity"), where.at(f"{where.field}.capacity")).items():
        size = stated.get("value") if isinstance(stated, Mapping) else stated
        capacity[_own(name, driver)] = _sized(size, name, where)
    partition = bool(basic.get("consumesCounters"))
    return _equal(driver, tuple(sorted(attributes.items())), tuple(sorted(capacity.items())), partition)


@lru_cache(maxsize=1024)
def _equal(
    driver: str, attributes: tuple[tuple[str, Value], ...], capacity: tuple[tuple[str, int], ...], part: bool
) -> Device:
    """The one device for all that are equal."""
    return Device(driver, attributes, capacity, part)


@lru_cache(maxsize=1024)
def _bytes(size: str) -> int:
    return amount("memory", size, Where(), up=False)


def _sized(size: object, name: object, where: Where) -> int:
    try:
        return _bytes(str(size))
    except InputError as error:
        raise InputError(error.message, where.at(f"{where.field}.capacity.{name}")) from None


def _own(name: object, driver: str) -> str:
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


def class_from(item: Mapping[str, object], where: Where) -> tuple[str, ...]:
    """What a DeviceClass asks of its devices. Raises `InputError` for a malformed one."""
    spec = mapping(item.get("spec"), where.at("spec"))
    return expressions(spec.get("selectors"), where.at("spec.selectors"))
