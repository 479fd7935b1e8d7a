"""Computes exactly how many pods fit on one node, for one pod class or for several together.

Example: a node has 8 GPUs and 64 cores free; workers request 2 GPUs and 8 cores, launchers 20 cores.
`max_pods` returns 4 workers, or 3 launchers. `host_fit(…).best` returns the maximal combinations as (workers,
launchers): (4, 1), (3, 2), (0, 3). Any other combination that fits has no more pods of either class than one
of these, so a search over domains needs no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from planner.devices.availability import AvailableDevices
from planner.devices.pools import is_claimed, on_node, plugin_name
from planner.model.claim_spec import ClaimSpec
from planner.model.effort.deadline import poll
from planner.model.pod_class import PodClass
from planner.model.quantity import LARGEST
from planner.model.resolved import ResolvedShape
from planner.model.resources import GPU, Resources
from planner.node.gpu_sharing import SharedGpus, share_in, share_named
from planner.node.numa_state import ArrivalOrders, NumaState, alignment_for
from planner.node.nvlink import groups_fit, max_pods_in_groups


def max_pods(
    free: Resources,
    shape: ResolvedShape,
    gpus: SharedGpus | None = None,
    limit: int = LARGEST,
    available_devices: AvailableDevices | None = None,
) -> int:
    """Returns the number of pods of this shape that fit into the free amounts.

    GPU shares are taken from `gpus`, claimed devices from `available_devices`. For pods with a share or
    claims the result is at most `limit`, because each further pod is costly to check; for others, `limit` is
    ignored.
    """
    requests, claim_specs = (
        requests_on(shape, free) if shape.claims or shape.extended_claims else (shape.requests, ())
    )
    share = share_in(requests)
    if share is None:
        room = max(0, min((free.get(name, 0) // need for name, need in requests.items()), default=0))
    else:
        bounds = (free.get(name, 0) // need for name, need in requests.items() if name != share.name)
        room = max(0, min(bounds, default=limit))
        whole = requests.get(GPU, 0)
        room = gpus.max_pods(share, free.get(GPU, 0), min(room, limit), whole) if gpus and room else 0
    if available_devices is None:  # the node serves no claim, and amounts decide on all other pods
        return 0 if claim_specs else room
    if room and takes_devices(available_devices, shape):
        plugin_gpus = shape.requests.get(GPU, 0)  # counted only if a plugin offers the claimable GPUs too
        return available_devices.max_pods(claim_specs, min(room, limit), plugin_gpus)
    return room


def takes_amounts_only(shape: ResolvedShape) -> bool:
    """Reports whether all that the pod takes on a node are the amounts that it requests: no claimed devices
    and no share of a GPU.
    """
    return not (shape.claims or shape.claim_specs or shape.extended_claims or share_in(shape.requests))


def takes_devices(available_devices: AvailableDevices | None, shape: ResolvedShape) -> bool:
    """Reports whether the pod takes devices that claims use too: by claims of its own, or as GPUs of a device
    plugin that offers the same GPUs, while other claims wait for devices on the node.
    """
    if shape.claim_specs or shape.extended_claims:
        return True
    return bool(
        available_devices is not None
        and available_devices.shared_with_plugin
        and available_devices.pending
        and shape.requests.get(GPU)
    )


def requests_on(shape: ResolvedShape, free: Resources) -> tuple[Resources, tuple[ClaimSpec, ...]]:
    """Returns the amounts that a pod takes on a node with these free amounts, and its device claims.

    For each unit of an extended resource that a DeviceClass offers and the node does not, the pod gets a
    claim instead.
    """
    requests, claim_specs = on_node(shape.requests, free), shape.claim_specs
    for name, claim_spec in shape.extended_claims:
        if name not in free and name in requests:
            claim_specs = (*claim_specs, *(claim_spec,) * requests[name])
            requests = {other: amount for other, amount in requests.items() if other != name}
    return requests, claim_specs


def opens_gpus(pod_classes: Sequence[PodClass], gpus: SharedGpus | None) -> int:
    """Returns the number of pod classes whose GPU share fits on no shared GPU, so needs an empty one."""
    shares = (share_in(pod_class.shape.requests) for pod_class in pod_classes)
    return sum(
        1 for share in shares if share and not (gpus and gpus.fits(0, ((share.size(gpus), share.devices),)))
    )


NOT_OFFERED = -(2**63)
"""Stands in cache keys for the amount of a resource that a node does not list. That is not the same as 0,
because a missing extended resource can be claimed. The number is lower than every real amount.
"""


class HostRoom(Protocol):
    """The free capacity of one host: amounts, GPUs that pods share, NUMA zones if its kubelet aligns pods,
    devices for claims, and the GPUs of each NVLink domain inside it (0 if it is one domain).
    """

    @property
    def amounts(self) -> Resources: ...
    @property
    def gpus(self) -> SharedGpus | None: ...
    @property
    def numa_state(self) -> NumaState | None: ...
    @property
    def available_devices(self) -> AvailableDevices | None: ...
    @property
    def nvlink_size(self) -> int: ...


class _OneClassFit:
    """Computes how many pods of one class fit on a node. Values that depend only on the shape are kept."""

    def __init__(self, pod_class: PodClass, host_level: int) -> None:
        self._shape = shape = pod_class.shape
        self._cap = 1 if host_level in pod_class.anti_affinity_levels else pod_class.count
        self._amounts = tuple(shape.requests.items()) if takes_amounts_only(shape) else ()
        """The requests if amounts alone decide on a node without devices for claims, else empty."""
        self._alignment = alignment_for(shape)

    def best(self, host: HostRoom, allowed: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
        """Returns the maximum number of pods, as one combination; () if no pod fits.

        `allowed` is not read: the search asks only about hosts that some class may use.
        """
        room, free, available_devices = self._cap, host.amounts, host.available_devices
        if self._amounts and available_devices is None:
            for name, need in self._amounts:
                fits = free.get(name, 0) // need
                if fits < room:
                    room = fits
        else:
            room = min(room, max_pods(free, self._shape, host.gpus, room, available_devices))
        if room <= 0:
            return ()
        if host.nvlink_size and self._shape.nvlink_group:
            room = max_pods_in_groups(host.nvlink_size, free, self._shape, room)
        if host.numa_state is not None:
            room = host.numa_state.max_pods(self._alignment, room)
        return ((room,),) if room else ()


class _SeveralClassesFit:
    """Computes the maximal combinations of pod counts of several classes that fit on a node.

    There is one instance per search. The key of its memo contains everything that `_search` reads. Of the
    free amounts, it contains only those of GPUs and requested resources, so that nodes that differ only in
    others share an entry.
    """

    def __init__(self, pod_classes: Sequence[PodClass], host_level: int) -> None:
        self._shares = [share_in(pod_class.shape.requests) for pod_class in pod_classes]
        self._sharing = any(self._shares)
        self._requests = [
            {name: need for name, need in pod_class.shape.requests.items() if not share_named(name)}
            for pod_class in pod_classes
        ]
        self._caps = [
            1 if host_level in pod_class.anti_affinity_levels else pod_class.count
            for pod_class in pod_classes
        ]
        self._claiming = any(
            pod_class.shape.claims or pod_class.shape.extended_claims for pod_class in pod_classes
        )
        self._shapes = [pod_class.shape for pod_class in pod_classes]
        names = {name for request in self._requests for name in request}
        self._resources = sorted({*names, *map(plugin_name, filter(is_claimed, names)), GPU})
        self._alignments = [alignment_for(pod_class.shape) for pod_class in pod_classes]
        self._memo: dict[
            tuple[
                tuple[int, ...],
                tuple[bool, ...],
                SharedGpus | None,
                NumaState | None,
                AvailableDevices | None,
                int,
            ],
            tuple[tuple[int, ...], ...],
        ] = {}

    def best(self, host: HostRoom, allowed: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
        """Returns the maximal combinations in descending order; () if no pod fits.

        `allowed`: for each class, whether its pods may be on the node.
        """
        free, available_devices, nvlink_size = host.amounts, host.available_devices, host.nvlink_size
        if available_devices and not any(takes_devices(available_devices, shape) for shape in self._shapes):
            available_devices = None
        if nvlink_size and not any(shape.nvlink_group for shape in self._shapes):
            nvlink_size = 0
        # GPU shares, claims and NVLink groups may depend on more free GPUs than the pods request.
        if self._claiming or self._sharing or available_devices or nvlink_size:
            missing = NOT_OFFERED if self._claiming else 0
            amounts = tuple([free.get(name, missing) for name in self._resources])
        else:
            amounts = self._useful(free)
        gpus, numa_state = host.gpus if self._sharing else None, host.numa_state
        key = (amounts, allowed, gpus, numa_state, available_devices, nvlink_size)
        largest = self._memo.get(key)
        if largest is None:
            offered = {n: a for n, a in zip(self._resources, amounts, strict=True) if a != NOT_OFFERED}
            largest = self._memo[key] = self._search(
                offered, allowed, gpus, numa_state, available_devices, nvlink_size
            )
        return largest

    def _useful(self, free: Resources) -> tuple[int, ...]:
        """Returns the free amounts, each at most what the pods of all classes could use of it together.

        With 4 free GPUs, a pod of 4 GPUs and 1 core and one of 1 GPU and 9 cores use at most 1 + 4 * 9 = 37
        cores, so nodes with 50 and 63 free cores share an entry of the memo.
        """
        used = dict.fromkeys(self._resources, 0)
        for request, room in zip(self._requests, self._caps, strict=True):
            for name, need in request.items():
                room = min(room, free.get(name, 0) // need)
            room = max(0, room)  # less than nothing is free where a node has lost a device that is in use
            for name, need in request.items():
                used[name] += room * need
        return tuple([min(free.get(name, 0), amount) for name, amount in used.items()])

    def _search(
        self,
        free: Mapping[str, int],
        allowed: tuple[bool, ...],
        gpus: SharedGpus | None,
        numa_state: NumaState | None,
        available_devices: AvailableDevices | None,
        nvlink_size: int,
    ) -> tuple[tuple[int, ...], ...]:
        largest: list[tuple[int, ...]] = []
        last = len(self._requests) - 1
        arrival_orders = ArrivalOrders(numa_state, self._alignments) if numa_state else None
        requests, claim_specs = self._requests, [shape.claim_specs for shape in self._shapes]
        if self._claiming:
            taken = [requests_on(shape, free) for shape in self._shapes]
            requests = [
                {n: need for n, need in shape_requests.items() if not share_named(n)}
                for shape_requests, _ in taken
            ]
            claim_specs = [claimed for _, claimed in taken]

        def extend(pod_class: int, left: Mapping[str, int], counts: tuple[int, ...]) -> None:
            request = requests[pod_class]
            room = self._caps[pod_class] if allowed[pod_class] else 0
            room = max(0, min([room, *(left.get(name, 0) // need for name, need in request.items())]))
            if self._sharing:
                own_gpus = request.get(GPU, 0)
                room = self._max_with_gpu_shares(gpus, left.get(GPU, 0), own_gpus, (*counts, room))
            if self._claiming or available_devices:
                room = self._max_with_claims(available_devices, claim_specs, (*counts, room))
            if nvlink_size:
                room = self._max_in_nvlink_groups(nvlink_size, free, (*counts, room))
            if arrival_orders:
                room = arrival_orders.max_pods(counts, room)
            if pod_class == last:
                poll("search")
                whole = (*counts, room)
                # Counts are tried in descending order, so a later combination never exceeds an earlier one.
                if not any(all(map(int.__ge__, other, whole)) for other in largest):
                    largest.append(whole)
                return
            for count in range(room, -1, -1):
                rest = {name: amount - request.get(name, 0) * count for name, amount in left.items()}
                extend(pod_class + 1, rest, (*counts, count))

        extend(0, free, ())
        return tuple(counts for counts in largest if any(counts))

    def _max_with_claims(
        self,
        available_devices: AvailableDevices | None,
        claim_specs: Sequence[tuple[ClaimSpec, ...]],
        counts: tuple[int, ...],
    ) -> int:
        """Returns how many pods of the last class in `counts`, at most its count there, fit beside the pods
        of the classes before it, by the device claims of all these pods.
        """
        pod_class, room = len(counts) - 1, counts[-1]
        gpus = [shape.requests.get(GPU, 0) for shape in self._shapes]
        if not claim_specs[pod_class] and not (
            available_devices and available_devices.shared_with_plugin and gpus[pod_class]
        ):
            return room
        while room:
            all_counts = (*counts[:-1], room)
            wanted = [
                (claim_spec, count)
                for shape_requests, count in zip(claim_specs, all_counts, strict=False)
                for claim_spec in shape_requests
            ]
            plugin_gpus = sum(map(int.__mul__, gpus, all_counts))
            if available_devices is not None and available_devices.fits(wanted, plugin_gpus):
                break
            room -= 1
        return room

    def _max_in_nvlink_groups(self, nvlink_size: int, free: Resources, counts: tuple[int, ...]) -> int:
        """Returns the same as `_max_with_claims`, with the classes' NVLink groups instead of their claims."""
        shape, room = self._shapes[len(counts) - 1], counts[-1]
        while room and shape.nvlink_group:
            pods = zip(self._shapes, (*counts[:-1], room), strict=False)
            if groups_fit(
                nvlink_size,
                free,
                [
                    (n, pod_shape.nvlink_group, pod_shape.gpus)
                    for pod_shape, n in pods
                    if pod_shape.nvlink_group
                ],
            ):
                break
            room -= 1
        return room

    def _max_with_gpu_shares(
        self, gpus: SharedGpus | None, free_gpus: int, own_gpus: int, counts: tuple[int, ...]
    ) -> int:
        """Returns the same as `_max_with_claims`, with the classes' GPU shares instead of their claims.

        `free_gpus`: the GPUs that the classes before the last leave. `own_gpus`: the whole GPUs that a pod of
        the last class takes on this node, also those that it claims.
        """
        pod_class, room = len(counts) - 1, counts[-1]
        while room:
            parts = [
                (share.size(gpus), share.devices)
                for share, count in zip(self._shares, (*counts[:-1], room), strict=False)
                for _ in range(count)
                if share and gpus
            ]
            # Without a share to place, the amounts decide. A share never fits if no GPUs can be shared.
            if not parts and (gpus or not self._shares[pod_class]):
                break
            if gpus and gpus.fits(free_gpus - own_gpus * room, parts):
                break
            room -= 1
        return room


HostFit = _OneClassFit | _SeveralClassesFit
"""Computes how many pods of a gang's classes fit on a node: `best` returns the maximal combinations."""


def host_fit(pod_classes: Sequence[PodClass], host_level: int) -> HostFit:
    """Returns the `HostFit` of these pod classes; `host_level`: the index of the host level in the tree."""
    if len(pod_classes) == 1:
        return _OneClassFit(pod_classes[0], host_level)
    return _SeveralClassesFit(pod_classes, host_level)
