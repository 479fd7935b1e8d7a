"""How many pods one node holds: exact, for one kind of pods or for several at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.devices.availability import AvailableDevices
from planner.devices.pools import is_claimed, on_node, plugin_name
from planner.model.claim_spec import ClaimSpec
from planner.model.pod_class import PodClass
from planner.model.quantity import LARGEST, Resources
from planner.model.resolved import ResolvedShape
from planner.model.resources import GPU
from planner.node.gpu_sharing import Gpus, share_in, share_named
from planner.node.numa_state import ArrivalOrders, NumaState, alignment_for
from planner.node.nvlink import holds_bunches


def most(
    free: Resources,
    shape: ResolvedShape,
    gpus: Gpus | None = None,
    limit: int = LARGEST,
    stock: AvailableDevices | None = None,
) -> int:
    """Pods of this shape that the free amounts hold, at most `limit`; parts of GPUs on these `gpus`, devices
    by claim from this `stock`."""
    requests, bundles = (
        taken_there(shape, free) if shape.claims or shape.extended_claims else (shape.requests, ())
    )
    share = share_in(requests)
    if share is None:
        room = max(0, min((free.get(name, 0) // need for name, need in requests.items()), default=0))
        if room and (bundles or takes_devices(stock, shape)):
            plugged = shape.requests.get(GPU, 0)  # of which nothing is said where no plugin gives them
            return stock.most(bundles, min(room, limit), plugged) if stock is not None else 0
        return room
    others = (free.get(name, 0) // need for name, need in requests.items() if name != share.name)
    room = max(0, min(others, default=limit))
    return gpus.most(share, free.get(GPU, 0), min(room, limit)) if gpus and room else 0


def takes_devices(stock: AvailableDevices | None, shape: ResolvedShape) -> bool:
    """Whether the pod takes devices that claims see: by claims, or GPUs of the plugin that gives the same."""
    if shape.claim_specs or shape.extended_claims:
        return True
    return bool(stock is not None and stock.shared and stock.waiting and shape.requests.get(GPU))


def taken_there(shape: ResolvedShape, free: Resources) -> tuple[Resources, tuple[ClaimSpec, ...]]:
    """What a pod takes of a node with these free amounts, and what it claims: an extended resource that the
    node does not offer is claimed, piece by piece, where a DeviceClass serves it."""
    requests, bundles = on_node(shape.requests, free), shape.claim_specs
    for name, bundle in shape.extended_claims:
        if name not in free and name in requests:
            bundles = (*bundles, *(bundle,) * requests[name])
            requests = {other: amount for other, amount in requests.items() if other != name}
    return requests, bundles


def opens_gpus(kinds: Sequence[PodClass], gpus: Gpus | None) -> int:
    """Kinds whose parts of GPUs would break into whole ones: none of the GPUs in use has room for one."""
    shares = (share_in(kind.shape.requests) for kind in kinds)
    return sum(
        1 for share in shares if share and not (gpus and gpus.holds(0, ((share.size(gpus), share.devices),)))
    )


NOT_OFFERED = -(2**63)
"""The amount of a resource of which a node says nothing, where that is another thing than none."""


class HostFit:
    """What one node could hold of several kinds at a time: the counts that no other exceed."""

    def __init__(self, kinds: Sequence[PodClass], host_level: int) -> None:
        self._shares = [share_in(kind.shape.requests) for kind in kinds]
        self._sharing = any(self._shares)
        self._requests = [
            {name: need for name, need in kind.shape.requests.items() if not share_named(name)}
            for kind in kinds
        ]
        self._caps = [1 if host_level in kind.anti_affinity_levels else kind.count for kind in kinds]
        self._claiming = any(kind.shape.claims or kind.shape.extended_claims for kind in kinds)
        self._shapes = [kind.shape for kind in kinds]
        names = {name for request in self._requests for name in request}
        self._resources = sorted({*names, *map(plugin_name, filter(is_claimed, names)), GPU})
        self._alignments = [alignment_for(kind.shape) for kind in kinds]
        self._memo: dict[
            tuple[
                tuple[int, ...], tuple[bool, ...], Gpus | None, NumaState | None, AvailableDevices | None, int
            ],
            tuple[tuple[int, ...], ...],
        ] = {}

    def best(
        self,
        free: Resources,
        allowed: tuple[bool, ...],
        gpus: Gpus | None = None,
        zones: NumaState | None = None,
        stock: AvailableDevices | None = None,
        inner: int = 0,
    ) -> tuple[tuple[int, ...], ...]:
        """The largest possible counts, in descending order; empty where not one pod fits."""
        missing = NOT_OFFERED if self._claiming else 0
        amounts = tuple([free.get(name, missing) for name in self._resources])
        stock = stock if any(takes_devices(stock, shape) for shape in self._shapes) else None
        inner = inner if any(shape.nvlink_group for shape in self._shapes) else 0
        key = (amounts, allowed, gpus if self._sharing else None, zones, stock, inner)
        found = self._memo.get(key)
        if found is None:
            there = {n: a for n, a in zip(self._resources, amounts, strict=True) if a != NOT_OFFERED}
            found = self._memo[key] = self._search(there, allowed, gpus, zones, stock, inner)
        return found

    def _search(
        self,
        free: Mapping[str, int],
        allowed: tuple[bool, ...],
        gpus: Gpus | None,
        zones: NumaState | None,
        stock: AvailableDevices | None,
        inner: int,
    ) -> tuple[tuple[int, ...], ...]:
        found: list[tuple[int, ...]] = []
        last = len(self._requests) - 1
        filling = ArrivalOrders(zones, self._alignments) if zones else None
        requests, bundles = self._requests, [shape.claim_specs for shape in self._shapes]
        if self._claiming:
            taken = [taken_there(shape, free) for shape in self._shapes]
            requests = [{n: need for n, need in some.items() if not share_named(n)} for some, _ in taken]
            bundles = [claimed for _, claimed in taken]

        def extend(kind: int, left: Mapping[str, int], counts: tuple[int, ...]) -> None:
            request = requests[kind]
            room = self._caps[kind] if allowed[kind] else 0
            room = max(0, min([room, *(left.get(name, 0) // need for name, need in request.items())]))
            if self._sharing:
                room = self._beside(gpus, left, (*counts, room))
            if self._claiming or stock:
                room = self._served(stock, bundles, (*counts, room))
            if inner:
                room = self._bunches(inner, free, (*counts, room))
            if filling:
                room = filling.most(counts, room)
            if kind == last:
                whole = (*counts, room)
                if not any(all(map(int.__ge__, other, whole)) for other in found):
                    found.append(whole)
                return
            for count in range(room, -1, -1):
                rest = {name: amount - request.get(name, 0) * count for name, amount in left.items()}
                extend(kind + 1, rest, (*counts, count))

        extend(0, free, ())
        return tuple(counts for counts in found if any(counts))

    def _served(
        self,
        stock: AvailableDevices | None,
        bundles: Sequence[tuple[ClaimSpec, ...]],
        counts: tuple[int, ...],
    ) -> int:
        """The most of the last kind for which the claims of all kinds so far have devices."""
        kind, room = len(counts) - 1, counts[-1]
        gpus = [shape.requests.get(GPU, 0) for shape in self._shapes]
        if not bundles[kind] and not (stock and stock.shared and gpus[kind]):
            return room
        while room:
            now = (*counts[:-1], room)
            wanted = [(one, count) for some, count in zip(bundles, now, strict=False) for one in some]
            plugged = sum(map(int.__mul__, gpus, now))
            if stock is not None and stock.holds(wanted, plugged):
                break
            room -= 1
        return room

    def _bunches(self, inner: int, free: Resources, counts: tuple[int, ...]) -> int:
        """The most of the last kind for which the NVLink domains have room, with the bunches so far."""
        shape, room = self._shapes[len(counts) - 1], counts[-1]
        while room and shape.nvlink_group:
            pods = zip(self._shapes, (*counts[:-1], room), strict=False)
            if holds_bunches(
                inner, free, [(n, one.nvlink_group, one.gpus) for one, n in pods if one.nvlink_group]
            ):
                break
            room -= 1
        return room

    def _beside(self, gpus: Gpus | None, left: Mapping[str, int], counts: tuple[int, ...]) -> int:
        """The most of the last kind for which the parts of GPUs of all kinds so far have a place."""
        kind, room = len(counts) - 1, counts[-1]
        whole = self._requests[kind].get(GPU, 0)
        while room:
            parts = [
                (share.size(gpus), share.devices)
                for share, count in zip(self._shares, (*counts[:-1], room), strict=False)
                for _ in range(count)
                if share and gpus
            ]
            if not parts and (gpus or not self._shares[kind]):
                break
            if gpus and gpus.holds(left.get(GPU, 0) - whole * room, parts):
                break
            room -= 1
        return room
