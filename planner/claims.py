"""Devices asked for by claim (dynamic resource allocation): what ResourceClaims and their templates ask for.

Source: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`); NVIDIA's device classes; `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod names only
claims; the class, the count and the constraints stand in these objects. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.bundles import UNKNOWN, Rule, Toleration
from planner.errors import InputError, Where
from planner.reading import integer, mapping, maps, strings, text
from planner.slices import NO_SLICES, DeviceId, Slices, sized

GPU_CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")
"""Classes whose devices are GPUs or parts of one."""
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
"""The class of a ComputeDomain's channel; no GPU, but the right to use NVLink between trays."""
CLAIM_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain")
"""Objects that say what claims mean, and that come with the workloads."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """`count` devices of a class; -1 for all that the node has.

    `selectors`: CEL expressions that each of them must meet. `others`: alternatives, in order of preference.
    `watching`: it only looks at devices (`adminAccess`), and takes none. `tolerations`: of taints of devices.
    `least`: capacities that each device must have, in base units (`capacity.requests`).
    """

    device_class: str
    count: int
    selectors: tuple[str, ...] = ()
    others: tuple[DeviceRequest, ...] = ()
    watching: bool = False
    tolerations: tuple[Toleration, ...] = ()
    least: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim or ResourceClaimTemplate. Of alternatives (`firstAvailable`) the first comes first.

    `allocated`: the devices that a claim has been given, with their driver, pool and name. `rules`: what its
    devices must have in common, or must not.
    """

    requests: tuple[DeviceRequest, ...]
    allocated: tuple[DeviceId, ...] = ()
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """What a class asks of its devices, and the extended resource that they serve as, "" for none of its own.

    `created`: of two classes for one resource the younger holds.
    """

    selectors: tuple[str, ...] = ()
    extended: str = ""
    created: str = ""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod names: a template's name, or a ResourceClaim's (`template` False).

    `made`: the ResourceClaim that was made from the template for this very pod, "" where none is known.
    """

    source: str
    template: bool
    made: str = ""


@dataclass(frozen=True, slots=True)
class Claims:
    """What the cluster says, by NAMESPACE/NAME. `domains`: each ComputeDomain's template.

    `slices`: what the ResourceSlices offer. `classes`: each DeviceClass, by its name.
    """

    claims: Mapping[str, Claim]
    templates: Mapping[str, Claim]
    domains: Mapping[str, str]
    slices: Slices = NO_SLICES
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)

    @property
    def extended(self) -> list[str]:
        """The extended resources that classes name."""
        return [one.extended for one in self.classes.values() if one.extended]

    def beside(self, others: Claims) -> Claims:
        """These and the others, which hold where both say something."""
        return Claims(
            {**self.claims, **others.claims},
            {**self.templates, **others.templates},
            {**self.domains, **others.domains},
            others.slices or self.slices,
            {**self.classes, **others.classes},
        )


NO_CLAIMS = Claims({}, {}, {})


def claim_from(item: Mapping[str, object], where: Where) -> Claim:
    """What a ResourceClaim, or the template of one, asks for. Raises `InputError` for a malformed one."""
    at = where.at("spec")
    spec = mapping(item.get("spec"), at)
    if "spec" in spec:  # a template's spec holds metadata and the claim's spec
        at = where.at("spec.spec")
        spec = mapping(spec.get("spec"), at)
    at = where.at(f"{at.field}.devices")
    devices = mapping(spec.get("devices"), at)
    requests = maps(devices.get("requests"), where.at(f"{at.field}.requests"))
    return Claim(
        tuple(
            _request(request, where.at(f"{at.field}.requests[{index}]"))
            for index, request in enumerate(requests)
        ),
        _allocated(item, where),
        tuple(_rules(devices, requests, where.at(f"{at.field}.constraints"))),
    )


def _rules(
    devices: Mapping[str, object], requests: Sequence[Mapping[str, object]], where: Where
) -> Iterator[Rule]:
    """The constraints, each with the requests, or alternatives of them, that it names; none named is all."""
    places = _places(requests, where)
    for index, one in enumerate(maps(devices.get("constraints"), where)):
        at = where.at(f"{where.field}[{index}]")
        named = strings(one.get("requests"), at.at(f"{at.field}.requests"))
        for name in named:
            if name not in places:
                raise InputError(
                    f"no request of the claim is named {name!r}; there are {', '.join(places) or 'none'}",
                    at.at(f"{at.field}.requests"),
                )
        whose = {place for name in named for place in places[name]}
        for key, distinct in (("matchAttribute", False), ("distinctAttribute", True)):
            if attribute := text(one.get(key), at.at(f"{at.field}.{key}")):
                yield Rule(attribute, distinct, tuple(sorted(whose)))


def _places(requests: Sequence[Mapping[str, object]], where: Where) -> dict[str, list[tuple[int, int]]]:
    """Requests by name, and their alternatives by REQUEST/NAME, as places among requests and alternatives."""
    found: dict[str, list[tuple[int, int]]] = {}
    for index, request in enumerate(requests):
        name = text(request.get("name"), where)
        others = maps(request.get("firstAvailable"), where)
        found[name] = [(index, place) for place in range(max(1, len(others)))]
        for place, other in enumerate(others):
            found[f"{name}/{text(other.get('name'), where)}"] = [(index, place)]
    return found


def _request(request: Mapping[str, object], where: Where) -> DeviceRequest:
    exactly = mapping(request.get("exactly"), where.at(f"{where.field}.exactly"))
    at = where.at(f"{where.field}.firstAvailable")
    alternatives = [
        _devices(one, where.at(f"{at.field}[{index}]"))
        for index, one in enumerate(maps(request.get("firstAvailable"), at))
    ]
    if alternatives and not exactly:
        first, *others = alternatives
        return replace(first, others=tuple(others))
    return _devices(exactly or request, where)


def _devices(wanted: Mapping[str, object], where: Where) -> DeviceRequest:
    everything = text(wanted.get("allocationMode"), where.at(f"{where.field}.allocationMode")) == "All"
    stated = integer(wanted.get("count"), where.at(f"{where.field}.count"))
    device_class = text(wanted.get("deviceClassName"), where.at(f"{where.field}.deviceClassName"))
    return DeviceRequest(
        device_class,
        UNKNOWN if everything else stated or 1,
        expressions(wanted.get("selectors"), where.at(f"{where.field}.selectors")),
        watching=wanted.get("adminAccess") is True,
        tolerations=tuple(_tolerations(wanted, where.at(f"{where.field}.tolerations"))),
        least=_least(wanted, where.at(f"{where.field}.capacity.requests")),
    )


def _tolerations(wanted: Mapping[str, object], where: Where) -> Iterator[Toleration]:
    for one in maps(wanted.get("tolerations"), where):
        key, operator, value, effect = (
            text(one.get(name), where) for name in ("key", "operator", "value", "effect")
        )
        yield key, operator or "Equal", value, effect


def _least(wanted: Mapping[str, object], where: Where) -> tuple[tuple[str, int], ...]:
    asked = mapping(mapping(wanted.get("capacity"), where).get("requests"), where)
    return tuple(
        sorted((str(name), sized(size, where.at(f"{where.field}.{name}"))) for name, size in asked.items())
    )


def expressions(selectors: object, where: Where) -> tuple[str, ...]:
    """The CEL expressions of a list of selectors. Raises `InputError` for a malformed one."""
    found = []
    for index, selector in enumerate(maps(selectors, where)):
        at = where.at(f"{where.field}[{index}].cel")
        found.append(text(mapping(selector.get("cel"), at).get("expression"), at))
    return tuple(expression for expression in found if expression)


def _allocated(item: Mapping[str, object], where: Where) -> tuple[DeviceId, ...]:
    at = where.at("status.allocation.devices.results")
    status = mapping(item.get("status"), where.at("status"))
    allocation = mapping(status.get("allocation"), where.at("status.allocation"))
    devices = mapping(allocation.get("devices"), where.at("status.allocation.devices"))
    return tuple(
        (text(one.get("driver"), at), text(one.get("pool"), at), text(one.get("device"), at))
        for one in maps(devices.get("results"), at)
        if one.get("adminAccess") is not True
    )


def uses_from(spec: Mapping[str, object], status: Mapping[str, object], where: Where) -> tuple[ClaimUse, ...]:
    """The claims that a pod names in its spec, each with what its status says was made of it."""
    at = where.at(f"{where.field}.resourceClaims")
    made = {
        text(one.get("name"), at): text(one.get("resourceClaimName"), at)
        for one in maps(status.get("resourceClaimStatuses"), at)
    }
    found = []
    for entry in maps(spec.get("resourceClaims"), at):
        template = text(entry.get("resourceClaimTemplateName"), at)
        source = template or text(entry.get("resourceClaimName"), at)
        if source:
            found.append(ClaimUse(source, bool(template), made.get(text(entry.get("name"), at), "")))
    return tuple(found)


def extended_claim(status: Mapping[str, object], where: Where) -> str:
    """The claim that was made for a pod's extended resources, by the pod's status; "" for none."""
    at = where.at("status.extendedResourceClaimStatus")
    return text(mapping(status.get("extendedResourceClaimStatus"), at).get("resourceClaimName"), at)


def class_from(item: Mapping[str, object], where: Where) -> DeviceClass:
    """A DeviceClass. Raises `InputError` for a malformed one."""
    metadata = mapping(item.get("metadata"), where.at("metadata"))
    spec = mapping(item.get("spec"), where.at("spec"))
    return DeviceClass(
        expressions(spec.get("selectors"), where.at("spec.selectors")),
        text(spec.get("extendedResourceName"), where.at("spec.extendedResourceName")),
        str(metadata.get("creationTimestamp") or ""),
    )


def domain_template(item: Mapping[str, object], where: Where) -> str:
    """The ResourceClaimTemplate that a ComputeDomain makes for its channel. Raises `InputError`."""
    spec = mapping(item.get("spec"), where.at("spec"))
    channel = mapping(spec.get("channel"), where.at("spec.channel"))
    template = mapping(channel.get("resourceClaimTemplate"), where.at("spec.channel.resourceClaimTemplate"))
    return text(template.get("name"), where.at("spec.channel.resourceClaimTemplate.name"))
