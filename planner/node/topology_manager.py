"""Decides whether the kubelet's Topology Manager admits a pod, from NUMA zones and hints.

Source: k8s.io/kubernetes pkg/kubelet/cm/topologymanager, read at v1.37.2. A hint is a set of zones that can
provide one requested resource; it is preferred if no smaller set has the capacity for it. `single-numa-node`
admits a pod if one zone provides every resource; `restricted` if one set of zones is a preferred hint for
every resource; other policies admit everything. A refused pod gets `TopologyAffinityError` and is not
retried. The managers of CPUs, memory and devices then take their amounts from the chosen set (`draw`).

The kubelet's options are those of its defaults: with `prefer-closest-numa-nodes` it chooses by distances,
which no object tells.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from planner.model.node import Node
from planner.model.pod import ContainerRequest
from planner.model.resources import GPU_RESOURCES, Resources

SINGLE = "single-numa-node"


RESTRICTED = "restricted"


MAX_ZONES = 8
"""Maximum number of zones; the Topology Manager starts on no node with more (maxAllowableNUMANodes)."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A NUMA zone: its allocatable and its free amounts, in base units."""

    name: str
    allocatable: Resources
    available: Resources


@dataclass(frozen=True, slots=True)
class NumaNode:
    """The content of a node's NodeResourceTopology. `policy` and `scope` are spelled as the kubelet does."""

    name: str
    policy: str
    scope: str
    zones: tuple[Zone, ...]


@dataclass(frozen=True, slots=True)
class Misfit:
    """A request that the kubelet refuses.

    `zones`: by resource, the fewest empty zones that together have the requested amount; 0 if even all of
    them do not have it. `free`: what each zone had free for the request. `beside`: whether containers before
    it had taken a part of the zones.
    """

    request: ContainerRequest
    zones: Mapping[str, int]
    free: tuple[Resources, ...]
    beside: bool

    @property
    def requested(self) -> dict[str, int]:
        """The requested amounts of the resources that zones have."""
        return {name: self.request.requests[name] for name in self.zones}

    @property
    def closest(self) -> dict[str, int]:
        """What was free of these resources in one zone: the zone that comes closest to the request.

        The amounts are those of one real zone: the largest amount of each resource may be in another zone
        each, so that no zone has them together.
        """
        zone = max(self.free, key=lambda zone: closeness(zone, self.requested))
        return {name: zone.get(name, 0) for name in self.zones}


POLICY_LABEL = "bayplan.dev/topology-manager-policy"
"""The node label with the Topology Manager's policy, which takes precedence over NodeResourceTopology."""


SCOPE_LABEL = "bayplan.dev/topology-manager-scope"
"""The node label with the Topology Manager's scope; used only on nodes that also have `POLICY_LABEL`."""


GPUS_LABEL = "bayplan.dev/gpus-per-numa-node"
"""The node label with the number of GPUs in a NUMA zone. Administrators may set it on nodes without a
NodeResourceTopology.
"""


def aligned(node: Node, published: NumaNode | None) -> NumaNode | None:
    """Returns the node's zones if its kubelet refuses pods that it cannot align, else None.

    The zones come from the node's NodeResourceTopology (`published`); without one, from `GPUS_LABEL`, which
    states GPUs only. A policy in `POLICY_LABEL` takes precedence over that of the object.
    """
    labels = node.labels
    policy, scope = labels.get(POLICY_LABEL, ""), labels.get(SCOPE_LABEL, "")
    if published is None:
        numa_node = _by_labels(node, policy, scope or "container") if GPUS_LABEL in labels else None
    elif policy:
        numa_node = NumaNode(node.name, policy, scope or published.scope, published.zones)
    else:
        numa_node = published
    return numa_node if numa_node and numa_node.zones and numa_node.policy in (SINGLE, RESTRICTED) else None


