"""The nodes' devices, and what claims come to on them: amounts of pools, and bundles that find their devices.

A pod names claims, a claim asks for devices of a class that meet selectors, and nodes offer devices. Here the
three are brought together, for gangs before they are planned (`planner.claimed`) and wherever bound pods are
counted. Where nodes have ResourceSlices, each claim is a bundle (`planner.bundles`) that a node's stock holds
or does not; the amounts of pools beside it are what it takes at least. Without slices, labels tell amounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.devices.availability import AvailableDevices
from planner.devices.bound_claims import amounts, empty_stock
from planner.devices.claims import CHANNEL_CLASS, ClaimRequest, Claims, ResourceClaim
from planner.devices.node_devices import Alike, NodeDevicesByName, by_labels, by_layout, meets
from planner.devices.pools import DRIVER, pool_of, pools_of
from planner.devices.selectors import meets_selector
from planner.devices.slices import CHANNEL_DRIVER, Device
from planner.model.claim_spec import PREFIX, UNKNOWN, ClaimSpec, ClaimUse, DeviceRequest, bundle_of
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.natural_order import natural
from planner.model.node import BoundPod, Node
from planner.model.quantity import Resources
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG, GPU, PRODUCT_LABEL

_CLASSES: Mapping[str, str] = {
    "gpu.nvidia.com": "gpu",
    "mig.nvidia.com": "mig",
    "vfio.gpu.nvidia.com": "vfio",
}
"""NVIDIA's own classes, with the type of their devices; other classes are known by their DeviceClass."""


IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""The extended resource that every DeviceClass serves as, with its name behind."""


@dataclass(slots=True)
class Devices:
    """Every node's devices; nodes with the same ones are looked at once. `claims`: what the cluster says."""

    claims: Claims
    layouts: NodeDevicesByName
    alike: tuple[Alike, ...]
    _bundles: dict[tuple[bool, str], ClaimSpec | None] = field(default_factory=dict)
    _least: dict[ClaimSpec, dict[str, int]] = field(default_factory=dict)
    _stand_ins: dict[str, ClaimSpec] | None = None

    @staticmethod
    def of(nodes: Iterable[Node], claims: Claims, layouts: NodeDevicesByName) -> Devices:
        """The devices of these nodes."""
        found = by_layout(nodes, layouts) if claims.slices else by_labels(nodes)
        return Devices(claims, layouts, found)

    def told(self, claims: Claims, layouts: NodeDevicesByName) -> Devices:
        """The same devices, where only what claims ask of them has changed."""
        return Devices(claims, layouts, self.alike)

    def find(self, use: ClaimUse, namespace: str) -> ResourceClaim | None:
        """The claim that a pod means, None where the cluster does not show it."""
        known = self.claims.templates if use.template else self.claims.claims
        return known.get(f"{namespace}/{use.source}")

    def holder(self, claim: ResourceClaim) -> str:
        """The node whose devices the claim has been given, "" for none, or where that cannot be told."""
        return next((home for one in claim.allocated if (home := self.layouts.home(one))), "")

    def is_channel(self, use: ClaimUse, namespace: str) -> bool:
        """Whether it is the template of a ComputeDomain's channel, which is no GPU."""
        return use.template and any(
            template == use.source and domain.startswith(f"{namespace}/")
            for domain, template in self.claims.domains.items()
        )

    def want(self, request: ClaimRequest) -> DeviceRequest | None:
        """What the devices of a request must meet, None for a class of which nothing is known."""
        if request.device_class in self.claims.classes:
            own = self.claims.classes[request.device_class].selectors
        elif kind := _CLASSES.get(request.device_class):
            kind = "gpu" if kind == "vfio" and not self.claims.slices else kind
            own = (f"device.driver == '{DRIVER}'", f"device.attributes['{DRIVER}'].type == '{kind}'")
        else:
            return None
        return DeviceRequest(
            request.device_class,
            own,
            request.selectors,
            request.count,
            request.watching,
            request.tolerations,
            request.least,
        )

    def planned(self, request: ClaimRequest) -> bool:
        """Whether the devices of a request are counted: not a ComputeDomain's channels, nor devices that are
        not one node's, nor a class of which nothing is known."""
        for one in (request, *request.others):
            want = self.want(one)
            if one.device_class == CHANNEL_CLASS or want is None:
                return False
            if not self.everywhere(want) and self._elsewhere(want):
                return False
        return True

    def _elsewhere(self, want: DeviceRequest) -> bool:
        """Whether devices that no layout has are meant: a ComputeDomain's, or such as are not one node's."""
        afar = self.claims.slices.afar
        return any(CHANNEL_DRIVER in text for text in want.expressions) or any(
            all(meets_selector(self.claims.engine, text, device) for text in want.expressions)
            for device in afar
        )

    def bundle(self, claim: ResourceClaim) -> ClaimSpec | None:
        """What the claim asks for of the devices that slices offer; None where nothing of it is counted."""
        places = [place for place, request in enumerate(claim.requests) if self.planned(request)]
        choices = [
            [want for one in (request, *request.others) if (want := self.want(one))]
            for request in map(claim.requests.__getitem__, places)
        ]
        rules = [
            replace(rule, whose=tuple((places.index(r), a) for r, a in rule.whose if r in places))
            for rule in claim.rules
            if not rule.whose or any(r in places for r, _ in rule.whose)
        ]
        return bundle_of(choices, rules) if choices else None

    def matching(self, want: DeviceRequest, one: Alike) -> Counter[Device]:
        """The devices of such a node that meet a want, or may: what is not understood is granted."""
        return Counter(
            {
                device: count
                for device, count in one.devices.items()
                if meets(device, want, self.claims.engine)
            }
        )

    def everywhere(self, want: DeviceRequest) -> list[tuple[Alike, Counter[Device]]]:
        """The kinds of nodes that have such devices, with these."""
        found = [(one, self.matching(want, one)) for one in self.alike]
        return [(one, devices) for one, devices in found if devices]

    def not_understood(self, want: DeviceRequest, devices: Iterable[Device]) -> list[str]:
        """The expressions of which it cannot be told whether some of these devices meet them."""
        known, engine = list(devices), self.claims.engine
        return [
            text
            for text in want.expressions
            if any(meets_selector(engine, text, device) is None for device in known)
        ]

    def among(self, enough: Sequence[Alike], pools: set[str], count: int) -> Requirement | None:
        """What keeps to these nodes where others have the pool too, but not such devices in it."""
        others = [
            one
            for one in self.alike
            if one not in enough
            and sum(n for device, n in one.devices.items() if pool_of(device) in pools) >= count
        ]
        if not others:
            return None
        products = frozenset().union(*(one.products for one in enough))
        if "" not in products and products.isdisjoint(*(one.products for one in others)):
            return Requirement(PRODUCT_LABEL, "In", tuple(sorted(products)))
        names = (name for one in enough for name in one.names)
        return Requirement(NODE_NAME_FIELD, "In", tuple(sorted(names, key=natural)))

    def offered(self) -> list[str]:
        """What there is to claim, in words: products and profiles."""
        said = {
            " ".join(str(value) for name in ("profile", "productName") if (value := device.attribute(name)))
            or str(device.attribute("type") or device.driver)
            for one in self.alike
            for device in one.devices
        }
        return sorted(said, key=natural)

    @property
    def stand_ins(self) -> Mapping[str, ClaimSpec]:
        """By extended resource what is claimed for one piece of it, where no device plugin gives it."""
        if self._stand_ins is None:
            self._stand_ins = _stand_ins(self.claims) if self.claims.slices else {}
        return self._stand_ins

    # -- amounts -------------------------------------------------------------------------------------------

    def least(self, bundle: ClaimSpec) -> dict[str, int]:
        """What a bundle takes of each pool at least, wherever it finds its devices."""
        found = self._least.get(bundle)
        if found is None:
            taken: Counter[str] = Counter()
            for choice in bundle.choices:
                ways = [self._pools(want) for want in choice]
                taken.update({name: min(way.get(name, 0) for way in ways) for name in ways[0]})
            found = self._least[bundle] = {name: count for name, count in taken.items() if count}
        return found

    def _pools(self, want: DeviceRequest) -> Counter[str]:
        found = [] if want.watching else self.everywhere(want)
        pools = {pool_of(device) for _, there in found for device in there}
        if not pools or "" in pools or (CLAIMED_GPU in pools and len(pools) > 1):
            return Counter()
        count = want.count
        if count == UNKNOWN:
            count = min(sum(there.values()) for _, there in found)
        return amounts(Counter({pools.pop() if len(pools) == 1 else CLAIMED_MIG: count}))

    # -- nodes ---------------------------------------------------------------------------------------------

    def stock(self, node: Node) -> AvailableDevices | None:
        """The node's devices when no claim has any."""
        return empty_stock(node, self.layouts)

    def stock_now(
        self,
        node: Node,
        pods: Sequence[BoundPod],
        promised: Resources,
        bundles: Mapping[str, ClaimSpec],
    ) -> tuple[AvailableDevices | None, dict[str, int]]:
        """The node's devices now, and what is promised there as amounts of pools.

        `promised`: what bound pods use and gangs have reserved, bundles by name; `bundles`: what the names of
        the gangs' mean.
        """
        amounts_ = {name: count for name, count in promised.items() if not name.startswith(PREFIX)}
        empty = self.stock(node)
        if empty is None:
            return None, amounts_
        known, served, counted = dict(bundles), Counter[str](), Counter[str]()
        for pod, use, claim in self._claims_on(pods):
            bundle = self._bundle(use, claim, pod)
            if bundle is not None:
                known[bundle.name] = bundle
                if (given := self._given(claim, node.name)) is not None:
                    served[bundle.name] += 1
                    counted.update(given)
        standing = self._standing(node, pods, promised, known)
        for name, count in standing.items():
            for pool, each in self.least(known[name]).items():
                amounts_[pool] = amounts_.get(pool, 0) + each * count
        asked = standing + Counter({name: n for name, n in promised.items() if name in known})
        waiting = tuple(
            (known[name], count - served[name])
            for name, count in sorted(asked.items())
            if count > served[name]
        )
        busy = self.layouts.given(node.name)
        for name, count in empty.layout.blocked(busy).items():
            if (more := count - counted[name]) > 0:
                amounts_[name] = amounts_.get(name, 0) + more
        return replace(empty, busy=busy, waiting=waiting, plugged=promised.get(GPU, 0)), amounts_

    def _standing(
        self, node: Node, pods: Sequence[BoundPod], promised: Resources, known: dict[str, ClaimSpec]
    ) -> Counter[str]:
        """What is claimed on the node in the place of extended resources, what has its devices left out."""
        found: Counter[str] = Counter()
        for resource, bundle in self.stand_ins.items():
            if promised.get(resource) and not node.allocatable.get(resource):
                given = sum(pod.requests.get(resource, 0) for pod in pods if self._extended(pod, node.name))
                known[bundle.name] = bundle
                found[bundle.name] += max(0, promised[resource] - given)
        return found

    def _extended(self, pod: BoundPod, node: str) -> bool:
        """Whether the claim that was made for a pod's extended resources has its devices on this node."""
        claim = self.claims.claims.get(f"{pod.name.partition('/')[0]}/{pod.extended_claim}")
        return claim is not None and self._given(claim, node) is not None

    # -- bound pods ----------------------------------------------------------------------------------------

    def counted(self, pods: Iterable[BoundPod]) -> list[BoundPod]:
        """One node's pods, their claims' devices among their requests; a shared claim counts once."""
        taken: dict[str, Counter[str]] = {}
        known = list(pods)
        for pod, use, claim in self._claims_on(known):
            taken.setdefault(pod.name, Counter()).update(self._taken(use, claim, pod))
        return [
            replace(pod, requests={**pod.requests, **taken[pod.name]}) if taken.get(pod.name) else pod
            for pod in known
        ]

    def _claims_on(self, pods: Iterable[BoundPod]) -> Iterator[tuple[BoundPod, ClaimUse, ResourceClaim]]:
        """The claims that one node's pods have, as they were made for them; each shared one once."""
        seen: set[str] = set()
        for pod in pods:
            namespace = pod.name.partition("/")[0]
            for use in pod.claims:
                name = f"{namespace}/{use.source}"
                if not use.template and name in seen:
                    continue
                if not use.template:
                    seen.add(name)
                made = self.claims.claims.get(f"{namespace}/{use.made or use.source}")
                claim = made or self.find(use, namespace)
                if claim is not None:
                    yield pod, use, claim

    def _taken(self, use: ClaimUse, claim: ResourceClaim, pod: BoundPod) -> Counter[str]:
        if not self.claims.slices:
            return self._by_labels(claim, pod.node)
        bundle = self._bundle(use, claim, pod)
        if bundle is None:
            return Counter()
        given = self._given(claim, pod.node)
        found = Counter(self.least(bundle) if given is None else given)
        found[bundle.name] += 1
        return found

    def _by_labels(self, claim: ResourceClaim, node: str) -> Counter[str]:
        there = next((one for one in self.alike if node in one.names), None)
        taken: Counter[str] = Counter()
        for request in claim.requests:
            want = None if request.watching else self.want(request)
            if there is not None and want is not None:
                devices = self.matching(want, there)
                if pools := [pool_of(device) for device in devices]:
                    count = sum(devices.values()) if request.count == UNKNOWN else request.count
                    taken.update(amounts(Counter({min(pools): count})))
        return taken

    def _bundle(self, use: ClaimUse, claim: ResourceClaim, pod: BoundPod) -> ClaimSpec | None:
        """A bound pod's claim as a bundle; claims that were made of one template are worked out once."""
        key = (use.template, f"{pod.name.partition('/')[0]}/{use.source}")
        if key not in self._bundles:
            self._bundles[key] = self.bundle(self.find(use, key[1].partition("/")[0]) or claim)
        return self._bundles[key]

    def _given(self, claim: ResourceClaim, node: str) -> dict[str, int] | None:
        """The devices that the claim has been given on this node, as amounts of pools; None for none."""
        units = [self.layouts.unit(one) for one in claim.allocated if self.layouts.home(one) == node]
        known = [unit.device for unit in units if unit is not None]
        return pools_of(known) if known else None


def _stand_ins(claims: Claims) -> dict[str, ClaimSpec]:
    """Of classes for one resource the younger holds, of equally old ones the first by name."""
    by_name = sorted(claims.classes.items(), key=lambda one: one[0], reverse=True)
    named = sorted(by_name, key=lambda one: one[1].created)
    found = {one.extended: name for name, one in named if one.extended}
    found |= {IMPLICIT + name: name for name in claims.classes}
    return {
        resource: bundle_of([[DeviceRequest(name, claims.classes[name].selectors, (), 1)]])
        for resource, name in found.items()
    }
