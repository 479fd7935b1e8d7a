"""The taken and free capacity of one node: amounts, GPUs for pods that share one, and devices for claims.

Invariant: on every node, for every resource, taken is used plus reserved, and nothing is counted twice. A
bound pod that carries a reservation's id is covered by what that reservation uses on the pod's node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from planner.cluster.usage.occupancy import Holds, Pods, add, unaccounted
from planner.devices.availability import AvailableDevices
from planner.devices.bound_claims import available_now, with_claimed_devices
from planner.devices.catalog import Devices
from planner.devices.claims import Claims
from planner.devices.devices_by_node import DevicesByNode
from planner.devices.pools import is_claimed, on_node
from planner.model.claim_spec import PREFIX, is_claim_spec
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG, GPU, SHARE_PREFIX, Resources
from planner.node.gpu_sharing import SharedGpus, shared_gpus_of, shares_as_gpus, shares_gpus

_SPECIAL_PREFIXES = frozenset({SHARE_PREFIX, CLAIMED_GPU[:4], CLAIMED_MIG[:4], PREFIX[:4]})
"""The first four letters of resources that are GPU shares or claimed devices. Few nodes have such resources
in use, so this comparison avoids the detailed computation for most nodes.
"""


class NodeHardware(Protocol):
    """What nodes offer to pods if nothing is taken; `Infrastructure` implements it."""

    @property
    def claims(self) -> Claims: ...
    @property
    def devices(self) -> Devices: ...
    @property
    def node_devices(self) -> DevicesByNode: ...

    def offers(self, node: Node) -> Resources:
        """Returns the amounts that a node offers to pods."""
        ...

    def unallocated_devices(self, node: Node) -> AvailableDevices | None:
        """Returns the node's devices before any allocation; None if its drivers list none."""
        ...


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What bound pods and reservations take on nodes at one moment."""

    _hardware: NodeHardware
    _pods: Pods
    _holds: Holds

    def free_on(self, node: Node) -> tuple[Resources, SharedGpus | None, AvailableDevices | None]:
        """Returns the free amounts of a node, its GPUs for pods that share one, and its devices for claims.

        The GPUs are None if they cannot be shared, the devices if no ResourceSlice lists any for the node.
        """
        used, gpus, available_devices = self._settled_on(node)
        free = {name: amount - used.get(name, 0) for name, amount in self._hardware.offers(node).items()}
        return free, gpus, available_devices

    def plain_free_on(self, node: Node) -> dict[str, int] | None:
        """Returns the free amounts of a node; None if pods take GPU shares or claimed devices there, or if
        the cluster has ResourceSlices: then amounts alone do not determine what is free.
        """
        if self._hardware.claims.slices:
            return None
        taken = self.promised_on(node.name)
        if not _SPECIAL_PREFIXES.isdisjoint([resource[:4] for resource in taken]):
            return None
        return {resource: amount - taken.get(resource, 0) for resource, amount in node.allocatable.items()}

    def taken_on(self, node: Node) -> dict[str, int]:
        """Returns the amounts that are used or reserved on a node; a GPU taken in part counts as one."""
        return self._settled_on(node)[0]

    def promised_on(self, node: str) -> dict[str, int]:
        """Returns the amounts that are used or reserved on a node, which may be unknown.

        GPU shares and claimed devices are amounts of their own resources here, not of GPUs.
        """
        taken = self.used_on(node)
        for _, uses in self._holds.on(node):
            add(taken, uses)
        return taken

    def _settled_on(self, node: Node) -> tuple[dict[str, int], SharedGpus | None, AvailableDevices | None]:
        taken, gpus, available_devices = self.promised_on(node.name), shared_gpus_of(node), None
        if self._hardware.claims.slices:
            available_devices, taken = self._devices_on(node, taken)
        if _SPECIAL_PREFIXES.isdisjoint([name[:4] for name in taken]):
            return taken, gpus, available_devices
        taken = {name: amount for name, amount in taken.items() if not is_claim_spec(name)}
        if any(map(is_claimed, taken)):
            taken = dict(on_node(taken, self._hardware.offers(node)))
        if shares_gpus(taken):
            taken, gpus = shares_as_gpus(taken, self._pods.on(node.name), gpus, node.allocatable.get(GPU, 0))
        return taken, gpus, available_devices

    def _devices_on(self, node: Node, promised: Resources) -> tuple[AvailableDevices | None, dict[str, int]]:
        """Returns the node's devices from ResourceSlices with their allocations and pending claims, and the
        promised amounts without claims, as `available_now` does.
        """
        if (
            not self._pods.on(node.name)
            and not self._holds.on(node.name)
            and not self._hardware.node_devices.allocated(node.name)
        ):
            return self._hardware.unallocated_devices(node), dict(promised)
        claim_specs = {
            claim_spec.name: claim_spec
            for reservation, _ in self._holds.on(node.name)
            for _, traits in reservation.traits
            for claim_spec in traits.claim_specs
        }
        return available_now(self._hardware.devices, node, self._pods.on(node.name), promised, claim_specs)

    def used_on(self, node: str) -> dict[str, int]:
        """Returns the amounts that bound pods use on a node beyond their gangs' reservations there."""
        pods: Iterable[BoundPod] = self._pods.on(node)
        if any(pod.claims for pod in pods):
            pods = with_claimed_devices(self._hardware.devices, pods)
        return unaccounted(pods, self._holds.on(node))