def _by_labels(node: Node, policy: str, scope: str) -> NumaNode | None:
    gpus_per_zone = int(node.labels[GPUS_LABEL]) if node.labels[GPUS_LABEL].isdecimal() else 0
    gpus = {name: node.allocatable.get(name, 0) for name in GPU_RESOURCES if node.allocatable.get(name, 0)}
    if not gpus_per_zone or not gpus or -(-max(gpus.values()) // gpus_per_zone) > MAX_ZONES:
        return None
    zones = []
    for number in range(-(-max(gpus.values()) // gpus_per_zone)):
        part = {
            name: max(0, min(gpus_per_zone, amount - number * gpus_per_zone)) for name, amount in gpus.items()
        }
        zones.append(Zone(f"node-{number}", part, part))
    return NumaNode(node.name, policy, scope, tuple(zones))


def misfit(node: NumaNode, requests: Sequence[ContainerRequest], *, occupied: bool) -> Misfit | None:
    """Returns a `Misfit` for the first request that the kubelet would refuse, None if it admits all in order.

    `occupied` False checks the empty node. A request that `stays` reduces the free amounts for later
    requests; an init container's does not.
    """
    if node.policy not in (SINGLE, RESTRICTED) or not node.zones:
        return None
    allocatable = [zone.allocatable for zone in node.zones]
    free = [dict(zone.available if occupied else zone.allocatable) for zone in node.zones]
    return allocate(node.policy, allocatable, free, requests)


def allocate(
    policy: str,
    allocatable: Sequence[Resources],
    free: list[dict[str, int]],
    requests: Iterable[ContainerRequest],
) -> Misfit | None:
    """Places the requests in the zones one after the other; returns a `Misfit` for the first that is refused,
    None if all are admitted.

    `allocatable`: the amounts of the empty zones. `free`: the free amounts, which are modified.
    """
    beside = False
    for request in requests:
        aligned = {
            name: amount
            for name, amount in request.requests.items()
            if _is_aligned(allocatable, name, amount)
        }
        chosen = _chosen(policy, allocatable, free, aligned)
        if chosen is None:
            widths = {name: _fewest(allocatable, name, amount) for name, amount in aligned.items()}
            return Misfit(request, widths, tuple(free), beside)
        if request.stays:
            draw(allocatable, free, chosen, aligned)
            beside = True
    return None


def fewest(node: NumaNode, resource: str, amount: int) -> int:
    """Returns the fewest zones that have this amount when empty, 0 if all together do not have it."""
    return _fewest([zone.allocatable for zone in node.zones], resource, amount)


def _fewest(allocatable: Sequence[Resources], resource: str, amount: int) -> int:
    offers = sorted((zone.get(resource, 0) for zone in allocatable), reverse=True)
    totals = itertools.accumulate(offers)
    return next((count for count, total in enumerate(totals, start=1) if total >= amount), 0)


def closeness(zone: Resources, requests: Resources) -> tuple[int, ...]:
    """Returns how close a zone comes to having these amounts, for comparisons: how many thousandths of each
    it has, the scarcest first.
    """
    return tuple(sorted(min(1000, 1000 * zone.get(n, 0) // max(1, need)) for n, need in requests.items()))


def _is_aligned(allocatable: Sequence[Resources], resource: str, amount: int) -> bool:
    """Reports whether the Topology Manager aligns this amount of the resource. It ignores amounts of 0, and
    resources that no zone lists.
    """
    return amount > 0 and any(resource in zone for zone in allocatable)


def _chosen(
    policy: str, allocatable: Sequence[Resources], free: Sequence[Resources], aligned: Mapping[str, int]
) -> tuple[int, ...] | None:
    """Returns the indexes of the zones that the kubelet chooses for the amounts (`aligned`); () if there are
    no amounts, None if the kubelet refuses the request.

    Policy `single-numa-node` allows one zone. `restricted` allows the smallest number of zones whose
    allocatable amounts suffice, which must be the same for every resource. Of the sets with this number of
    zones, the first in the kubelet's order (`_sets`) in which all amounts are free is chosen.
    """
    if not aligned:
        return ()
    widths = {_fewest(allocatable, name, amount) for name, amount in aligned.items()}
    if policy == SINGLE:
        widths = {1}
    if len(widths) != 1:  # restricted: no set of zones is a preferred hint for every resource
        return None
    for zones in _sets(len(free), widths.pop()):
        if zones and all(
            sum(free[zone].get(name, 0) for zone in zones) >= amount for name, amount in aligned.items()
        ):
            return zones
    return None


@lru_cache(maxsize=128)  # an entry for each number of zones and width: a node has at most eight zones
def _sets(count: int, width: int) -> tuple[tuple[int, ...], ...]:
    """Returns the sets of `width` of `count` zones in the order in which the kubelet prefers them.

    Of bit masks with equally many bits, it prefers the smaller number (bitmask.IsNarrowerThan): zones 1 and 2
    (0b0110) before zones 0 and 3 (0b1001).
    """
    return tuple(sorted(itertools.combinations(range(count), width), key=lambda zones: zones[::-1]))


def draw(
    allocatable: Sequence[Resources],
    free: list[dict[str, int]],
    zones: Sequence[int],
    aligned: Mapping[str, int],
) -> None:
    """Subtracts each amount from these zones, from one after the other at most what is free there.

    CPUs are taken in the order of `_cpu_order`, memory from the zone with the lowest number on
    (updateMachineState in memorymanager/policy_static.go). Which devices of several zones are taken is up to
    the device plugin and, without its preference, to chance (devicesToAllocate in devicemanager/manager.go);
    they count as taken from the zone with the lowest number on too.
    """
    for name, amount in aligned.items():
        for zone in _cpu_order(allocatable, free, zones, amount) if name == "cpu" else zones:
            part = min(amount, free[zone].get(name, 0))
            free[zone][name] = free[zone].get(name, 0) - part
            amount -= part


def _cpu_order(
    allocatable: Sequence[Resources], free: Sequence[Resources], zones: Sequence[int], amount: int
) -> Sequence[int]:
    """Returns the zones in the order in which the CPU Manager takes this amount from them.

    It takes zones that are wholly free and wholly needed first, then those with the fewest free CPUs
    (takeByTopologyNUMAPacked in cpumanager/cpu_assignment.go; zones of different sockets it compares by their
    sockets, which no object tells).
    """
    if len(zones) == 1:
        return zones
    by_free = sorted(zones, key=lambda zone: (free[zone].get("cpu", 0), zone))
    whole: list[int] = []
    for zone in by_free:
        size = free[zone].get("cpu", 0)
        if size == allocatable[zone].get("cpu", 0) and size <= amount:
            whole.append(zone)
            amount -= size
    return [*whole, *(zone for zone in by_free if zone not in whole)]
