"""The content of a device claim: its requests with their alternatives, and its constraints.

The planner handles a `ClaimSpec` as a resource with its own name (`claims/DIGEST`), so that reserved and used
claims can be added up by name; `devices/availability.py` decides how many a node can serve.

Source: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`); NVIDIA's device classes; `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod names only
claims; the class, the count and the constraints are fields of these objects.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field

from planner.model.labels import Toleration

UNKNOWN = -1
"""The count of `allocationMode: All`: as many as the node has."""


_LOOKUP = re.compile(r"""device\.(?:attributes|capacity)\[['"][^'"]*['"]\]\.""")


_MAX_SHOWN = 80
"""Characters of a selector that are shown to people; the whole is in the claim."""


PREFIX = "claims/"
"""The name of every `ClaimSpec` begins with this."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for `count` devices (`UNKNOWN` for all) that meet the class's and its own CEL `selectors`.

    `of_class`: the selectors of the device class. `admin_access`: the request monitors devices, takes none.
    `capacity_requests`: the minimum capacity of each device, in base units.
    """

    device_class: str
    of_class: tuple[str, ...]
    selectors: tuple[str, ...]
    count: int
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity_requests: tuple[tuple[str, int], ...] = ()

    @property
    def expressions(self) -> tuple[str, ...]:
        """All CEL expressions that a device must meet, in the order in which Kubernetes evaluates them."""
        return (*self.of_class, *self.selectors)

    @property
    def words(self) -> str:
        """As text: "2 × gpu.nvidia.com", "1 × mig.nvidia.com where profile == '3g.40gb'"."""
        number = "all" if self.count == UNKNOWN else f"{self.count} ×"
        selected = _LOOKUP.sub("", " ".join(" && ".join(self.selectors).split()))
        shown = selected if len(selected) <= _MAX_SHOWN else selected[: _MAX_SHOWN - 1] + "…"
        return f"{number} {self.device_class}{f' where {shown}' if shown else ''}"


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """All devices have the same value of the attribute (full name), or (`distinct`) all different ones.

    `requests`: the constrained requests, each with the index of the alternative; () for all of the claim.
    """

    attribute: str
    distinct: bool = False
    requests: tuple[tuple[int, int], ...] = ()

    def applies_to(self, request: int, alternative: int) -> bool:
        """Whether the constraint covers the devices of this alternative of a request."""
        return not self.requests or (request, alternative) in self.requests

    @property
    def words(self) -> str:
        """As text: "the same pcieRoot"."""
        name = self.attribute.rpartition("/")[2]
        return f"{'a different' if self.distinct else 'the same'} {name}"


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """One claim: the alternatives of each of its requests, and its constraints.

    `name` identifies its content.
    """

    name: str
    choices: tuple[tuple[DeviceRequest, ...], ...] = field(compare=False)
    constraints: tuple[DeviceConstraint, ...] = field(default=(), compare=False)

    @property
    def words(self) -> str:
        """As text: "2 × gpu.nvidia.com, 1 × rdma with the same pcieRoot"."""
        requests = ", ".join(" or ".join(request.words for request in choice) for choice in self.choices)
        constraints = " and ".join(dict.fromkeys(constraint.words for constraint in self.constraints))
        return f"{requests} with {constraints}" if constraints else requests


ExtendedResourceClaim = tuple[str, ClaimSpec]
"""An extended resource, and what is claimed for one piece of it (a DeviceClass's `extendedResourceName`)."""


def claim_spec_of(
    choices: Iterable[Iterable[DeviceRequest]], constraints: Iterable[DeviceConstraint] = ()
) -> ClaimSpec:
    """The claim with these requests and constraints; equal claims have the same name."""
    asked, constrained = tuple(map(tuple, choices)), tuple(constraints)
    written = json.dumps(_json(asked, constrained), sort_keys=True)
    return ClaimSpec(PREFIX + hashlib.sha256(written.encode()).hexdigest()[:16], asked, constrained)


def is_claim_spec(resource: str) -> bool:
    """Whether the resource name is that of a `ClaimSpec`."""
    return resource.startswith(PREFIX)


def claim_spec_json(claim_spec: ClaimSpec) -> dict[str, object]:
    """As plain JSON; `claim_spec_from` reads it back."""
    return _json(claim_spec.choices, claim_spec.constraints)


def _json(
    choices: tuple[tuple[DeviceRequest, ...], ...], constraints: tuple[DeviceConstraint, ...]
) -> dict[str, object]:
    fields: dict[str, object] = {
        "requests": [[_request_json(request) for request in choice] for choice in choices]
    }
    if constraints:
        fields["constraints"] = [
            {
                "attribute": constraint.attribute,
                "distinct": constraint.distinct,
                "requests": [list(place) for place in constraint.requests],
            }
            for constraint in constraints
        ]
    return fields


def _request_json(request: DeviceRequest) -> dict[str, object]:
    fields: dict[str, object] = {"class": request.device_class, "count": request.count}
    if request.of_class:
        fields["classSelectors"] = list(request.of_class)
    if request.selectors:
        fields["selectors"] = list(request.selectors)
    if request.admin_access:
        fields["adminAccess"] = True
    if request.tolerations:
        fields["tolerations"] = [list(astuple(toleration)) for toleration in request.tolerations]
    if request.capacity_requests:
        fields["capacity"] = dict(request.capacity_requests)
    return fields
