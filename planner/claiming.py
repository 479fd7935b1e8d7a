"""What a pod's device claims come to on the nodes at hand: amounts of pools, and nodes with such devices.

A pod names claims, a claim asks for devices of a class that meet selectors, and nodes offer devices. Here the
three are brought together, before a gang is planned and wherever bound pods are counted. What cannot be told
is not counted, and a warning says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.claims import CHANNEL_CLASS, UNKNOWN, Claim, Claims, ClaimUse, DeviceRequest
from planner.devices import CLAIMED_GPU, CLAIMED_MIG, DRIVER, devices_of, is_claimed, pool_of
from planner.match import NODE_NAME_FIELD, PRODUCT
from planner.node import BoundPod, Node
from planner.order import natural
from planner.podgroup import PodGroup, PodSet, PodShape, Requirement
from planner.presets import CLIQUE
from planner.request import Refusal
from planner.selectors import Device, holds
from planner.topology import HOSTNAME, Topology

_CLASSES: Mapping[str, str] = {
    "gpu.nvidia.com": "gpu",
    "mig.nvidia.com": "mig",
    "vfio.gpu.nvidia.com": "vfio",
}
"""NVIDIA's own classes, with the type of their devices; other classes are known by their DeviceClass."""
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class _Alike:
    """Nodes with the same devices: their names, their GPU products, and how many there are of each device."""

    devices: Counter[Device]
    names: tuple[str, ...]
    products: frozenset[str]


