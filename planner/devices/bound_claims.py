"""Accounts for the claims of bound pods: as requests of the pods, and as devices in use on their node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from planner.devices.availability import AvailableDevices
from planner.devices.catalog import Devices
from planner.devices.claims import ResourceClaim
from planner.devices.pools import pool_amounts, pool_of, pools_of
from planner.model.claim_spec import PREFIX, UNKNOWN, ClaimSpec
from planner.model.names import namespace_of
from planner.model.node import Node
from planner.model.pod import BoundPod, ClaimUse
from planner.model.resources import GPU, Resources


def with_claimed_devices(devices: Devices, pods: Iterable[BoundPod]) -> list[BoundPod]:
    """Returns one node's pods, with the claimed devices added to their requests (see `_amounts_of`). A claim
    that several pods share is added to one of them.
    """
    taken: dict[str, Counter[str]] = {}
    pod_list = list(pods)
    for pod, use, claim in _claims_on(devices, pod_list):
        taken.setdefault(pod.name, Counter()).update(_amounts_of(devices, use, claim, pod))
    return [
        replace(pod, requests={**pod.requests, **taken[pod.name]}) if taken.get(pod.name) else pod
        for pod in pod_list
    ]


def _claims_on(
    devices: Devices, pods: Iterable[BoundPod]
) -> Iterator[tuple[BoundPod, ClaimUse, ResourceClaim]]:
    """Yields each claim of one node's pods once, with a pod that has it and the pod's reference to it.
    For a template, yields the claim that was generated from it for the pod, if there is one.
    """
    shared_seen: set[str] = set()
    for pod in pods:
        namespace = namespace_of(pod.name)
        for use in pod.claims:
            name = use.resource_claim if use.template else use.source
            if not use.template and f"{namespace}/{name}" in shared_seen:
                continue
            if not use.template:
                shared_seen.add(f"{namespace}/{name}")
            claim = devices.claims.claims.get(f"{namespace}/{name}") or devices.find(use, namespace)
            if claim is not None:
                yield pod, use, claim


def _amounts_of(devices: Devices, use: ClaimUse, claim: ResourceClaim, pod: BoundPod) -> Counter[str]:
    """Returns the claim's amounts of pools and, if there are ResourceSlices, one unit of its `ClaimSpec`;
    empty if none of its requests is counted.
    """
    if not devices.claims.slices:
        return _by_labels(devices, claim, pod.node)
    claim_spec = devices.claim_spec_of_pod(use, claim, pod)
    if claim_spec is None:
        return Counter()
    allocated = _allocated_amounts(devices, claim, pod.node)
    amounts = Counter(devices.min_amounts(claim_spec) if allocated is None else allocated)
    amounts[claim_spec.name] += 1
    return amounts


def _by_labels(devices: Devices, claim: ResourceClaim, node: str) -> Counter[str]:
    """Returns the amounts of pools that a claim takes on a node whose devices come from labels. If
    devices of several pools match a request, the first pool by name counts.
    """
    node_kind = next((kind for kind in devices.node_kinds if node in kind.names), None)
    taken: Counter[str] = Counter()
    for request in claim.requests:
        device_request = None if request.admin_access else devices.device_request(request)
        if node_kind is not None and device_request is not None:
            matching = devices.matching(device_request, node_kind)
            if pools := [pool_of(device) for device in matching]:
                count = sum(matching.values()) if request.count == UNKNOWN else request.count
                taken.update(pool_amounts(Counter({min(pools): count})))
    return taken


def available_now(
    devices: Devices,
    node: Node,
    pods: Sequence[BoundPod],
    promised: Resources,
    claim_specs: Mapping[str, ClaimSpec],
) -> tuple[AvailableDevices | None, dict[str, int]]:
    """Returns the node's devices with their allocations and pending claims, and the promised amounts.

    `promised`: what bound pods use and gangs have reserved, by resource; claims count by the name of
    their `ClaimSpec`. `claim_specs`: the claims of the gangs, by that name. The returned amounts are
    `promised` without the claims. If the node has devices in ResourceSlices, two amounts are added to its
    pools: the minimum for claims for extended resources that have no devices yet, and the devices that
    are unavailable although no claim of `pods` has them (for example if shared counters are used up).
    """
    amounts = {name: count for name, count in promised.items() if not name.startswith(PREFIX)}
    empty = devices.available(node)
    if empty is None:
        return None, amounts
    specs, served, seen = dict(claim_specs), Counter[str](), Counter[str]()
    for pod, use, claim in _claims_on(devices, pods):
        claim_spec = devices.claim_spec_of_pod(use, claim, pod)
        if claim_spec is not None:
            specs[claim_spec.name] = claim_spec
            if (allocation := _allocated_amounts(devices, claim, node.name)) is not None:
                served[claim_spec.name] += 1
                seen.update(allocation)
    standing = _pending_extended(devices, node, pods, promised, specs)
    for name, count in standing.items():
        for pool, amount in devices.min_amounts(specs[name]).items():
            amounts[pool] = amounts.get(pool, 0) + amount * count
    asked = standing + Counter({name: n for name, n in promised.items() if name in specs})
    pending = tuple(
        (specs[name], count - served[name]) for name, count in sorted(asked.items()) if count > served[name]
    )
    allocated = devices.node_devices.allocated(node.name)
    for name, count in empty.node_devices.unavailable_by_pool(allocated).items():
        if (unseen := count - seen[name]) > 0:
            amounts[name] = amounts.get(name, 0) + unseen
    return replace(empty, allocated=allocated, pending=pending, plugin_gpus=promised.get(GPU, 0)), amounts


def _pending_extended(
    devices: Devices,
    node: Node,
    pods: Sequence[BoundPod],
    promised: Resources,
    claim_specs: dict[str, ClaimSpec],
) -> Counter[str]:
    """Returns how many claims for extended resources have no devices yet, by the name of their spec; adds
    these specs to `claim_specs`. A resource that the node's device plugin offers needs no claim.
    """
    specs: Counter[str] = Counter()
    for resource, claim_spec in devices.extended_claims.items():
        if promised.get(resource) and not node.allocatable.get(resource):
            served = sum(
                pod.requests.get(resource, 0)
                for pod in pods
                if _has_extended_devices(devices, pod, node.name)
            )
            claim_specs[claim_spec.name] = claim_spec
            specs[claim_spec.name] += max(0, promised[resource] - served)
    return specs


def _has_extended_devices(devices: Devices, pod: BoundPod, node: str) -> bool:
    """Reports whether the claim for a pod's extended resources has devices of this node."""
    claim = devices.claims.claims.get(f"{pod.name.partition('/')[0]}/{pod.extended_claim}")
    return claim is not None and _allocated_amounts(devices, claim, node) is not None


def _allocated_amounts(devices: Devices, claim: ResourceClaim, node: str) -> dict[str, int] | None:
    """Returns how many of the node's devices the claim has, by pool; None if it has none of them."""
    allocated = [
        devices.node_devices.device(device_id)
        for device_id in claim.allocated
        if devices.node_devices.node_of(device_id) == node
    ]
    node_devices = [device.device for device in allocated if device is not None]
    return pools_of(node_devices) if node_devices else None
