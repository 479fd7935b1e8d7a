"""Dynamic resource allocation: ResourceClaims, their templates and DeviceClasses as records. Pure.

Source: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`); NVIDIA's device classes; `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod names only
claims; class, count and constraints are fields of these objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.devices.selectors import SelectorEngine
from planner.devices.slices import NO_SLICES, DeviceId, Slices
from planner.model.claim_spec import DeviceConstraint
from planner.model.labels import Toleration
from planner.model.names import namespace_of
from planner.model.pod import BoundPod

GPU_CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")
"""Classes whose devices are GPUs or parts of one."""


CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
"""The class of a ComputeDomain's channel; no GPU, but the right to use NVLink between trays."""


CLAIM_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain")
"""Objects that say what claims mean, and that come with the workloads."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """`count` devices of a class; -1 for all devices of the node.

    `selectors`: CEL expressions that each device must meet. `alternatives`: further choices, in order of
    preference. `admin_access`: observes devices and takes none (`adminAccess`). `tolerations`: of device
    taints. `capacity_requests`: minimum capacity of each device, in base units (`capacity.requests`).
    """

    device_class: str
    count: int
    selectors: tuple[str, ...] = ()
    alternatives: tuple[ClaimRequest, ...] = ()
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity_requests: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A ResourceClaim or ResourceClaimTemplate.

    `allocated`: the devices allocated to a claim, with driver, pool and name. `constraints`: attributes that
    its devices must share, or must not.
    """

    requests: tuple[ClaimRequest, ...]
    allocated: tuple[DeviceId, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """What a class requires of its devices, and the extended resource that they also serve, "" for none.

    `created`: of two classes for one resource the newer is used.
    """

    selectors: tuple[str, ...] = ()
    extended: str = ""
    created: str = ""


@dataclass(frozen=True, slots=True)
class Claims:
    """The cluster's claim objects by NAMESPACE/NAME. `domains`: the template of each ComputeDomain.

    `slices`: the devices in ResourceSlices. `classes`: DeviceClasses by name. `engine`: evaluates selectors;
    without one every selector counts as matching.
    """

    claims: Mapping[str, ResourceClaim]
    templates: Mapping[str, ResourceClaim]
    domains: Mapping[str, str]
    slices: Slices = NO_SLICES
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    engine: SelectorEngine | None = None

    @property
    def extended(self) -> list[str]:
        """The extended resources that DeviceClasses serve."""
        return [device_class.extended for device_class in self.classes.values() if device_class.extended]

    def beside(self, overrides: Claims) -> Claims:
        """The union of both; `overrides` wins where both have an entry."""
        return Claims(
            {**self.claims, **overrides.claims},
            {**self.templates, **overrides.templates},
            {**self.domains, **overrides.domains},
            overrides.slices or self.slices,
            {**self.classes, **overrides.classes},
            overrides.engine or self.engine,
        )


NO_CLAIMS = Claims({}, {}, {})


def claim_names(pod: BoundPod) -> set[str]:
    """The claims and templates that a bound pod names, and the claims made for it, as NAMESPACE/NAME."""
    namespace = namespace_of(pod.name)
    return {f"{namespace}/{name}" for use in pod.claims for name in (use.source, use.resource_claim) if name}