@dataclass(slots=True)
class Devices:
    """Every node's devices; nodes with the same ones are looked at once. `claims`: what the cluster says."""

    claims: Claims
    _alike: tuple[_Alike, ...]
    _by_node: Mapping[str, _Alike]
    _met: dict[tuple[str, Device], bool | None] = field(default_factory=dict)

    @staticmethod
    def of(nodes: Iterable[Node], claims: Claims) -> Devices:
        """The devices of these nodes."""
        names: dict[frozenset[tuple[Device, int]], list[Node]] = {}
        for node in nodes:
            if found := devices_of(node, claims):
                names.setdefault(frozenset(found.items()), []).append(node)
        alike = tuple(
            _Alike(
                Counter(dict(kinds)),
                tuple(node.name for node in there),
                frozenset(node.labels.get(PRODUCT, "") for node in there),
            )
            for kinds, there in names.items()
        )
        return Devices(claims, alike, {name: one for one in alike for name in one.names})

    def told(self, claims: Claims) -> Devices:
        """The same devices, where only what claims ask of them has changed."""
        return Devices(claims, self._alike, self._by_node)

    def find(self, use: ClaimUse, namespace: str) -> Claim | None:
        """The claim that a pod means, None where the cluster does not show it."""
        if use.template:
            return self.claims.templates.get(f"{namespace}/{use.source}")
        return self.claims.claims.get(f"{namespace}/{use.source}")

    def holder(self, claim: Claim) -> str:
        """The node whose devices the claim has been given, "" for none, or where that cannot be told."""
        for _, pool, name in claim.allocated:
            if (pool, name) in self.claims.devices.get(pool, {}):
                return pool  # most drivers call a node's pool by the node
            for node, offers in self.claims.devices.items():
                if (pool, name) in offers:
                    return node
        return ""

    def is_channel(self, use: ClaimUse, namespace: str) -> bool:
        """Whether it is the template of a ComputeDomain's channel, which is no GPU."""
        return use.template and any(
            template == use.source and domain.startswith(f"{namespace}/")
            for domain, template in self.claims.domains.items()
        )

    def expressions(self, request: DeviceRequest) -> tuple[str, ...] | None:
        """What the devices of a request must meet, None for a class of which nothing is known."""
        if request.device_class in self.claims.classes:
            return (*self.claims.classes[request.device_class], *request.selectors)
        kind = _CLASSES.get(request.device_class)
        if kind is None:
            return None
        own = "gpu" if kind == "vfio" and not self.claims.devices else kind
        return (f"device.attributes['gpu.nvidia.com'].type == '{own}'", *request.selectors)

    def matching(self, expressions: Sequence[str], one: _Alike) -> Counter[Device]:
        """The devices of such a node that meet all expressions, or may: what is not understood is granted."""
        return Counter(
            {
                device: count
                for device, count in one.devices.items()
                if pool_of(device) and all(self.met(text, device) is not False for text in expressions)
            }
        )

    def met(self, expression: str, device: Device) -> bool | None:
        """Whether a device meets an expression, None where that cannot be told."""
        key = (expression, device)
        if key not in self._met:
            self._met[key] = holds(expression, device)
        return self._met[key]

    def everywhere(self, expressions: Sequence[str]) -> list[tuple[_Alike, Counter[Device]]]:
        """The kinds of nodes that have such devices, with these."""
        found = [(one, self.matching(expressions, one)) for one in self._alike]
        return [(one, devices) for one, devices in found if devices]

    def not_understood(self, expressions: Sequence[str], devices: Iterable[Device]) -> list[str]:
        """The expressions whose truth for some of these devices cannot be told."""
        return [text for text in expressions if any(self.met(text, device) is None for device in devices)]

    def among(self, enough: Sequence[_Alike], pools: set[str], count: int) -> Requirement | None:
        """What keeps to these nodes where others have the pool too, but not such devices in it."""
        others = [
            one
            for one in self._alike
            if one not in enough
            and sum(n for device, n in one.devices.items() if pool_of(device) in pools) >= count
        ]
        if not others:
            return None
        products = frozenset().union(*(one.products for one in enough))
        if "" not in products and products.isdisjoint(*(one.products for one in others)):
            return Requirement(PRODUCT, "In", tuple(sorted(products)))
        names = (name for one in enough for name in one.names)
        return Requirement(NODE_NAME_FIELD, "In", tuple(sorted(names, key=natural)))

    def offered(self) -> list[str]:
        """What there is to claim, in words: products and profiles."""
        said = {
            " ".join(str(value) for name in ("profile", "productName") if (value := device.attribute(name)))
            or str(device.attribute("type"))
            for one in self._alike
            for device in one.devices
            if pool_of(device)
        }
        return sorted(said, key=natural)

    # -- bound pods ----------------------------------------------------------------------------------------

    def counted(self, pods: Iterable[BoundPod]) -> list[BoundPod]:
        """One node's pods, their claims' devices among their requests; a shared claim counts once."""
        seen: set[str] = set()
        found = []
        for pod in pods:
            namespace = pod.name.partition("/")[0]
            taken: Counter[str] = Counter()
            for use in pod.claims:
                if not use.template:
                    if f"{namespace}/{use.source}" in seen:
                        continue
                    seen.add(f"{namespace}/{use.source}")
                taken.update(self._taken(use, namespace, pod.node))
            found.append(replace(pod, requests={**pod.requests, **taken}) if taken else pod)
        return found

    def _taken(self, use: ClaimUse, namespace: str, node: str) -> Counter[str]:
        made = self.claims.claims.get(f"{namespace}/{use.made or use.source}")
        claim = made or self.find(use, namespace)
        if claim is None:
            return Counter()
        offers = self.claims.devices.get(node, {})
        given = [offers.get((pool, name)) for driver, pool, name in claim.allocated if driver == DRIVER]
        if given and all(given):
            return _amounts(Counter(pool_of(device) for device in given if device and pool_of(device)))
        there = self._by_node.get(node)
        taken: Counter[str] = Counter()
        for request in claim.requests:
            expressions = None if request.watching else self.expressions(request)
            if there is not None and expressions is not None:
                devices = self.matching(expressions, there)
                pools = [pool_of(device) for device in devices]
                if pools:
                    count = sum(devices.values()) if request.count == UNKNOWN else request.count
                    taken.update(_amounts(Counter({min(pools): count})))
        return taken


def _amounts(pools: Counter[str]) -> Counter[str]:
    """Pools with the slices of any profile: whatever profile a slice has, it is one of them."""
    found = Counter({name: count for name, count in pools.items() if count})
    slices = sum(count for name, count in pools.items() if name.startswith(CLAIMED_MIG + "/"))
    if slices:
        found[CLAIMED_MIG] += slices
    return found


