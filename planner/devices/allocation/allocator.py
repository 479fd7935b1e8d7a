"""Decides which claims the devices of one node can serve together.

The answer is exact unless the search reaches `MAX_STEPS` or `_MAX_CHOICES`: claims for which no assignment
has been found by then count as not fitting.

Three steps, here for a node with two GPUs (g0, g1) and two NICs (n0, n1), one GPU and one NIC on each of two
PCIe roots, and for two claims "one GPU and one NIC with the same pcieRoot":

    PCIe root 0: g0 n0     claim a: GPU + NIC, same pcieRoot
    PCIe root 1: g1 n1     claim b: GPU + NIC, same pcieRoot

1. Each claim becomes a *demand*: how many of which `DeviceGroup` it needs. A group is a set of devices that
   must be allocated together: here one group of two parts, a GPU of {g0, g1} and a NIC of {n0, n1}, tied by
   pcieRoot. Requests that no constraint ties become groups of one device each. A claim with alternatives
   (`firstAvailable`) becomes several demands, one of which must be met. The two claims need 2 × that group.
2. The node's devices are divided into *partitions* that share neither counters (amounts that several
   devices use) nor values of a tied attribute: {g0, n0} and {g1, n1}. Allocating devices of one partition
   does not affect another.
3. `demand_fit.py` subtracts the numbers of groups that each partition can hold, until nothing of the demand
   is left: 2 - 1 - 1 = 0, so both claims fit.

Sets of devices are bit masks: bit i is device i of the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice, product

from planner.devices.allocation.demand_fit import Demand, DeviceGroup, demand_fits, solve
from planner.devices.allocation.partitions import MAX_STEPS, Vector
from planner.devices.device_masks import bits
from planner.devices.node_devices import NodeDevices
from planner.model.claim_spec import ClaimSpec, DeviceConstraint, DeviceRequest, claim_spec_of
from planner.model.effort.work_budget import BudgetEnded, WorkBudget
from planner.model.labels import Toleration

_MAX_CHOICES = 512
"""The maximum number of combinations of alternatives that are tried for requests that a constraint links.
Kubernetes allows 8 alternatives for a request, so three linked requests are searched completely (8³ = 512).
Further combinations are not tried.
"""

MAX_DEVICES = 32
"""The maximum number of devices of a claim: the API's AllocationResultsMaxSize. kube-scheduler allocates no
claim that needs more.
"""

Wanted = tuple[tuple[ClaimSpec, int], ...]
"""Pairs of a claim and the requested number of such claims, sorted by the claim's name."""


@lru_cache(maxsize=65_536)  # an entry for each kind of node, its allocated devices, and set of claims
def fits(node_devices: NodeDevices, allocated: int, wanted: Wanted, plugin_gpus: int) -> bool:
    """Reports whether all these claims, and `plugin_gpus` GPUs of the device plugin, can be allocated without
    using a device twice. `allocated`: the mask of the devices that are already in use.

    The result is cached: equal nodes share their `NodeDevices`, and plans repeat the same questions.
    """
    claims: Counter[tuple[Demand, ...]] = Counter()
    for claim_spec, count in wanted:
        for alternatives in _alternative_demands(node_devices, claim_spec):
            claims[alternatives] += count
    demand: Counter[DeviceGroup] = Counter()
    if plugin_gpus:
        # The device plugin may give a pod any whole GPUs of the node.
        demand[DeviceGroup((node_devices.whole_gpus(),), (1,))] = plugin_gpus
    # Claims with the fewest alternatives first, so that the fewest combinations are tried.
    ordered = sorted(claims.items(), key=lambda item: len(item[0]))
    try:
        # An empty tuple of alternatives belongs to a claim that the node can never meet.
        return all(claims) and _some_choice_fits(
            node_devices, allocated, ordered, demand, WorkBudget(MAX_STEPS)
        )
    except BudgetEnded:
        return False


