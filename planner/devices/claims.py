"""Devices asked for by claim (dynamic resource allocation): what ResourceClaims and their templates ask for.

Source: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`); NVIDIA's device classes; `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod names only
claims; the class, the count and the constraints stand in these objects. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.devices.selectors import SelectorEngine
from planner.devices.slices import NO_SLICES, DeviceId, Slices
from planner.model.claim_spec import DeviceConstraint
from planner.model.labels import Toleration
from planner.model.pod import BoundPod

GPU_CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")
"""Classes whose devices are GPUs or parts of one."""


CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
"""The class of a ComputeDomain's channel; no GPU, but the right to use NVLink between trays."""


CLAIM_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain")
"""Objects that say what claims mean, and that come with the workloads."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """`count` devices of a class; -1 for all that the node has.

    `selectors`: CEL expressions that each of them must meet. `alternatives`: others, in order of preference.
    `admin_access`: it only looks at devices (`adminAccess`), and takes none. `tolerations`: of device taints.
    `capacity_requests`: capacities that each device must have, in base units (`capacity.requests`).
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
    """A ResourceClaim or ResourceClaimTemplate. Of alternatives (`firstAvailable`) the first comes first.

    `allocated`: the devices that a claim has been given, with their driver, pool and name. `constraints`:
    what its devices must have in common, or must not.
    """

    requests: tuple[ClaimRequest, ...]
    allocated: tuple[DeviceId, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """What a class asks of its devices, and the extended resource that they serve as, "" for none of its own.

    `created`: of two classes for one resource the younger holds.
    """

    selectors: tuple[str, ...] = ()
    extended: str = ""
    created: str = ""


@dataclass(frozen=True, slots=True)
class Claims:
    """What the cluster says, by NAMESPACE/NAME. `domains`: each ComputeDomain's template.

    `slices`: what the ResourceSlices offer. `classes`: each DeviceClass, by its name. `engine`: what
    evaluates selectors; without one no selector is understood, and each is taken to hold.
    """

    claims: Mapping[str, ResourceClaim]
    templates: Mapping[str, ResourceClaim]
    domains: Mapping[str, str]
    slices: Slices = NO_SLICES
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    engine: SelectorEngine | None = None

    @property
    def extended(self) -> list[str]:
        """The extended resources that classes name."""
        return [device_class.extended for device_class in self.classes.values() if device_class.extended]

    def beside(self, others: Claims) -> Claims:
        """These and the others, which hold where both say something."""
        return Claims(
            {**self.claims, **others.claims},
            {**self.templates, **others.templates},
            {**self.domains, **others.domains},
            others.slices or self.slices,
            {**self.classes, **others.classes},
            others.engine or self.engine,
        )


NO_CLAIMS = Claims({}, {}, {})


def claim_names(pod: BoundPod) -> set[str]:
    """The claims and templates that a bound pod names, and the claims made for it, as NAMESPACE/NAME."""
    namespace = pod.name.partition("/")[0]
    return {f"{namespace}/{name}" for use in pod.claims for name in (use.source, use.made) if name}