def claim_names(pod: BoundPod) -> set[str]:
    """The claims and templates that a bound pod names, and the claims made for it, as NAMESPACE/NAME."""
    namespace = pod.name.partition("/")[0]
    return {f"{namespace}/{name}" for use in pod.claims for name in (use.source, use.made) if name}


# -- gangs ---------------------------------------------------------------------------------------------------


def claimed(devices: Devices, group: PodGroup) -> PodGroup:
    """The gang with what its claims ask for among its pods' requests; warnings say what cannot be told.

    Raises `Refusal` for devices that no node offers. What was worked out before is worked out anew.
    """
    notes: dict[str, None] = {}
    reserve = group.reserve
    sets = tuple(_set(devices, pod_set, group.name.partition("/")[0], notes) for pod_set in group.pod_sets)
    slices = any(CLAIMED_MIG in one.shape.requests for one in sets)
    if group.presumed and slices and not any(one.shape.gpus for one in sets):
        reserve = "nodes"  # a whole host held for a slice would be absurd
    said = (*group.warnings, *(note for note in notes if note not in group.warnings))
    return replace(group, pod_sets=sets, reserve=reserve, warnings=said)


def in_one_clique(devices: Devices, topologies: Iterable[Topology], group: PodGroup) -> PodGroup:
    """The gang with the pods that claim a ComputeDomain's channel kept in one clique, which is its reach.

    A gang that requires a clique or a finer level stays as it is; so does one whose topology has no cliques.
    """
    namespace = group.name.partition("/")[0]
    own = [p for p in group.pod_sets if any(devices.is_channel(c, namespace) for c in p.shape.claims)]
    named = [t for t in topologies if CLIQUE in t.levels and group.constraint.topology in ("", t.name)]
    if group.size < 2 or not own or not named or sum(p.count for p in own) < 2:
        return group
    within = {level for t in named for level in t.levels[t.index(CLIQUE) :]}
    within |= {word for t in named for word, level in t.aliases.items() if level in within}
    loose = {p.name for p in own if p.constraint.required not in within}
    if group.constraint.required in within or not loose:
        return group
    if len(own) == len(group.pod_sets):
        sets = tuple(
            replace(p, constraint=replace(p.constraint, required="")) if p.name in loose else p
            for p in group.pod_sets
        )
        tightened = replace(group.constraint, required=CLIQUE)
        return _noted(replace(group, pod_sets=sets, constraint=tightened))
    sets = tuple(
        replace(p, constraint=replace(p.constraint, required=CLIQUE)) if p.name in loose else p
        for p in group.pod_sets
    )
    return _noted(replace(group, pod_sets=sets))


def _noted(group: PodGroup) -> PodGroup:
    note = f"its pods claim a ComputeDomain's channel, which reaches one {CLIQUE}: planned within one"
    return replace(group, warnings=(*group.warnings, note))


def _set(devices: Devices, pod_set: PodSet, namespace: str, notes: dict[str, None]) -> PodSet:
    if not pod_set.shape.claims:
        return pod_set
    asked = _Asked(devices, pod_set, notes)
    for use in pod_set.shape.claims:
        if devices.is_channel(use, namespace):
            continue
        claim = devices.find(use, namespace)
        kind = "claim template" if use.template else "claim"
        if claim is None:
            asked.note(f"the {kind} {use.source} is not known in {namespace}: its devices are not planned")
        elif not use.template and (node := devices.holder(claim)):
            asked.keep_to(Requirement(NODE_NAME_FIELD, "In", (node,)))  # its devices are there, and in use
        elif not use.template and pod_set.count > 1:
            asked.note(f"{pod_set.count} pods share the claim {use.source}: its devices are not counted")
            asked.together = True
        else:
            for request in claim.requests:
                asked.add(request, f"{kind} {use.source}")
    own = pod_set.constraint
    if asked.together:  # a device is a node's, so its sharers are on one
        own = replace(own, required=HOSTNAME, slice_level="", slice_size=0)
    return replace(pod_set, shape=asked.shape(), constraint=own)


