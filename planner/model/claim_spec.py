"""The content of a device claim: its requests with their alternatives, and its constraints.

The planner counts equal claims as amounts of one resource, which is named after their content
(`claims/DIGEST`), so that reserved and used claims can be added up by name; `devices/availability.py` decides
how many of them a node can serve. *Alternatives* are the subrequests of `firstAvailable`.

Source: `resource.k8s.io` v1, v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the same fields without
`exactly`); NVIDIA's device classes; `ComputeDomain` of `resource.nvidia.com/v1beta1`. A pod only names its
claims; the class, the count and the constraints are fields of the claims.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field

from planner.model.labels import Toleration

UNKNOWN = -1
"""The count of a request with `allocationMode: All`: all devices of the node that match the request."""


_LOOKUP = re.compile(r"""device\.(?:attributes|capacity)\[['"][^'"]*['"]\]\.""")


_MAX_SHOWN = 80
"""The number of characters of a selector that messages show; the claim contains the whole selector."""


PREFIX = "claims/"
"""Prefix of the name of every `ClaimSpec`."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for `count` devices (`UNKNOWN` for all) that match all CEL selectors.

    `of_class`: the selectors of the DeviceClass; `selectors`: those of the request itself. `admin_access`:
    the request monitors devices and takes none. `capacity_requests`: pairs of a capacity's name and the
    minimum that each device must have, in base units.
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
        """All CEL selectors that a device must match, in the order in which Kubernetes evaluates them."""
        return (*self.of_class, *self.selectors)

    @property
    def words(self) -> str:
        """The request as text: "2 × gpu.nvidia.com", "1 × mig.nvidia.com where profile == '3g.40gb'"."""
        number = "all" if self.count == UNKNOWN else f"{self.count} ×"
        selected = _LOOKUP.sub("", " ".join(" && ".join(self.selectors).split()))
        shown = selected if len(selected) <= _MAX_SHOWN else selected[: _MAX_SHOWN - 1] + "…"
        return f"{number} {self.device_class}{f' where {shown}' if shown else ''}"


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """Requires that all devices have the same value of an attribute or, if `distinct`, different values.
    `attribute`: its full name.

    `requests`: the constrained requests, as (index of the request, index of its alternative); () for all
    requests of the claim.
    """

    attribute: str
    distinct: bool = False
    requests: tuple[tuple[int, int], ...] = ()

    def applies_to(self, request: int, alternative: int) -> bool:
        """Reports whether the constraint applies to the devices of this alternative of a request."""
        return not self.requests or (request, alternative) in self.requests

    @property
    def words(self) -> str:
        """The constraint as text: "the same pcieRoot"."""
        name = self.attribute.rpartition("/")[2]
        return f"{'a different' if self.distinct else 'the same'} {name}"


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The content of a claim: the alternatives of each of its requests (`choices`), and its constraints.

    `name` is a digest of the content, so two equal claims have the same name. Only names are compared.
    """

    name: str
    choices: tuple[tuple[DeviceRequest, ...], ...] = field(compare=False)
    constraints: tuple[DeviceConstraint, ...] = field(default=(), compare=False)

    @property
    def words(self) -> str:
        """The claim as text: "2 × gpu.nvidia.com, 1 × rdma with the same pcieRoot"."""
        requests = ", ".join(" or ".join(request.words for request in choice) for choice in self.choices)
        constraints = " and ".join(dict.fromkeys(constraint.words for constraint in self.constraints))
        return f"{requests} with {constraints}" if constraints else requests


ExtendedResourceClaim = tuple[str, ClaimSpec]
"""The name of an extended resource that a DeviceClass serves (`extendedResourceName`), and the claim for one
unit of it."""


def claim_spec_of(
    choices: Iterable[Iterable[DeviceRequest]], constraints: Iterable[DeviceConstraint] = ()
) -> ClaimSpec:
    """Returns the `ClaimSpec` with these requests (each with its alternatives) and these constraints."""
    asked, constrained = tuple(map(tuple, choices)), tuple(constraints)
    written = json.dumps(_json(asked, constrained), sort_keys=True)
    return ClaimSpec(PREFIX + hashlib.sha256(written.encode()).hexdigest()[:16], asked, constrained)


def is_claim_spec(resource: str) -> bool:
    """Reports whether the resource name is that of a `ClaimSpec`."""
    return resource.startswith(PREFIX)


def claim_spec_json(claim_spec: ClaimSpec) -> dict[str, object]:
    """Returns the content of the claim as plain JSON, which `claim_spec_from` in planner/manifests reads."""
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
