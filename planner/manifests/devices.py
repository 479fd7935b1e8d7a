"""Reads DRA objects: ResourceClaims, their templates, DeviceClasses, ComputeDomains, ResourceSlices and
DeviceTaintRules.

Sources: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`, devices with `basic`); `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod names only claims;
the class, the count and the constraints are fields of these objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from planner.devices.claims import ClaimRequest, DeviceClass, ResourceClaim
from planner.devices.device import SINGLE, Device, Value, Version, own_name
from planner.devices.slices import CHANNEL_DRIVER, Counters, DeviceId, Offer, Slice, TaintRule, sorted_taints
from planner.manifests.fields import integer, mapping, maps, strings, text
from planner.model.claim_spec import UNKNOWN, DeviceConstraint
from planner.model.errors import InputError, Where
from planner.model.labels import Taint, Toleration
from planner.model.pod import ClaimUse
from planner.model.quantity import amount


def claim_from(item: Mapping[str, object], where: Where) -> ResourceClaim:
    """Returns the content of a ResourceClaim or ResourceClaimTemplate. Raises `InputError` for a malformed
    one.
    """
    place = where.at_path("spec")
    spec = mapping(item.get("spec"), place)
    if "spec" in spec:  # a template's spec holds metadata and the claim's spec
        place = where.at_path("spec.spec")
        spec = mapping(spec.get("spec"), place)
    place = where.at_path(f"{place.field}.devices")
    devices = mapping(spec.get("devices"), place)
    requests = maps(devices.get("requests"), where.at_path(f"{place.field}.requests"))
    return ResourceClaim(
        tuple(
            _request(request, where.at_path(f"{place.field}.requests[{index}]"))
            for index, request in enumerate(requests)
        ),
        _allocated(item, where),
        tuple(_constraints(devices, requests, where.at_path(f"{place.field}.constraints"))),
    )


def _constraints(
    devices: Mapping[str, object], requests: Sequence[Mapping[str, object]], where: Where
) -> Iterator[DeviceConstraint]:
    """Yields the constraints of a claim. Each has the (request, alternative) indexes to which it applies; ()
    if it applies to all requests.
    """
    places = _places(requests, where)
    for index, constraint in enumerate(maps(devices.get("constraints"), where)):
        field_place = where.below(f"[{index}]")
        request_names = strings(constraint.get("requests"), field_place.below("requests"))
        for name in request_names:
            if name not in places:
                raise InputError(
                    f"no request of the claim is named {name!r}; there are {', '.join(places) or 'none'}",
                    field_place.below("requests"),
                )
        named_places = {place for name in request_names for place in places[name]}
        for key, distinct in (("matchAttribute", False), ("distinctAttribute", True)):
            if attribute := text(constraint.get(key), field_place.below(f"{key}")):
                yield DeviceConstraint(attribute, distinct, tuple(sorted(named_places)))


def _places(requests: Sequence[Mapping[str, object]], where: Where) -> dict[str, list[tuple[int, int]]]:
    """Returns by name (REQUEST or REQUEST/ALTERNATIVE) the pairs that the name refers to: the index of a
    request, and that of one of its alternatives (0 for a request without alternatives).
    """
    result: dict[str, list[tuple[int, int]]] = {}
    for index, request in enumerate(requests):
        name = text(request.get("name"), where)
        alternatives = maps(request.get("firstAvailable"), where)
        result[name] = [(index, place) for place in range(max(1, len(alternatives)))]
        for place, alternative in enumerate(alternatives):
            result[f"{name}/{text(alternative.get('name'), where)}"] = [(index, place)]
    return result


def _request(request: Mapping[str, object], where: Where) -> ClaimRequest:
    """Returns a request of a claim; if it has alternatives (`firstAvailable`), the first of them, with the
    later ones as `alternatives`.
    """
    exactly = mapping(request.get("exactly"), where.below("exactly"))
    place = where.below("firstAvailable")
    alternatives = [
        _devices(alternative, where.at_path(f"{place.field}[{index}]"))
        for index, alternative in enumerate(maps(request.get("firstAvailable"), place))
    ]
    if alternatives and not exactly:
        preferred, *later_alternatives = alternatives
        return replace(preferred, alternatives=tuple(later_alternatives))
    return _devices(exactly, where.below("exactly")) if exactly else _devices(request, where)


def _devices(wanted: Mapping[str, object], where: Where) -> ClaimRequest:
    """Returns the request in `exactly`, in an alternative, or in the flat form of v1beta1."""
    device_class = text(wanted.get("deviceClassName"), where.below("deviceClassName"))
    return ClaimRequest(
        device_class,
        _count(wanted, where),
        expressions(wanted.get("selectors"), where.below("selectors")),
        admin_access=wanted.get("adminAccess") is True,
        tolerations=tuple(_tolerations(wanted, where.below("tolerations"))),
        capacity_requests=_min_capacity(wanted, where.below("capacity.requests")),
    )


def _count(wanted: Mapping[str, object], where: Where) -> int:
    """Returns the number of devices of a request, 1 if it states none or 0; `UNKNOWN` for all devices."""
    mode = text(wanted.get("allocationMode"), where.below("allocationMode"))
    stated = integer(wanted.get("count"), where.below("count"))
    if mode not in ("", "ExactCount", "All"):
        raise InputError(f"expected ExactCount or All, found {mode!r}", where.below("allocationMode"))
    if stated < 0:
        raise InputError(f"expected a number above 0, found {stated}", where.below("count"))
    return UNKNOWN if mode == "All" else stated or 1


def _tolerations(wanted: Mapping[str, object], where: Where) -> Iterator[Toleration]:
    for toleration in maps(wanted.get("tolerations"), where):
        key, operator, value, effect = (
            text(toleration.get(name), where) for name in ("key", "operator", "value", "effect")
        )
        yield Toleration(key, operator or "Equal", value, effect)


def _min_capacity(request: Mapping[str, object], where: Where) -> tuple[tuple[str, int], ...]:
    requests = mapping(mapping(request.get("capacity"), where).get("requests"), where)
    return tuple(sorted((str(name), sized(size, where.below(f"{name}"))) for name, size in requests.items()))


def expressions(selectors: object, where: Where) -> tuple[str, ...]:
    """Returns the CEL expressions of a list of selectors. Raises `InputError` for a malformed one."""
    result = []
    for index, selector in enumerate(maps(selectors, where)):
        place = where.below(f"[{index}].cel")
        result.append(text(mapping(selector.get("cel"), place).get("expression"), place))
    return tuple(expression for expression in result if expression)


def _allocated(item: Mapping[str, object], where: Where) -> tuple[DeviceId, ...]:
    """Returns the devices allocated to a claim, without those for admin access, which takes no device."""
    place = where.at_path("status.allocation.devices.results")
    status = mapping(item.get("status"), where.at_path("status"))
    allocation = mapping(status.get("allocation"), where.at_path("status.allocation"))
    devices = mapping(allocation.get("devices"), where.at_path("status.allocation.devices"))
    return tuple(
        (
            text(result.get("driver"), place),
            text(result.get("pool"), place),
            text(result.get("device"), place),
        )
        for result in maps(devices.get("results"), place)
        if result.get("adminAccess") is not True
    )


def uses_from(spec: Mapping[str, object], status: Mapping[str, object], where: Where) -> tuple[ClaimUse, ...]:
    """Returns the claims and claim templates that a pod's spec names. Each has the name of the claim that was
    generated for the pod, from the pod's status; "" if the status names none.
    """
    place = where.below("resourceClaims")
    claim_names = {
        text(status_entry.get("name"), place): text(status_entry.get("resourceClaimName"), place)
        for status_entry in maps(status.get("resourceClaimStatuses"), place)
    }
    result = []
    for entry in maps(spec.get("resourceClaims"), place):
        template = text(entry.get("resourceClaimTemplateName"), place)
        source = template or text(entry.get("resourceClaimName"), place)
        if source:
            result.append(
                ClaimUse(source, bool(template), claim_names.get(text(entry.get("name"), place), ""))
            )
    return tuple(result)


def extended_claim(status: Mapping[str, object], where: Where) -> str:
    """Returns the name of the claim generated for a pod's extended resources, from the pod's status; "" for
    none.
    """
    place = where.at_path("status.extendedResourceClaimStatus")
    return text(mapping(status.get("extendedResourceClaimStatus"), place).get("resourceClaimName"), place)


def class_from(item: Mapping[str, object], where: Where) -> DeviceClass:
    """Returns a DeviceClass. Raises `InputError` for a malformed one."""
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    spec = mapping(item.get("spec"), where.at_path("spec"))
    return DeviceClass(
        expressions(spec.get("selectors"), where.at_path("spec.selectors")),
        text(spec.get("extendedResourceName"), where.at_path("spec.extendedResourceName")),
        str(metadata.get("creationTimestamp") or ""),
    )


def domain_template(item: Mapping[str, object], where: Where) -> str:
    """Returns the name of the ResourceClaimTemplate that a ComputeDomain generates for its channel; "" if it
    names none. Raises `InputError`.
    """
    spec = mapping(item.get("spec"), where.at_path("spec"))
    channel = mapping(spec.get("channel"), where.at_path("spec.channel"))
    template = mapping(
        channel.get("resourceClaimTemplate"), where.at_path("spec.channel.resourceClaimTemplate")
    )
    return text(template.get("name"), where.at_path("spec.channel.resourceClaimTemplate.name"))


def slice_from(item: Mapping[str, object], where: Where) -> Slice:
    """Returns a ResourceSlice. Raises `InputError` for a malformed one."""
    spec = mapping(item.get("spec"), where.at_path("spec"))
    driver = text(spec.get("driver"), where.at_path("spec.driver"))
    pool = mapping(spec.get("pool"), where.at_path("spec.pool"))
    offers, counters = {}, {}
    if driver != CHANNEL_DRIVER:
        for index, device in enumerate(maps(spec.get("devices"), where.at_path("spec.devices"))):
            place = where.at_path(f"spec.devices[{index}]")
            offers[text(device.get("name"), place)] = _offer(device, driver, place)
        for index, counter_set in enumerate(
            maps(spec.get("sharedCounters"), where.at_path("spec.sharedCounters"))
        ):
            place = where.at_path(f"spec.sharedCounters[{index}]")
            counters[text(counter_set.get("name"), place)] = _counters(counter_set, place)
    return Slice(
        text(spec.get("nodeName"), where.at_path("spec.nodeName")),
        driver,
        text(pool.get("name"), where.at_path("spec.pool.name")),
        integer(pool.get("generation"), where.at_path("spec.pool.generation")),
        offers,
        counters,
        integer(pool.get("resourceSliceCount"), where.at_path("spec.pool.resourceSliceCount")),
    )


def _offer(device: Mapping[str, object], driver: str, where: Where) -> Offer:
    """Returns a device of a ResourceSlice. Attributes that distinguish it from equal devices, for example its
    serial number (`SINGLE`), are kept apart from the others.
    """
    basic = device  # v1beta1 has the content of a device in the field `basic`
    if "basic" in device:
        basic = mapping(device["basic"], where.below("basic"))
    attributes: dict[str, Value] = {}
    marks: dict[str, Value] = {}
    for name, typed in mapping(basic.get("attributes"), where.below("attributes")).items():
        full_name = own_name(name, driver)
        if (value := _value(typed, name, where)) is not None:
            if full_name.rpartition("/")[2] in SINGLE:
                marks[full_name if "/" in full_name else f"{driver}/{full_name}"] = value
            else:
                attributes[full_name] = value
    capacity = {}
    for name, stated in mapping(basic.get("capacity"), where.below("capacity")).items():
        size = stated.get("value") if isinstance(stated, Mapping) else stated
        capacity[own_name(name, driver)] = _sized(size, where, "capacity", name)
    shareable = basic.get("allowMultipleAllocations") is True
    kind = _equal(driver, tuple(sorted(attributes.items())), tuple(sorted(capacity.items())), shareable)
    draws = tuple(
        (text(consumption.get("counterSet"), where), _counters(consumption, where))
        for consumption in maps(basic.get("consumesCounters"), where.below("consumesCounters"))
    )
    return Offer(kind, tuple(sorted(marks.items())), draws, _taints(basic, where))


def _taints(basic: Mapping[str, object], where: Where) -> tuple[Taint, ...]:
    if not basic.get("taints"):
        return ()
    place = where.below("taints")
    return sorted_taints(_taint(entry, place) for entry in maps(basic.get("taints"), place))


def _taint(entry: Mapping[str, object], where: Where) -> Taint:
    return Taint(*(text(entry.get(name), where) for name in ("key", "value", "effect")))


def taint_rule_from(item: Mapping[str, object], where: Where) -> TaintRule | None:
    """Returns a DeviceTaintRule; None for one without a selector, which is about no device, and for one that
    selects by class or CEL expression (until Kubernetes 1.34), which is not read.
    """
    place = where.at_path("spec.deviceSelector")
    spec = mapping(item.get("spec"), where.at_path("spec"))
    taint = _taint(mapping(spec.get("taint"), where.at_path("spec.taint")), where.at_path("spec.taint"))
    selector = mapping(spec.get("deviceSelector"), place)
    if spec.get("deviceSelector") is None or not selector.keys() <= {"driver", "pool", "device"}:
        return None
    driver, pool, device = (
        None if selector.get(key) is None else text(selector[key], place.below(key))
        for key in ("driver", "pool", "device")
    )
    return TaintRule(taint, driver, pool, device)


def _counters(entry: Mapping[str, object], where: Where) -> Counters:
    result = []
    for name, stated in mapping(entry.get("counters"), where).items():
        size = stated.get("value") if isinstance(stated, Mapping) else stated
        result.append((str(name), _sized(size, where, "counters", name)))
    return tuple(sorted(result))


def _sized(size: object, where: Where, field: str, name: object) -> int:
    """Returns the same as `sized`, but formats the field's path only for an error, because this function runs
    for every counter and capacity of every device.
    """
    try:
        return _bytes(str(size))
    except InputError as error:
        raise InputError(error.message, where.below(f"{field}.{name}")) from None


@lru_cache(maxsize=1024)  # a cluster has a few dozen kinds of devices
def _equal(
    driver: str,
    attributes: tuple[tuple[str, Value], ...],
    capacity: tuple[tuple[str, int], ...],
    shareable: bool,
) -> Device:
    """Returns a record that all equal devices share, to save memory."""
    return Device(driver, attributes, capacity, shareable, complete=True)


@lru_cache(maxsize=1024)  # and few sizes of their memory
def _bytes(size: str) -> int:
    return amount("memory", size, Where(), up=False)


def sized(size: object, where: Where) -> int:
    """Returns a capacity or counter amount in base units. Raises `InputError` for an invalid quantity."""
    try:
        return _bytes(str(size))
    except InputError as error:
        raise InputError(error.message, where) from None


def _value(typed: object, name: object, where: Where) -> Value | None:
    if not isinstance(typed, Mapping):
        typed = mapping(typed, where.below(f"attributes.{name}"))
    for kind in ("string", "version", "int", "bool"):
        value = typed.get(kind)
        if isinstance(value, (str, int)):
            return Version(value) if kind == "version" and isinstance(value, str) else value
    return None