class _Asked:
    """What the claims of one PodSet come to, gathered request by request."""

    def __init__(self, devices: Devices, pod_set: PodSet, notes: dict[str, None]) -> None:
        self._devices, self._set, self._notes = devices, pod_set, notes
        self._amounts: Counter[str] = Counter()
        self._needs: list[Requirement] = []
        self.together = False

    def keep_to(self, nodes: Requirement) -> None:
        """Only these nodes serve."""
        self._needs.append(nodes)

    def note(self, text: str) -> None:
        """A warning, once."""
        self._notes[f"{self._set.name}: {text}"] = None

    def add(self, request: DeviceRequest, whose: str) -> None:
        """One request of a claim; of its alternatives the first that some node can give."""
        for one in (request, *request.others)[:-1]:
            try:
                return self._one(one, whose)
            except Refusal:
                continue
        return self._one((request, *request.others)[-1], whose)

    def _one(self, request: DeviceRequest, whose: str) -> None:
        if request.watching or request.device_class == CHANNEL_CLASS:
            return
        expressions = self._devices.expressions(request)
        if expressions is None:
            self.note(f"devices of class {request.device_class} ({whose}) are not planned")
            return
        found = self._devices.everywhere(expressions)
        if not found:
            raise self._none(request, whose, 0)
        meant = {device for _, there in found for device in there}
        for text in self._devices.not_understood(expressions, meant):
            self.note(f"the selector {_cut(text)} ({whose}) is more than the plan reads: taken to hold")
        pools = {pool_of(device) for device in meant}
        if any(device.partition for device in meant if pool_of(device) != CLAIMED_GPU):
            self.note(f"slices that are made on demand ({whose}) are not planned")
            return
        if CLAIMED_GPU in pools and len(pools) > 1:
            self.note(f"whole GPUs and slices both meet {whose}: its devices are not planned")
            return
        count = self._count(request, [sum(there.values()) for _, there in found], whose)
        if count:
            self._need(request, pools, count, found, whose)

    def _count(self, request: DeviceRequest, totals: list[int], whose: str) -> int:
        if request.count != UNKNOWN:
            return request.count
        if len(set(totals)) == 1:
            return totals[0]
        numbers = ", ".join(map(str, sorted(set(totals))))
        self.note(f"all devices of a node ({whose}) are {numbers}: not planned")
        return 0

    def _need(
        self,
        request: DeviceRequest,
        pools: set[str],
        count: int,
        found: list[tuple[_Alike, Counter[Device]]],
        whose: str,
    ) -> None:
        enough = [one for one, there in found if sum(there.values()) >= count]
        if not enough:
            raise self._none(request, whose, max(sum(there.values()) for _, there in found))
        if len(pools) > 1 and not self._devices.claims.devices:
            self.note(f"slices of any profile ({whose}) are planned by their nodes only")
        name = next(iter(pools)) if len(pools) == 1 else CLAIMED_MIG
        wanted = Counter({name: count})
        self._amounts.update(wanted if name == CLAIMED_MIG else _amounts(wanted))
        if need := self._devices.among(enough, pools, count):
            self._needs.append(need)

    def _none(self, request: DeviceRequest, whose: str, most: int) -> Refusal:
        wanted = f"{request.count} devices" if request.count > 1 else "a device"
        selected = f" where {_cut(' && '.join(request.selectors))}" if request.selectors else ""
        have = f"no node has more than {most}" if most else "no node offers one"
        offered = self._devices.offered()
        more = f" and {len(offered) - _MOST_NAMED} more" if len(offered) > _MOST_NAMED else ""
        works = f"{most} or less a pod" if most else f"one of {', '.join(offered[:_MOST_NAMED])}{more}"
        return Refusal(
            "NoSuchDevice",
            f"{self._set.name} claims {wanted} of class {request.device_class}{selected} ({whose}), and "
            + (f"{have}. Would work: {works}." if offered else f"{have}; none offers GPUs at all."),
        )

    def shape(self) -> PodShape:
        """The pods' shape with all that was gathered."""
        shape = self._set.shape
        requests = {name: amount for name, amount in shape.requests.items() if not is_claimed(name)}
        affinity = shape.affinity
        for need in self._needs:
            affinity = tuple(t if need in t else (*t, need) for t in affinity) or ((need,),)
        return replace(shape, requests={**requests, **self._amounts}, affinity=affinity)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 120 else flat[:117] + "…"
