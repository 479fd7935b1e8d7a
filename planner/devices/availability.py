"""An immutable record of a node's devices at one moment, which decides what further claims can be allocated.

Some claims are already promised: a bound pod or a gang's reservation has them. New claims fit if devices can
be assigned to them and to all promised claims without using a device twice. kube-scheduler takes one pod at a
time and allocates the first devices that match, so it can fit fewer claims than the planner expects (the same
is true of shared GPUs: docs/decisions/0022).

Source: the allocator of `resource.k8s.io` (alternatives, `All`, match and distinct attributes, counters,
taints).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.devices.allocation.allocator import Wanted, fits, free_to_share
from planner.devices.device_masks import bits
from planner.devices.devices_by_node import DevicesByNode
from planner.devices.node_devices import NodeDevices
from planner.devices.node_offers import plugged
from planner.model.claim_spec import UNKNOWN, ClaimSpec, DeviceRequest
from planner.model.node import Node
from planner.model.resources import CLAIMED_GPU


@dataclass(frozen=True, slots=True)
class AvailableDevices:
    """A node's devices at one moment.

    `allocated`: bit mask of the devices that are allocated to claims. `pending`: promised claims without
    devices yet, with their number. `shared_with_plugin`: the device plugin manages the same GPUs;
    `plugin_gpus`: how many of these GPUs are promised to pods that request `nvidia.com/gpu`.
    """

    node_devices: NodeDevices
    allocated: int = 0
    pending: Wanted = ()
    shared_with_plugin: bool = False
    plugin_gpus: int = 0

    def fits(self, added: Iterable[tuple[ClaimSpec, int]], plugin_gpus: int = 0) -> bool:
        """Reports whether these claims, and `plugin_gpus` more GPUs of the device plugin, fit beside the
        pending claims.
        """
        wanted: Counter[ClaimSpec] = Counter(dict(self.pending))
        for claim_spec, count in added:
            wanted[claim_spec] += count
        gpus = self.plugin_gpus + plugin_gpus if self.shared_with_plugin else 0
        return fits(self.node_devices, self.allocated, _sorted_wanted(wanted), gpus)

    def max_pods(self, claim_specs: Sequence[ClaimSpec], limit: int, plugin_gpus: int = 0) -> int:
        """Returns how many pods with these claims fit together, at most `limit`.

        `plugin_gpus`: the GPUs that each pod requests of the device plugin. The search is binary: if some
        number of pods fits, every smaller number fits too.
        """
        low, high = 0, min(limit, self._upper_bound(claim_specs))
        while low < high:
            middle = (low + high + 1) // 2
            if self.fits([(claim_spec, middle) for claim_spec in claim_specs], plugin_gpus * middle):
                low = middle
            else:
                high = middle - 1
        return low

    def _upper_bound(self, claim_specs: Sequence[ClaimSpec]) -> int:
        """Returns an upper bound of the number of pods that fit, from the number of free devices.

        For claims that take no devices: 2**63 (no bound) if the node meets them, else 0.
        """
        pod_devices = sum(
            min((_min_devices(request, self.node_devices) for request in choice), default=0)
            for claim_spec in claim_specs
            for choice in claim_spec.choices
        )
        free = self.node_devices.available(self.allocated).bit_count()
        if pod_devices:
            return free // pod_devices
        return 2**63 if self.fits([(claim_spec, 1) for claim_spec in claim_specs]) else 0

    def with_one_more_pod(self, claim_specs: Sequence[ClaimSpec]) -> AvailableDevices:
        """Returns the same devices with these claims of one more pod pending."""
        wanted = Counter(dict(self.pending))
        wanted.update(claim_specs)
        return replace(self, pending=_sorted_wanted(wanted))

    def missing(self, claim_specs: Sequence[ClaimSpec]) -> str:
        """Returns which claims of a pod lack devices here, as words that follow "insufficient"; "" if all
        fit.
        """
        if not claim_specs or self.fits([(claim_spec, 1) for claim_spec in claim_specs]):
            return ""
        for claim_spec in claim_specs:
            if not self.fits([(claim_spec, 1)]):
                return f"devices for a claim (it needs {claim_spec.words}; {self._has(claim_spec)})"
        return f"devices for its claims together (they need {'; '.join(spec.words for spec in claim_specs)})"

    def _has(self, claim_spec: ClaimSpec) -> str:
        """Returns text for the number of free devices that the claim's scarcest request can use: of the
        requests with too few devices, that with the fewest. Requests with alternatives are not compared.
        """
        free = self.node_devices.available(self.allocated)
        short: list[tuple[int, str]] = []
        for index, choice in enumerate(claim_spec.choices):
            if len(choice) != 1 or choice[0].admin_access:
                continue
            _, allowed = self.node_devices.matching(choice[0])
            constraints = [
                constraint for constraint in claim_spec.constraints if constraint.applies_to(index, 0)
            ]
            count = min(
                (
                    max_with_one_value(
                        self.node_devices, allowed & free, constraint.attribute, constraint.distinct
                    )
                    for constraint in constraints
                ),
                default=(allowed & free).bit_count(),
            )
            if count < self.node_devices.count(choice[0]):
                words = " and ".join(constraint.words for constraint in constraints)
                short.append((count, f" with {words}" if words else ""))
        count, words = min(short, default=(-1, ""))
        if count < 0:
            return "the node has too few left together"
        return f"the node has {count}{words}" if count else "the node has none left"


def max_with_one_value(node_devices: NodeDevices, mask: int, attribute: str, distinct: bool) -> int:
    """Returns how many devices of the mask can together meet a constraint on the attribute: as many as have
    its most frequent value or, if `distinct`, as many as there are different values.
    """
    values = Counter(value for index in bits(mask) if (value := node_devices.devices[index].value(attribute)))
    return len(values) if distinct else max(values.values(), default=0)


def _min_devices(request: DeviceRequest, node_devices: NodeDevices) -> int:
    """Returns the minimum number of devices that the request takes; for `allocationMode: All` 1."""
    if request.admin_access or free_to_share(node_devices, node_devices.matching(request)[1]):
        return 0
    return 1 if request.count == UNKNOWN else request.count


def _sorted_wanted(wanted: Mapping[ClaimSpec, int]) -> Wanted:
    return tuple(sorted(((b, n) for b, n in wanted.items() if n > 0), key=lambda pair: pair[0].name))


def unallocated_devices(node: Node, by_name: DevicesByNode) -> AvailableDevices | None:
    """Returns the node's devices with none allocated, or None if its ResourceSlices list no devices."""
    node_devices = by_name.of(node.name)
    if node_devices is None:
        return None
    # Other drivers of a node, for example of network adapters, list no GPUs that the plugin could give away.
    shared = node_devices.pools.get(CLAIMED_GPU, 0) > 0 and plugged(node, CLAIMED_GPU)
    return AvailableDevices(node_devices, shared_with_plugin=shared)
