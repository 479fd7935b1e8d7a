"""Small nodes with unlike devices, claims of every sort, and what fits together there by trying all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from random import Random
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import PodGroup, PodSet
from webhook.policy.engine.device_selectors import read_cluster

Json = dict[str, Any]
DRIVER, NIC_DRIVER = "gpu.nvidia.com", "nic.example"
ROOT, PARENT = "resource.kubernetes.io/pcieRoot", f"{DRIVER}/parentUUID"
SLOTS = 4
"""Memory slices of a GPU that is split on demand, as those of an A30."""


@dataclass(frozen=True)
class Gadget:
    """A device: what selectors see of it, what it has in common with others, what it draws from its GPU."""

    name: str
    kind: str  # gpu, mig, nic
    product: str
    values: tuple[tuple[str, str], ...] = ()
    board: str = ""
    slots: frozenset[int] = frozenset()
    tainted: bool = False

    def to_json(self) -> Json:
        """As a ResourceSlice has it."""
        driver = NIC_DRIVER if self.kind == "nic" else DRIVER
        stated = {"type": self.kind, "productName": self.product, "uuid": self.name, **dict(self.values)}
        device: Json = {
            "name": self.name,
            "attributes": {
                (key if "/" in key else f"{driver}/{key}"): {"string": value} for key, value in stated.items()
            },
        }
        if self.slots:
            counters = {f"memory-slice-{slot}": {"value": "1"} for slot in sorted(self.slots)}
            counters["compute"] = {"value": str(len(self.slots))}
            device["consumesCounters"] = [{"counterSet": self.board, "counters": counters}]
        if self.tainted:
            device["taints"] = [{"key": "sick", "effect": "NoSchedule"}]
        return device


@dataclass(frozen=True)
class Ask:
    """One alternative of a request: so many devices (0: all) of a kind, perhaps of one product."""

    kind: str
    count: int
    product: str = ""
    tolerates: bool = False

    def meets(self, gadget: Gadget) -> bool:
        """Whether the device is meant."""
        return gadget.kind == self.kind and self.product in ("", gadget.product)

    def ways(self, gadgets: Sequence[Gadget]) -> Iterator[tuple[Gadget, ...]]:
        """The sets of devices that serve, whatever else is in use."""
        meant = [gadget for gadget in gadgets if self.meets(gadget)]
        able = [gadget for gadget in meant if self.tolerates or not gadget.tainted]
        if self.count:
            yield from combinations(able, self.count)
        elif meant and meant == able:
            yield tuple(meant)

    def to_json(self, name: str) -> Json:
        """As a claim has it."""
        own = NIC_DRIVER if self.kind == "nic" else DRIVER
        request: Json = {
            "name": name,
            "deviceClassName": "nic" if self.kind == "nic" else f"{self.kind}.nvidia.com",
        }
        request |= {"count": self.count} if self.count else {"allocationMode": "All"}
        if self.product:
            expression = f"device.attributes['{own}'].productName == '{self.product}'"
            request["selectors"] = [{"cel": {"expression": expression}}]
        if self.tolerates:
            request["tolerations"] = [{"key": "sick", "operator": "Exists"}]
        return request


@dataclass(frozen=True)
class Asked:
    """A claim: its requests with their alternatives, and a rule over some of them."""

    requests: tuple[tuple[Ask, ...], ...]
    attribute: str = ""
    distinct: bool = False
    whose: tuple[int, ...] = ()

    def ways(self, gadgets: Sequence[Gadget]) -> Iterator[tuple[Gadget, ...]]:
        """The sets of devices that serve the claim when nothing is in use."""
        for chosen in product(*self.requests):
            for sets in product(*(ask.ways(gadgets) for ask in chosen)):
                allocation = [gadget for some in sets for gadget in some]
                if len(set(allocation)) == len(allocation) and self._ruled(sets):
                    yield tuple(allocation)

    def _ruled(self, sets: Sequence[tuple[Gadget, ...]]) -> bool:
        if not self.attribute:
            return True
        name = self.attribute.removeprefix(DRIVER + "/")
        values = [
            dict(gadget.values).get(name)
            for place in self.whose or range(len(sets))
            for gadget in sets[place]
        ]
        return None not in values and len(set(values)) == (
            len(values) if self.distinct else min(1, len(values))
        )

    def to_json(self) -> Json:
        """The `devices` of a claim's spec."""
        requests = []
        for place, choice in enumerate(self.requests):
            if len(choice) == 1:
                exactly = choice[0].to_json("")
                del exactly["name"]
                requests.append({"name": f"r{place}", "exactly": exactly})
            else:
                some = [ask.to_json(f"a{number}") for number, ask in enumerate(choice)]
                requests.append({"name": f"r{place}", "firstAvailable": some})
        devices: Json = {"requests": requests}
        if self.attribute:
            key = "distinctAttribute" if self.distinct else "matchAttribute"
            devices["constraints"] = [
                {key: self.attribute, "requests": [f"r{place}" for place in self.whose]}
            ]
        return devices


