"""What one device claim asks for, whatever the node: requests with alternatives, and constraints on devices.

A claim travels through the planner as a resource of its own name (`claims/DIGEST`), so that what is reserved
and what is used add up by name; what such a name takes on a node, `planner.devices.availability` tells.
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


_LONGEST = 80


PREFIX = "claims/"
"""How the name of every bundle begins."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """`count` devices, or all, that meet the expressions of their class and the request's own `selectors`.

    `watching`: it only looks at them and takes none. `least`: capacities that each must have, base units.
    """

    device_class: str
    of_class: tuple[str, ...]
    selectors: tuple[str, ...]
    count: int
    watching: bool = False
    tolerations: tuple[Toleration, ...] = ()
    least: tuple[tuple[str, int], ...] = ()

    @property
    def expressions(self) -> tuple[str, ...]:
        """All that a device must meet, in the order in which Kubernetes looks at it."""
        return (*self.of_class, *self.selectors)

    @property
    def words(self) -> str:
        """As a person says it: "2 × gpu.nvidia.com", "1 × mig.nvidia.com where profile == '3g.40gb'"."""
        number = "all" if self.count == UNKNOWN else f"{self.count} ×"
        selected = _LOOKUP.sub("", " ".join(" && ".join(self.selectors).split()))
        shown = selected if len(selected) <= _LONGEST else selected[: _LONGEST - 1] + "…"
        return f"{number} {self.device_class}{f' where {shown}' if shown else ''}"


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """All devices have the same value of the attribute (its full name), or (`distinct`) no two of them have.

    `whose`: the requests that it means, each with the place of the alternative; () for all of the claim.
    """

    attribute: str
    distinct: bool = False
    whose: tuple[tuple[int, int], ...] = ()

    def means(self, request: int, alternative: int) -> bool:
        """Whether the devices of this alternative of a request are meant."""
        return not self.whose or (request, alternative) in self.whose

    @property
    def words(self) -> str:
        """As a person says it: "the same pcieRoot"."""
        name = self.attribute.rpartition("/")[2]
        return f"{'a different' if self.distinct else 'the same'} {name}"


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """One claim: the alternatives of each of its requests, and the rules. `name` tells it from all others."""

    name: str
    choices: tuple[tuple[DeviceRequest, ...], ...] = field(compare=False)
    rules: tuple[DeviceConstraint, ...] = field(default=(), compare=False)

    @property
    def words(self) -> str:
        """As a person says it: "2 × gpu.nvidia.com, 1 × rdma with the same pcieRoot"."""
        wants = ", ".join(" or ".join(want.words for want in choice) for choice in self.choices)
        rules = " and ".join(dict.fromkeys(rule.words for rule in self.rules))
        return f"{wants} with {rules}" if rules else wants


ExtendedResourceClaim = tuple[str, ClaimSpec]
"""An extended resource, and what is claimed for one piece of it (a DeviceClass's `extendedResourceName`)."""


def bundle_of(
    choices: Iterable[Iterable[DeviceRequest]], rules: Iterable[DeviceConstraint] = ()
) -> ClaimSpec:
    """The bundle of these wants and rules."""
    asked, ruled = tuple(map(tuple, choices)), tuple(rules)
    written = json.dumps(_json(asked, ruled), sort_keys=True)
    return ClaimSpec(PREFIX + hashlib.sha256(written.encode()).hexdigest()[:16], asked, ruled)


def is_bundle(resource: str) -> bool:
    """Whether the resource is the name of a bundle."""
    return resource.startswith(PREFIX)


def bundle_json(bundle: ClaimSpec) -> dict[str, object]:
    """As plain JSON; `bundle_from` reads it back."""
    return _json(bundle.choices, bundle.rules)


def _json(
    choices: tuple[tuple[DeviceRequest, ...], ...], rules: tuple[DeviceConstraint, ...]
) -> dict[str, object]:
    found: dict[str, object] = {"requests": [[_want_json(want) for want in choice] for choice in choices]}
    if rules:
        found["constraints"] = [
            {"attribute": r.attribute, "distinct": r.distinct, "requests": [list(pair) for pair in r.whose]}
            for r in rules
        ]
    return found


def _want_json(want: DeviceRequest) -> dict[str, object]:
    found: dict[str, object] = {"class": want.device_class, "count": want.count}
    if want.of_class:
        found["classSelectors"] = list(want.of_class)
    if want.selectors:
        found["selectors"] = list(want.selectors)
    if want.watching:
        found["adminAccess"] = True
    if want.tolerations:
        found["tolerations"] = [list(astuple(toleration)) for toleration in want.tolerations]
    if want.least:
        found["capacity"] = dict(want.least)
    return found


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod names: a template's name, or a ResourceClaim's (`template` False).

    `made`: the ResourceClaim that was made from the template for this very pod, "" where none is known.
    """

    source: str
    template: bool
    made: str = ""
