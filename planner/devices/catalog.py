"""Matches claims to the devices of a cluster's nodes: as a `ClaimSpec`, or as amounts of pools.

A pod names claims, a claim requests devices of a class that match selectors, and nodes offer devices. This
module combines the three, for gangs before they are planned (`request/device_claims.py`) and for bound pods
(`bound_claims`).

With ResourceSlices, the planner records two things for a claim. For 2 × `gpu.nvidia.com`: one unit of the
resource `claims/DIGEST` (digest of the claim's content, `ClaimSpec`), for which `AvailableDevices` decides
whether a node's devices can satisfy it; and 2 of the pool `gpu.nvidia.com`, the minimum that the claim takes
on any node: a quick check that excludes nodes and domains with too few devices. Without ResourceSlices, the
number of devices comes from the node's labels and allocatable amounts; a claim is only an amount of a pool.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.devices.allocation.allocator import MAX_DEVICES
from planner.devices.availability import AvailableDevices, unallocated_devices
from planner.devices.claims import CHANNEL_CLASS, ClaimRequest, Claims, ResourceClaim
from planner.devices.device import Device
from planner.devices.devices_by_node import DevicesByNode, NodeKind, kinds_by_labels, kinds_by_slices
from planner.devices.node_devices import meets
from planner.devices.pools import DRIVER, pool_amounts, pool_of
from planner.devices.selectors import meets_selector, selector_error
from planner.devices.slices import CHANNEL_DRIVER
from planner.model.claim_spec import UNKNOWN, ClaimSpec, DeviceRequest, claim_spec_of
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.names import namespace_of
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.pod import BoundPod, ClaimUse
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG, PRODUCT_LABEL

_CLASSES: Mapping[str, str] = {
    "gpu.nvidia.com": "gpu",
    "mig.nvidia.com": "mig",
    "vfio.gpu.nvidia.com": "vfio",
}
"""NVIDIA's own classes and the `type` of their devices, which are known even without a DeviceClass object."""


IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of the implicit extended resource of a DeviceClass; the name of the class follows it."""


_MAX_AMOUNTS = 4096
"""Maximum number of unlike claims whose minimum amounts a new `Devices` takes over: few clusters have more
than a dozen, but a tenant could write unlike claims for months."""


@dataclass(slots=True)
class Devices:
    """The devices of all nodes, and the cluster's `claims`; nodes with equal devices are evaluated once.

    The caches have an entry for each claim. As long as DeviceClasses and ResourceSlices are the same, a new
    `Devices` takes over those caches that do not depend on the names of claims.
    """

    claims: Claims
    node_devices: DevicesByNode
    node_kinds: tuple[NodeKind, ...]
    _claim_specs: dict[tuple[bool, str], ClaimSpec | None] = field(default_factory=dict)
    _min_amounts: dict[ClaimSpec, dict[str, int]] = field(default_factory=dict)
    _extended_claims: dict[str, ClaimSpec] | None = None
    _kinds: tuple[object, ...] | None = None

    @staticmethod
    def of(nodes: Iterable[Node], claims: Claims, node_devices: DevicesByNode) -> Devices:
        """Returns the devices of these nodes: by ResourceSlices if the cluster has any, else by labels."""
        node_kinds = kinds_by_slices(nodes, node_devices) if claims.slices else kinds_by_labels(nodes)
        return Devices(claims, node_devices, node_kinds)

    def with_claims(self, claims: Claims, node_devices: DevicesByNode) -> Devices:
        """Returns the same devices with other claims; nodes and ResourceSlices must be unchanged."""
        devices = Devices(claims, node_devices, self.node_kinds)
        if claims.classes is self.claims.classes and len(self._min_amounts) < _MAX_AMOUNTS:
            devices._min_amounts, devices._extended_claims = self._min_amounts, self._extended_claims
            devices._kinds = self._kinds
        return devices

    @property
    def kinds(self) -> tuple[object, ...]:
        """The kinds of devices of all nodes, whatever the number of nodes with each. What a claim of a bound
        pod takes (`min_amounts`) depends on them: it is a minimum over all kinds.
        """
        if self._kinds is None:
            kinds = frozenset(frozenset(node_kind.devices.items()) for node_kind in self.node_kinds)
            self._kinds = kinds, self.claims.slices.not_node_local
        return self._kinds

    def find(self, use: ClaimUse, namespace: str) -> ResourceClaim | None:
        """Returns the claim or template that a pod refers to, or None if the cluster does not have it."""
        claims = self.claims.templates if use.template else self.claims.claims
        return claims.get(f"{namespace}/{use.source}")

    def node_of(self, claim: ResourceClaim) -> str:
        """Returns the name of the node whose devices are allocated to the claim; "" if none are, or if their
        node is unknown.
        """
        return next(
            (node for device_id in claim.allocated if (node := self.node_devices.node_of(device_id))), ""
        )

    def is_channel(self, use: ClaimUse, namespace: str) -> bool:
        """Reports whether the pod's claim is for a ComputeDomain's channel (see `CHANNEL_CLASS`)."""
        return use.template and any(
            template == use.source and domain.startswith(f"{namespace}/")
            for domain, template in self.claims.domains.items()
        )

    def device_request(self, request: ClaimRequest) -> DeviceRequest | None:
        """Returns the request with the selectors of its DeviceClass, or None if the class is unknown."""
        if request.device_class in self.claims.classes:
            class_selectors = self.claims.classes[request.device_class].selectors
        elif kind := _CLASSES.get(request.device_class):
            # Labels do not state which GPUs are bound to vfio, so without ResourceSlices any GPU matches.
            kind = "gpu" if kind == "vfio" and not self.claims.slices else kind
            class_selectors = (
                f"device.driver == '{DRIVER}'",
                f"device.attributes['{DRIVER}'].type == '{kind}'",
            )
        else:
            return None
        return DeviceRequest(
            request.device_class,
            class_selectors,
            request.selectors,
            request.count,
            request.admin_access,
            request.tolerations,
            request.capacity_requests,
        )

    def is_counted(self, request: ClaimRequest) -> bool:
        """Reports whether the planner counts the devices of a request.

        Not counted: a ComputeDomain's channels, what devices of no single node may serve, unknown classes.
        """
        for alternative in (request, *request.alternatives):
            device_request = self.device_request(alternative)
            if alternative.device_class == CHANNEL_CLASS or device_request is None:
                return False
            if self._may_be_not_node_local(device_request):
                return False
        return True

    def _may_be_not_node_local(self, device_request: DeviceRequest) -> bool:
        """Reports whether devices that belong to no single node match the request, perhaps beside those of
        nodes, or whether it is for channels.
        """
        if any(
            all(meets_selector(self.claims.engine, text, device) for text in device_request.expressions)
            for device in self.claims.slices.not_node_local
        ):
            return True
        # Channels are not read from ResourceSlices: only the selectors' text shows that they are requested.
        channels = any(CHANNEL_DRIVER in text for text in device_request.expressions)
        return channels and not self.kinds_with(device_request)

    def claim_spec(self, claim: ResourceClaim) -> ClaimSpec | None:
        """Returns the claim's counted requests (`is_counted`) and their constraints, or None if no request is
        counted.
        """
        places = [index for index, request in enumerate(claim.requests) if self.is_counted(request)]
        choices = [
            [
                device_request
                for alternative in (request, *request.alternatives)
                if (device_request := self.device_request(alternative))
            ]
            for request in map(claim.requests.__getitem__, places)
        ]
        constraints = [
            replace(
                constraint,
                requests=tuple((places.index(r), a) for r, a in constraint.requests if r in places),
            )
            for constraint in claim.constraints
            if not constraint.requests or any(r in places for r, _ in constraint.requests)
        ]
        return claim_spec_of(choices, constraints) if choices else None

    def matching(self, device_request: DeviceRequest, node_kind: NodeKind) -> Counter[Device]:
        """Returns how many of each matching device one node of this kind has; a device for which a selector's
        result is unknown counts as matching.
        """
        return Counter(
            {
                device: count
                for device, count in node_kind.devices.items()
                if meets(device, device_request, self.claims.engine)
            }
        )

    def kinds_with(self, device_request: DeviceRequest) -> list[tuple[NodeKind, Counter[Device]]]:
        """Returns the kinds of nodes with matching devices, each with how many of each such device one of its
        nodes has.
        """
        kinds = [(node_kind, self.matching(device_request, node_kind)) for node_kind in self.node_kinds]
        return [(node_kind, devices) for node_kind, devices in kinds if devices]

    def max_count(self, device_request: DeviceRequest) -> int:
        """Returns how many devices an empty node can give a request at most, by its ResourceSlices: fewer
        than match it if these exclude one another (parts of a GPU), are tainted, or are too many for a claim.
        """
        counts = range(1, MAX_DEVICES + 1)
        return bisect_left(counts, True, key=lambda n: not self._has(replace(device_request, count=n)))

    def _has(self, device_request: DeviceRequest) -> bool:
        """Reports whether some empty node has the devices for this request."""
        wanted = [(claim_spec_of([[device_request]]), 1)]
        return any(
            AvailableDevices(node_kind.node_devices).fits(wanted)
            for node_kind in self.node_kinds
            if node_kind.node_devices
        )

    def not_understood(self, device_request: DeviceRequest, devices: Iterable[Device]) -> list[str]:
        """Returns the request's expressions that cannot be evaluated for at least one of these devices."""
        candidates, engine = list(devices), self.claims.engine
        return [
            text
            for text in device_request.expressions
            if any(meets_selector(engine, text, device) is None for device in candidates)
        ]

    def failing(self, device_request: DeviceRequest) -> dict[str, tuple[str, str]]:
        """Returns the request's expressions that end in an error for a device, each with the name of a node
        that has such a device, and the error.

        As in the scheduler, an expression is evaluated only for devices that meet the expressions before it.
        """
        failed: dict[str, tuple[str, str]] = {}
        if (engine := self.claims.engine) is None:
            return failed
        for node_kind in self.node_kinds:
            for device in node_kind.devices:
                unmet = (t for t in device_request.expressions if meets_selector(engine, t, device) is False)
                text = next(unmet, None)
                if text is not None and (error := selector_error(engine, text, device)):
                    failed.setdefault(text, (min(node_kind.names, key=natural), error))
        return failed

    def requirement_for(self, chosen: Sequence[NodeKind], pools: set[str], count: int) -> Requirement | None:
        """Returns a node requirement for the `chosen` kinds of nodes, or None if it is not needed.

        It is needed if nodes of another kind also have `count` devices in `pools`: by amounts alone, the pod
        would fit there, although those devices do not match its request. The requirement uses the GPU product
        label if that separates the chosen kinds from those others, otherwise node names.
        """
        other_kinds = [
            node_kind
            for node_kind in self.node_kinds
            if node_kind not in chosen
            and sum(n for device, n in node_kind.devices.items() if pool_of(device) in pools) >= count
        ]
        if not other_kinds:
            return None
        products = frozenset().union(*(node_kind.products for node_kind in chosen))
        if "" not in products and products.isdisjoint(*(node_kind.products for node_kind in other_kinds)):
            return Requirement(PRODUCT_LABEL, "In", tuple(sorted(products)))
        names = (name for node_kind in chosen for name in node_kind.names)
        return Requirement(NODE_NAME_FIELD, "In", tuple(sorted(names, key=natural)))

    def offered(self, device_class: str) -> list[str]:
        """Returns what claims can request instead of a device of this class, in words: each device's profile
        and product, or its type. Only NVIDIA's own classes may be replaced by each other.
        """
        of_class = None if device_class in _CLASSES else self.device_request(ClaimRequest(device_class, 1))
        words = {
            " ".join(str(value) for name in ("profile", "productName") if (value := device.attribute(name)))
            or str(device.attribute("type") or device.driver)
            for node_kind in self.node_kinds
            for device in node_kind.devices
            if of_class is None or meets(device, of_class, self.claims.engine)
        }
        return sorted(words, key=natural)

    @property
    def extended_claims(self) -> Mapping[str, ClaimSpec]:
        """By extended resource of a DeviceClass, the claim for one unit, which pods get on nodes without a
        device plugin for it. Empty if the cluster has no ResourceSlices.
        """
        if self._extended_claims is None:
            self._extended_claims = _extended_claims(self.claims) if self.claims.slices else {}
        return self._extended_claims

    # -- the minimum that a claim takes --------------------------------------------------------------------

    def min_amounts(self, claim_spec: ClaimSpec) -> dict[str, int]:
        """Returns the minimum that a claim takes of each pool, whichever alternatives and devices it gets."""
        amounts = self._min_amounts.get(claim_spec)
        if amounts is None:
            taken: Counter[str] = Counter()
            for choice in claim_spec.choices:
                alternatives = [self._pools(device_request) for device_request in choice]
                taken.update(
                    {
                        # A pool that the first alternative does not take has the minimum 0.
                        name: min(alternative.get(name, 0) for alternative in alternatives)
                        for name in alternatives[0]
                    }
                )
            amounts = self._min_amounts[claim_spec] = {name: count for name, count in taken.items() if count}
        return amounts

    def _pools(self, device_request: DeviceRequest) -> Counter[str]:
        """Returns the minimum that a request takes of each pool; empty if its devices are not all GPUs or all
        MIG devices, or if several claims may share one of them. MIG devices of several profiles count only in
        the pool of any profile.
        """
        kinds = [] if device_request.admin_access else self.kinds_with(device_request)
        pools = {"" if device.shareable else pool_of(device) for _, devices in kinds for device in devices}
        if not pools or "" in pools or (CLAIMED_GPU in pools and len(pools) > 1):
            return Counter()
        count = device_request.count
        if count == UNKNOWN:
            count = min(sum(devices.values()) for _, devices in kinds)
        return pool_amounts(Counter({pools.pop() if len(pools) == 1 else CLAIMED_MIG: count}))

    # -- nodes ---------------------------------------------------------------------------------------------

    def available(self, node: Node) -> AvailableDevices | None:
        """Returns the node's devices with none allocated, or None if its ResourceSlices list no devices."""
        return unallocated_devices(node, self.node_devices)

    def claim_spec_of_pod(self, use: ClaimUse, claim: ResourceClaim, pod: BoundPod) -> ClaimSpec | None:
        """Returns the `ClaimSpec` of a bound pod's claim, None if none of its requests is counted. Claims
        generated from one template share a cache entry.
        """
        key = (use.template, f"{pod.name.partition('/')[0]}/{use.source}")
        if key not in self._claim_specs:
            self._claim_specs[key] = self.claim_spec(self.find(use, namespace_of(key[1])) or claim)
        return self._claim_specs[key]


def _extended_claims(claims: Claims) -> dict[str, ClaimSpec]:
    """Returns the claim for one unit of each extended resource that a DeviceClass offers, also implicitly
    (`IMPLICIT`).

    If several classes offer a resource, the newest class counts; of equally old ones, the first by name.
    """
    by_name = sorted(claims.classes.items(), key=lambda item: item[0], reverse=True)
    # The sort is stable, so among equally old classes the first by name comes last and wins.
    by_age = sorted(by_name, key=lambda item: item[1].created)
    by_resource = {device_class.extended: name for name, device_class in by_age if device_class.extended}
    by_resource |= {IMPLICIT + name: name for name in claims.classes}
    return {
        resource: claim_spec_of([[DeviceRequest(name, claims.classes[name].selectors, (), 1)]])
        for resource, name in by_resource.items()
    }