def together(gadgets: Sequence[Gadget], claims: Sequence[Asked], used: Sequence[Gadget] = ()) -> bool:
    """Whether the claims can all be served beside what is in use, by trying every set of devices for each."""
    ways: dict[Asked, list[frozenset[Gadget]]] = {}
    for claim in claims:
        if claim not in ways:
            ways[claim] = list(dict.fromkeys(map(frozenset, claim.ways(gadgets))))

    def served(place: int, used: frozenset[Gadget], first: int) -> bool:
        if place == len(claims):
            return True
        again = place + 1 < len(claims) and claims[place + 1] == claims[place]
        return any(
            not used & way and _within(used | way) and served(place + 1, used | way, number if again else 0)
            for number, way in enumerate(ways[claims[place]])
            if number >= first  # of equal claims the order makes no difference
        )

    return served(0, frozenset(used), 0)


def _within(used: Iterable[Gadget]) -> bool:
    drawn = [(gadget.board, slot) for gadget in used for slot in gadget.slots]
    return len(set(drawn)) == len(drawn)


@dataclass
class World:
    """Up to three nodes, two PodSets that claim, and what is in use already."""

    random: Random
    nodes: dict[str, tuple[Gadget, ...]] = field(default_factory=dict)
    claims: list[Asked] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    allocated: dict[str, tuple[Gadget, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plans = [self._gadgets() for _ in range(self.random.choice((1, 1, 2)))]
        for name in "abc"[: self.random.randint(1, 3)]:
            self.nodes[name] = self.random.choice(plans)
            if self.random.random() < 0.3:
                some = self.random.sample(
                    self.nodes[name], min(len(self.nodes[name]), self.random.randint(1, 2))
                )
                self.allocated[name] = tuple(some) if _within(some) else tuple(some[:1])
        sets = self.random.choice((1, 2))
        self.claims = [self._asked() for _ in range(sets)]
        self.counts = [self.random.randint(1, 3 if sets == 1 else 2) for _ in range(sets)]

    def _gadgets(self) -> tuple[Gadget, ...]:
        random = self.random
        rooted, gadgets = random.random() < 0.7, []
        for number in range(random.randint(1, 4)):
            values = ((ROOT, f"root-{random.randint(0, 1)}"),) if rooted and random.random() < 0.9 else ()
            board, sick = f"gpu-{number}", random.random() < 0.1
            brand = random.choice(("H100", "H100", "A100"))
            if random.random() < 0.3 and sum(bool(gadget.slots) for gadget in gadgets) < 2 * SLOTS:
                gadgets += self._split(board, brand, values)
            else:
                gadgets.append(Gadget(board, "gpu", brand, (*values, ("parentUUID", board)), tainted=sick))
        for number in range(random.randint(0, 2) if rooted else 0):
            gadgets.append(Gadget(f"nic-{number}", "nic", "CX7", ((ROOT, f"root-{random.randint(0, 1)}"),)))
        return tuple(gadgets)

    def _split(self, board: str, brand: str, values: tuple[tuple[str, str], ...]) -> list[Gadget]:
        own = (*values, ("parentUUID", board))
        whole = Gadget(board, "gpu", brand, own, board, frozenset(range(SLOTS)))
        halves = [frozenset((start, start + 1)) for start in (0, 2)]
        return [
            whole,
            *(Gadget(f"{board}-2g-{min(s)}", "mig", "2g", own, board, s) for s in halves),
            *(Gadget(f"{board}-1g-{s}", "mig", "1g", own, board, frozenset((s,))) for s in range(SLOTS)),
        ]

    def _ask(self) -> Ask:
        like = self.random.choice([gadget for gadgets in self.nodes.values() for gadget in gadgets])
        count = self.random.choice((1, 1, 1, 1, 2, 2, 0))
        brand = self.random.choice(("", like.product, "H100"))
        return Ask(like.kind, count, brand, self.random.random() < 0.3)

    def _asked(self) -> Asked:
        random = self.random
        requests = [
            tuple(self._ask() for _ in range(random.choice((1, 1, 1, 2))))
            for _ in range(random.choice((1, 1, 2)))
        ]
        if random.random() < 0.15:
            return Asked(((Ask("gpu", random.choice((1, 1, 2))),),))
        if random.random() < 0.5:
            return Asked(tuple(requests))
        whose = tuple(sorted(random.sample(range(len(requests)), random.randint(1, len(requests)))))
        return Asked(
            tuple(requests),
            random.choice((ROOT, ROOT, PARENT)),
            random.random() < 0.3,
            whose if random.random() < 0.7 else (),
        )

    def on(self, name: str, counts: Sequence[int], further_claims: Sequence[Asked] = ()) -> bool:
        """Whether a node holds so many pods of each PodSet, beside further claims."""
        pods = [claim for claim, count in zip(self.claims, counts, strict=True) for _ in range(count)]
        return together(self.nodes[name], [*further_claims, *pods], self.allocated.get(name, ()))

    def feasible(self, others: dict[str, list[Asked]] | None = None) -> bool:
        """Whether the gang has a place, by trying every number of pods on every node."""
        names = list(self.nodes)
        ways = product(*(product(*(range(count + 1) for count in self.counts)) for _ in names))
        return any(
            [sum(column) for column in zip(*way, strict=True)] == self.counts
            and all(
                self.on(name, counts, (others or {}).get(name, []))
                for name, counts in zip(names, way, strict=True)
                if any(counts)
            )
            for way in ways
        )

    def snapshot(self) -> Snapshot:
        """The cluster."""
        nodes = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {"allocatable": {"cpu": "64"}},
            }
            for name in self.nodes
        ]
        slices = [resource_slice for name in self.nodes for resource_slice in self._slices(name)]
        claims = [
            _claim("ResourceClaimTemplate", f"t{n}", {"spec": {"devices": c.to_json()}})
            for n, c in enumerate(self.claims)
        ]
        allocated_claims = [
            _claim("ResourceClaim", f"given-{name}", {}, self._results(name, some))
            for name, some in self.allocated.items()
        ]
        return read_cluster(
            [("world", [*nodes, *slices, *claims, *allocated_claims, _NIC_CLASS, _GPU_CLASS])]
        )

    def _slices(self, name: str) -> Iterator[Json]:
        """As drivers write them: counters in a slice of their own, or (Kubernetes 1.34) with the devices."""
        gadgets = self.nodes[name]
        boards = sorted({gadget.board for gadget in gadgets if gadget.slots})
        full = {f"memory-slice-{slot}": {"value": "1"} for slot in range(SLOTS)} | {
            "compute": {"value": str(SLOTS)}
        }
        shared = [{"name": board, "counters": full} for board in boards]
        gpus = [gadget.to_json() for gadget in gadgets if gadget.kind != "nic"]
        if self.random.random() < 0.5:
            yield _slice(name, DRIVER, devices=gpus[::2])
            yield _slice(name, DRIVER, devices=gpus[1::2])
            yield _slice(name, DRIVER, sharedCounters=shared)
        else:
            yield _slice(name, DRIVER, devices=gpus, sharedCounters=shared)
        yield _slice(
            name, NIC_DRIVER, devices=[gadget.to_json() for gadget in gadgets if gadget.kind == "nic"]
        )

    def _results(self, name: str, some: Sequence[Gadget]) -> Json:
        results = [
            {"driver": NIC_DRIVER if gadget.kind == "nic" else DRIVER, "pool": name, "device": gadget.name}
            for gadget in some
        ]
        return {"allocation": {"devices": {"results": results}}}

    def group(self, name: str = "team/Job/gang") -> PodGroup:
        """The gang."""
        sets = tuple(PodSet(f"set-{n}", count, self._shape(n)) for n, count in enumerate(self.counts))
        return PodGroup(name, sets, reserve="nodes")

    def _shape(self, number: int) -> PodShape:
        """Whole GPUs are asked for in limits, where no device plugin gives them; all else by claim."""
        for gpus in (1, 2):
            if self.claims[number] == Asked(((Ask("gpu", gpus),),)):
                return PodShape({"pods": 1, "nvidia.com/gpu": gpus})
        return PodShape({"pods": 1}, claims=(ClaimUse(f"t{number}", True),))


_GPU_CLASS: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.nvidia.com"},
    "spec": {
        "extendedResourceName": "nvidia.com/gpu",
        "selectors": [
            {"cel": {"expression": f"device.driver == '{DRIVER}'"}},
            {"cel": {"expression": f"device.attributes['{DRIVER}'].type == 'gpu'"}},
        ],
    },
}
_NIC_CLASS: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "nic"},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{NIC_DRIVER}'"}}]},
}


def _slice(node: str, driver: str, **fields: Any) -> Json:
    spec = {"driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1}, **fields}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": spec,
    }


def _claim(kind: str, name: str, spec: Json, status: Json | None = None) -> Json:
    metadata = {"name": name, "namespace": "team"}
    claim: Json = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return claim | ({"status": status} if status else {})
