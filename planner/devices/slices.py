"""ResourceSlices: the devices that drivers offer on each node.

Source: `resource.k8s.io` ResourceSlice (v1, v1beta2; v1beta1 with `basic`). A pool (`spec.pool`) may have its
devices and their shared counters in several slices; only slices of its newest generation count, and those of
the generation before it until the newest has all of its slices: a driver updates one after the other, and
kube-scheduler allocates nothing of the pool meanwhile. NVIDIA's driver writes the counters of all GPUs into
one slice and each GPU's devices into another (Kubernetes 1.35 and later; earlier, one slice had both).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.devices.device import Device, Value
from planner.model.labels import Taint

CHANNEL_DRIVER = "compute-domain.nvidia.com"
"""The driver of ComputeDomains. Its devices, the channels, are not read: there are thousands on each node,
and they are not GPUs.
"""


DeviceId = tuple[str, str, str]
"""Driver, pool (`spec.pool`) and name of a device."""


Counters = tuple[tuple[str, int], ...]
"""Pairs of the name of a counter and an amount."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One device as a ResourceSlice lists it, including what distinguishes it from otherwise equal devices.

    `unique_attributes`: the attributes in `device.SINGLE`, by full name. `consumes_counters`: by counter set,
    what the device consumes of the counters that it shares with others.
    """

    device: Device
    unique_attributes: tuple[tuple[str, Value], ...] = ()
    consumes_counters: tuple[tuple[str, Counters], ...] = ()
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """One ResourceSlice. `node`: "" if its devices belong to no single node. `offers`: by the device's name.
    `counters`: by counter set. `of_pool`: the number of slices in the pool's generation, 0 if not stated.
    """

    node: str
    driver: str
    pool: str
    generation: int = 0
    offers: Mapping[str, Offer] = field(default_factory=dict)
    counters: Mapping[str, Counters] = field(default_factory=dict)
    of_pool: int = 0


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A taint for all devices of this driver and pool, and of this name; None stands for any (the API's
    DeviceTaintRule).
    """

    taint: Taint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def applies_to(self, piece: Slice) -> bool:
        """Reports whether the rule is about the driver and pool of the slice."""
        return self.driver in (None, piece.driver) and self.pool in (None, piece.pool)


@dataclass(frozen=True, slots=True)
class NodeSlices:
    """The slices of one node's drivers.

    They are combined only on access: after a claim changes, most nodes are never accessed.
    """

    slices: tuple[Slice, ...] = ()

    def offers(self) -> dict[DeviceId, Offer]:
        """Returns the devices of all slices."""
        return {(s.driver, s.pool, name): offer for s in self.slices for name, offer in s.offers.items()}

    def counters(self) -> dict[DeviceId, Counters]:
        """Returns the amounts of the shared counters, by driver, pool and counter set."""
        return {
            (s.driver, s.pool, name): counters for s in self.slices for name, counters in s.counters.items()
        }


@dataclass(frozen=True, slots=True)
class Slices:
    """All ResourceSlices, by node.

    `not_node_local`: the distinct devices that belong to no single node; the planner does not count them.
    """

    by_node: Mapping[str, NodeSlices] = field(default_factory=dict)
    not_node_local: frozenset[Device] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.by_node or self.not_node_local)


NO_SLICES = Slices()


def gathered(slices: Iterable[Slice], rules: Sequence[TaintRule] = ()) -> Slices:
    """Returns the slices by node, without older generations of a pool, and with the taints of these rules."""
    # Of a device in two generations the newer entry is the last, and so counts in `NodeSlices`.
    slice_list = sorted((_tainted(piece, rules) for piece in slices), key=lambda piece: piece.generation)
    oldest = _oldest_generations(slice_list)
    nodes: dict[str, list[Slice]] = {}
    not_node_local: set[Device] = set()
    for piece in slice_list:
        if piece.generation < oldest[piece.driver, piece.pool]:
            continue
        if piece.node:
            nodes.setdefault(piece.node, []).append(piece)
        else:
            not_node_local.update(offer.device for offer in piece.offers.values())
    return Slices(
        {node: NodeSlices(tuple(pieces)) for node, pieces in nodes.items()}, frozenset(not_node_local)
    )


def _oldest_generations(slices: Iterable[Slice]) -> dict[tuple[str, str], int]:
    """Returns by driver and pool the oldest generation that counts: the newest, or the one before it if the
    newest has fewer slices than it states.
    """
    generations: dict[tuple[str, str], dict[int, list[Slice]]] = {}
    for piece in slices:
        pool = generations.setdefault((piece.driver, piece.pool), {})
        pool.setdefault(piece.generation, []).append(piece)
    oldest = {}
    for name, pool in generations.items():
        newest = max(pool)
        complete = len(pool[newest]) >= pool[newest][0].of_pool
        oldest[name] = newest if complete else max((n for n in pool if n < newest), default=newest)
    return oldest


def _tainted(piece: Slice, rules: Iterable[TaintRule]) -> Slice:
    applied = [rule for rule in rules if rule.applies_to(piece)]
    if not applied:
        return piece
    offers = {}
    for name, offer in piece.offers.items():
        added = [rule.taint for rule in applied if rule.device in (None, name)]
        offers[name] = replace(offer, taints=sorted_taints((*offer.taints, *added)))
    return replace(piece, offers=offers)


def sorted_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Returns the different taints in an order that does not depend on that of the objects."""
    return tuple(sorted(set(taints), key=lambda taint: (taint.key, taint.value, taint.effect)))
