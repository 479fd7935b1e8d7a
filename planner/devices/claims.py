"""ResourceClaims, ResourceClaimTemplates, DeviceClasses and ComputeDomains as records (DRA); no I/O.

Source: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`); NVIDIA's device classes; `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod names only
claims; the class, the count and the constraints are fields of these objects.
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
"""NVIDIA's DeviceClasses whose devices are GPUs or parts of a GPU."""


CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
"""The DeviceClass of a ComputeDomain's channel. A channel is not a GPU; it allows a pod to use the NVLink
connections between compute trays.
"""


CLAIM_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain")
"""The kinds that define device claims; manifests of workloads may contain them too."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request for `count` devices of a class; -1 for all matching devices of the node.

    `selectors`: CEL expressions, all of which a device must meet. `alternatives`: further requests, any of
    which may be met instead, in order of preference. `admin_access`: the request monitors devices and takes
    none (`adminAccess`). `tolerations`: tolerated device taints. `capacity_requests`: minimum capacity of
    each device, in base units (`capacity.requests`).
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

    `allocated`: the devices allocated to the claim, each as driver, pool and name. `constraints`: attributes
    for which its devices must have equal, or different, values.
    """

    requests: tuple[ClaimRequest, ...]
    allocated: tuple[DeviceId, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """The selectors of a DeviceClass, and the extended resource that it offers ("" for none).

    `created`: the creation time. If two classes offer one extended resource, the newer one is used.
    """

    selectors: tuple[str, ...] = ()
    extended: str = ""
    created: str = ""


@dataclass(frozen=True, slots=True)
class Claims:
    """The cluster's claim objects by NAMESPACE/NAME.

    `domains`: for each ComputeDomain, the name of its ResourceClaimTemplate for channels. `slices`: the
    devices in ResourceSlices. `classes`: DeviceClasses by name. `engine`: evaluates selectors; without an
    engine, every device matches every selector.
    """

    claims: Mapping[str, ResourceClaim]
    templates: Mapping[str, ResourceClaim]
    domains: Mapping[str, str]
    slices: Slices = NO_SLICES
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    engine: SelectorEngine | None = None

    @property
    def extended(self) -> list[str]:
        """The extended resources that DeviceClasses name (`extendedResourceName`)."""
        return [device_class.extended for device_class in self.classes.values() if device_class.extended]

    def overlaid_with(self, overrides: Claims) -> Claims:
        """Returns the union of both; if both have an entry, that of `overrides` counts. `slices` and `engine`
        are not combined: those of `overrides` count if set.
        """
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
    """Returns the claims and templates that a bound pod names, and the claims generated for it, as
    NAMESPACE/NAME.
    """
    namespace = namespace_of(pod.name)
    return {f"{namespace}/{name}" for use in pod.claims for name in (use.source, use.resource_claim) if name}
