"""Devices asked for by claim (dynamic resource allocation): what ResourceClaims and their templates ask for.

Source: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`); NVIDIA's device classes; `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod names only
claims; the class and the count stand in these objects. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.errors import Where
from planner.reading import integer, mapping, maps, text

GPU_CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")
"""Classes whose devices are GPUs or parts of one."""
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
"""The class of a ComputeDomain's channel; no GPU, but the right to use NVLink between trays."""
UNKNOWN = -1
"""The count of `allocationMode: All`: as many as the node has."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """`count` devices of a class; -1 for all that the node has."""

    device_class: str
    count: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim or ResourceClaimTemplate. Of alternatives (`firstAvailable`) the first is read."""

    requests: tuple[DeviceRequest, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    """What the cluster says, by NAMESPACE/NAME. `domains`: each ComputeDomain's template."""

    claims: Mapping[str, Claim]
    templates: Mapping[str, Claim]
    domains: Mapping[str, str]


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
        )
    )


def _request(request: Mapping[str, object], where: Where) -> DeviceRequest:
    exactly = mapping(request.get("exactly"), where.at(f"{where.field}.exactly"))
    alternatives = maps(request.get("firstAvailable"), where.at(f"{where.field}.firstAvailable"))
    wanted = exactly or (alternatives[0] if alternatives else request)
    everything = text(wanted.get("allocationMode"), where.at(f"{where.field}.allocationMode")) == "All"
    stated = integer(wanted.get("count"), where.at(f"{where.field}.count"))
    device_class = text(wanted.get("deviceClassName"), where.at(f"{where.field}.deviceClassName"))
    return DeviceRequest(device_class, UNKNOWN if everything else stated or 1)


def domain_template(item: Mapping[str, object], where: Where) -> str:
    """The ResourceClaimTemplate that a ComputeDomain makes for its channel. Raises `InputError`."""
    spec = mapping(item.get("spec"), where.at("spec"))
    channel = mapping(spec.get("channel"), where.at("spec.channel"))
    template = mapping(channel.get("resourceClaimTemplate"), where.at("spec.channel.resourceClaimTemplate"))
    return text(template.get("name"), where.at("spec.channel.resourceClaimTemplate.name"))