def _some_choice_fits(
    node_devices: NodeDevices,
    allocated: int,
    claims: Sequence[tuple[tuple[Demand, ...], int]],
    demand: Counter[DeviceGroup],
    budget: WorkBudget,
) -> bool:
    """Reports whether the demand, and some choice of alternatives for each claim, fit on the node.

    Raises `BudgetEnded`.
    """
    if not claims:
        return demand_fits(node_devices, allocated, tuple(sorted(demand.items())), budget)
    (alternatives, count), rest = claims[0], claims[1:]
    for split in _splits(count, len(alternatives)):
        budget.spend(1 + len(alternatives) // 16)  # 16 alternatives cost about as much as one device
        total = Counter(demand)
        for alternative, times in zip(alternatives, split, strict=True):
            if times:
                total.update({group: device_count * times for group, device_count in alternative})
        # Skip this split if the claims up to here already do not fit. With a single alternative, or for the
        # last claim, the check would save nothing.
        early = len(alternatives) > 1 and rest
        if early and not demand_fits(node_devices, allocated, tuple(sorted(total.items())), budget):
            continue
        if _some_choice_fits(node_devices, allocated, rest, total, budget):
            return True
    return False


def needs_too_many(node_devices: NodeDevices, claim_spec: ClaimSpec) -> bool:
    """Reports whether the claim would get more than `MAX_DEVICES` devices on this node, whichever of the
    alternatives are chosen that the node can serve.
    """
    return _fewest(node_devices, claim_spec) > MAX_DEVICES


def overlaps_itself(node_devices: NodeDevices, claim_spec: ClaimSpec) -> bool:
    """Reports whether a request with adminAccess would need a device that another request of the claim has:
    within a claim kube-scheduler gives each device once, also to those that take none.
    """
    requests = [request for choice in claim_spec.choices for request in choice]
    if not any(request.admin_access for request in requests):
        return False
    usable = _any_of(node_devices, requests, range(len(requests)))
    fewest = _fewest(node_devices, claim_spec)
    return usable.bit_count() < fewest and not free_to_share(node_devices, usable)


def _fewest(node_devices: NodeDevices, claim_spec: ClaimSpec) -> int:
    """Returns how many devices the claim gets on this node, with those alternatives for which the node has
    enough devices that take the fewest; 0 if it has too few for some request alone.
    """
    fewest = 0
    for choice in claim_spec.choices:
        sizes = [(node_devices.count(request), node_devices.matching(request)[1]) for request in choice]
        counts = [count for count, allowed in sizes if count <= allowed.bit_count()]
        if not counts:
            return 0
        fewest += min(counts)
    return fewest


def tolerating_all(claim_spec: ClaimSpec) -> ClaimSpec:
    """Returns the claim with requests that tolerate every taint of a device."""
    all_taints = (Toleration(operator="Exists"),)
    choices = [
        [replace(request, tolerations=all_taints) for request in choice] for choice in claim_spec.choices
    ]
    return claim_spec_of(choices, claim_spec.constraints)


def _splits(count: int, ways: int) -> Iterator[Vector]:
    """Yields every division of `count` among `ways` alternatives: for 2 among 2 (2, 0), (1, 1), (0, 2)."""
    if ways == 1:
        yield (count,)
        return
    for first in range(count, -1, -1):
        for remainder in _splits(count - first, ways - 1):
            yield (first, *remainder)


@lru_cache(maxsize=16_384)  # an entry for each kind of node and kind of claim
def _alternative_demands(node_devices: NodeDevices, claim_spec: ClaimSpec) -> tuple[tuple[Demand, ...], ...]:
    """Returns, for each independent set of requests of the claim, the demands of which one must be met.

    Two requests are in one set if a constraint links them; a constraint that names no requests links all.
    Demands that the node does not meet even with no device allocated are left out.
    """
    if needs_too_many(node_devices, claim_spec) or overlaps_itself(node_devices, claim_spec):
        return ((),)
    linked = [
        sorted({request for request, _ in constraint.requests})
        for constraint in claim_spec.constraints
        if constraint.requests
    ]
    if any(not constraint.requests for constraint in claim_spec.constraints):
        linked.append(list(range(len(claim_spec.choices))))
    parts = []
    for requests in _linked_groups(range(len(claim_spec.choices)), linked):
        choices = product(*(_alternatives(node_devices, claim_spec, request) for request in requests))
        demands = (
            _demand(node_devices, claim_spec, dict(zip(requests, choice, strict=True)))
            for choice in islice(choices, _MAX_CHOICES)
        )
        feasible = _feasible_demands(node_devices, [demand for demand in demands if demand is not None])
        parts.append(_undominated_demands(feasible))
    return tuple(parts)


def _alternatives(node_devices: NodeDevices, claim_spec: ClaimSpec, request: int) -> list[tuple[int, ...]]:
    """Returns the alternatives of a request (`firstAvailable`) as tuples of indexes.

    Alternatives that each take exactly one device under the same constraints share a tuple: together they
    accept any of their devices. An alternative for several devices is dropped if such a tuple accepts each of
    these devices: one device is then enough.
    """
    choice = claim_spec.choices[request]
    taking = [
        index
        for index, alternative in enumerate(choice)
        if not alternative.admin_access
        and not free_to_share(node_devices, node_devices.matching(alternative)[1])
    ]

    def constraints_of(place: int) -> tuple[bool, ...]:
        return tuple(constraint.applies_to(request, place) for constraint in claim_spec.constraints)

    merged: dict[tuple[int, ...], None] = {}
    for place, alternative in enumerate(choice):
        singles = [
            other
            for other in taking
            if constraints_of(other) == constraints_of(place) and node_devices.count(choice[other]) == 1
        ]
        any_of = _any_of(node_devices, choice, singles)
        if place in singles:
            merged[tuple(singles)] = None
        elif place not in taking or not singles or node_devices.matching(alternative)[1] & ~any_of:
            merged[(place,)] = None
    return list(merged)


def _any_of(node_devices: NodeDevices, choice: Sequence[DeviceRequest], places: Sequence[int]) -> int:
    """Returns the mask of the devices that at least one of these alternatives can use."""
    mask = 0
    for place in places:
        mask |= node_devices.matching(choice[place])[1]
    return mask


_Constrained = tuple[DeviceConstraint, list[int]]
"""A constraint, and the requests to which it applies."""


_Tie = tuple[str, bool, list[int]]
"""A tie between requests: the attribute, whether its values must differ, and the tied requests."""


def _demand(
    node_devices: NodeDevices, claim_spec: ClaimSpec, chosen: Mapping[int, tuple[int, ...]]
) -> Demand | None:
    """Returns the demand of these requests, or None if the node can never meet it.

    `chosen`: for each request, the indexes of the alternatives that it may use.
    """
    # Alternatives that share a tuple have the same count and constraints, so the first stands for all.
    alternative = {request: claim_spec.choices[request][places[0]] for request, places in chosen.items()}
    constraints: list[_Constrained] = [
        (
            constraint,
            [request for request, places in chosen.items() if constraint.applies_to(request, places[0])],
        )
        for constraint in claim_spec.constraints
    ]
    masks: dict[int, int] = {}
    for request in alternative:
        mask = _any_of(node_devices, claim_spec.choices[request], chosen[request])
        for constraint, requests in constraints:
            if request in requests:
                mask &= _with_attribute(node_devices, constraint.attribute)
        if mask.bit_count() < node_devices.count(alternative[request]):
            return None
        masks[request] = mask
    taking = [
        request
        for request in alternative
        if not alternative[request].admin_access and not free_to_share(node_devices, masks[request])
    ]
    ties = _ties(node_devices, constraints, taking, masks)
    demand: Counter[DeviceGroup] = Counter()
    for requests in _linked_groups(taking, [tied for _, _, tied in ties]):
        counts = {request: node_devices.count(alternative[request]) for request in requests}
        demand.update(_groups(counts, masks, ties))
    return tuple(sorted(demand.items()))


def _ties(
    node_devices: NodeDevices,
    constraints: Sequence[_Constrained],
    taking: Sequence[int],
    masks: Mapping[int, int],
) -> list[_Tie]:
    """Returns the ties that the constraints impose on the requests that take devices."""
    return [
        (constraint.attribute, constraint.distinct, tied)
        for constraint, requests in constraints
        if (tied := [request for request in requests if request in taking])
        # If all devices have different values, a distinct constraint always holds: no tie is needed.
        and not (
            constraint.distinct
            and _all_differ(node_devices, [masks[request] for request in tied], constraint.attribute)
        )
    ]


def _groups(
    counts: Mapping[int, int], masks: Mapping[int, int], ties: Sequence[_Tie]
) -> Counter[DeviceGroup]:
    """Returns the device groups for these requests, with the number of each group.

    `counts`: the number of devices of each request; the requests are linked by ties, or there is only one. If
    a tie has an effect, all requests form one group. Otherwise each device is a separate group.
    """
    requests = list(counts)
    own_ties = [
        (attribute, distinct, tuple(sorted(map(requests.index, tied))))
        for attribute, distinct, tied in ties
        # A tie over a single device has no effect. `counts` has all requests of a tie or none.
        if tied[0] in counts and sum(counts[request] for request in tied) > 1
    ]
    if own_ties:
        group_masks = tuple(masks[request] for request in requests)
        return Counter([DeviceGroup(group_masks, tuple(counts.values()), tuple(sorted(own_ties)))])
    groups: Counter[DeviceGroup] = Counter()
    for request, count in counts.items():
        groups[DeviceGroup((masks[request],), (1,))] += count
    return groups


def _feasible_demands(node_devices: NodeDevices, demands: Sequence[Demand]) -> list[Demand]:
    """Returns the demands that the node meets with no device allocated, those with the fewest devices first.

    Demands for which the search reaches `MAX_STEPS` are kept: they may be met.
    """
    steps_left, feasible = MAX_STEPS, []
    for demand in sorted(demands, key=_device_count):
        fit, steps = solve(node_devices, 0, demand) if steps_left > 0 else (None, 0)
        steps_left -= steps
        if fit is not False:
            feasible.append(demand)
    return feasible


def _device_count(demand: Demand) -> int:
    return sum(group.size * number for group, number in demand)


def _undominated_demands(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """Returns the demands without those that another demand makes superfluous.

    Demands for one device are merged into one demand for any of their devices. A demand for several devices
    is superfluous if the merged demand accepts each of them.
    """
    if () in demands:
        return ((),)  # an alternative that takes no device is better than all others
    any_of = 0
    for demand in demands:
        if _is_single(demand) and demand[0][1] == 1:
            any_of |= demand[0][0].masks[0]
    kept: dict[Demand, None] = {((DeviceGroup((any_of,), (1,)), 1),): None} if any_of else {}
    kept.update(
        {demand: None for demand in demands if not _is_single(demand) or demand[0][0].masks[0] & ~any_of}
    )
    return tuple(kept)


def _is_single(demand: Demand) -> bool:
    """Reports whether the demand is for devices of a single mask; a group without ties has only one mask."""
    return len(demand) == 1 and not demand[0][0].ties


def _with_attribute(node_devices: NodeDevices, attribute: str) -> int:
    """Returns the mask of the devices that have the attribute: only they can meet a constraint on it."""
    return sum(
        1 << index for index, device in enumerate(node_devices.devices) if device.value(attribute) is not None
    )


def _all_differ(node_devices: NodeDevices, masks: Sequence[int], attribute: str) -> bool:
    """Reports whether all devices in the masks have different values of the attribute."""
    union = 0
    for mask in masks:
        union |= mask
    values = [node_devices.devices[index].value(attribute) for index in bits(union)]
    return len(set(values)) == len(values)


def free_to_share(node_devices: NodeDevices, mask: int) -> bool:
    """Reports whether a device in the mask is shareable: several claims can use it at a time. A request that
    matches such a device therefore counts as fitting, and takes no device.
    """
    return any(node_devices.devices[index].device.shareable for index in bits(mask))


def _linked_groups(requests: Sequence[int], links: Sequence[Sequence[int]]) -> list[list[int]]:
    """Returns the requests in groups: two requests are in one group if links connect them, directly or
    through other requests.
    """
    groups: list[list[int]] = [[request] for request in requests]
    for linked in links:
        touched = [group for group in groups if any(request in group for request in linked)]
        if len(touched) > 1:
            groups = [group for group in groups if group not in touched]
            groups.append(sorted(request for group in touched for request in group))
    return groups
