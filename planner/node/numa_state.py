"""The NUMA zones of one node at one moment, as a value: determines which further pods the kubelet admits.

The pods of a gang may be bound to a node in any order. So a combination of pods fits only if the Topology
Manager admits them in every order. Example: two zones with 4 GPUs each, policy `single-numa-node`, two pods
with 3 GPUs and two with 1. In the order 3, 3, 1, 1 all are admitted. In the order 1, 1, 3, 3 the kubelet puts
both small pods into the first zone and refuses the second pod with 3 GPUs. So these four pods do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.devices.pools import is_claimed
from planner.model.claim_spec import is_claim_spec
from planner.model.names import namespace_of
from planner.model.pod import Alignment, BoundPod, PodShape, assumed
from planner.model.reservation import Reservation
from planner.model.resources import Resources
from planner.node.topology_manager import NumaNode, allocate, draw

Amounts = tuple[tuple[str, int], ...]
"""The amounts of one zone: pairs of resource name and amount, sorted by name."""


_MAX_STATES = 256
"""Maximum number of different states of a node's zones after the same pods in different orders; beyond it the
pods count as not fitting. Equal pods are interchangeable, so gangs of two or three pod classes need a few
dozen.
"""


@dataclass(frozen=True, slots=True)
class NumaState:
    """The allocatable and free amounts of each zone, and the `policy` and `scope` of the Topology Manager.

    `allocatable` and `free` are in the order of the zones' numbers, in which the kubelet chooses.
    """

    policy: str
    scope: str
    allocatable: tuple[Amounts, ...]
    free: tuple[Amounts, ...]

    def with_new_pod(self, alignment: Alignment) -> NumaState | None:
        """Returns the state with one more pod of this alignment, None if the kubelet would refuse the pod."""
        requests = alignment.asks(self.scope)
        if not requests:
            return self
        free = [dict(zone) for zone in self.free]
        if allocate(self.policy, [dict(zone) for zone in self.allocatable], free, requests) is not None:
            return None
        return self._left(free)

    def with_pod(self, alignment: Alignment) -> NumaState:
        """Returns the state with a pod that is already on the node.

        If the kubelet would refuse it in this state, its amounts are taken from the zones in order.
        """
        accepted = self.with_new_pod(alignment)
        if accepted is not None:
            return accepted
        free, allocatable = ([dict(zone) for zone in zones] for zones in (self.free, self.allocatable))
        for request in alignment.asks(self.scope):
            if request.stays:
                draw(allocatable, free, range(len(free)), request.requests)
        return self._left(free)

    def max_pods(self, alignment: Alignment, limit: int) -> int:
        """Returns how many pods of this alignment the kubelet admits, at most `limit`."""
        zones: NumaState | None = self
        for count in range(limit):
            former, zones = zones, zones.with_new_pod(alignment) if zones else None
            if zones is None:
                return count
            if zones == former:  # such a pod takes nothing from the zones
                return limit
        return limit

    def _left(self, free: Sequence[Resources]) -> NumaState:
        return replace(self, free=_sorted(free))


class ArrivalOrders:
    """Decides which numbers of pods of several classes a node's zones admit in every order.

    `counts`: the number of pods of each class. `_states` is a memo: by counts, the possible states of the
    zones after these pods; None if the kubelet refuses a pod in some order.
    """

    def __init__(self, zones: NumaState, alignments: Sequence[Alignment]) -> None:
        self._alignments = alignments
        nothing = (0,) * len(alignments)
        self._states: dict[tuple[int, ...], frozenset[NumaState] | None] = {nothing: frozenset((zones,))}

    def admits(self, counts: tuple[int, ...]) -> bool:
        """Reports whether these pods are admitted in every order."""
        return self._after(counts) is not None

    def max_pods(self, counts: tuple[int, ...], limit: int) -> int:
        """Returns how many pods of the next class are admitted together with `counts` of the former classes,
        at most `limit`.
        """
        rest = (0,) * (len(self._alignments) - len(counts) - 1)
        while limit and not self.admits((*counts, limit, *rest)):
            limit -= 1
        return limit

    def _after(self, counts: tuple[int, ...]) -> frozenset[NumaState] | None:
        """Returns all possible states of the zones after these pods, None if some order has a refusal."""
        if counts not in self._states:
            self._states[counts] = self._filled(counts)
        return self._states[counts]

    def _filled(self, counts: tuple[int, ...]) -> frozenset[NumaState] | None:
        states: set[NumaState] = set()
        for kind, count in enumerate(counts):
            if not count:
                continue
            former = self._after((*counts[:kind], count - 1, *counts[kind + 1 :]))
            if former is None:
                return None
            for state in former:
                after = state.with_new_pod(self._alignments[kind])
                if after is None:
                    return None
                states.add(after)
            if len(states) > _MAX_STATES:
                return None
        return frozenset(states)


def empty_numa_state(node: NumaNode) -> NumaState:
    """Returns the state of the zones of an empty node."""
    whole = _sorted([zone.allocatable for zone in node.zones])
    return NumaState(node.policy, node.scope, whole, whole)


def numa_state_now(node: NumaNode, pods: Iterable[BoundPod], to_come: Iterable[Alignment]) -> NumaState:
    """Returns the state with the pods that are bound to the node, and the reserved pods that are not bound
    yet (`to_come`).

    The `available` amounts of the NodeResourceTopology usually account for a bound pod, unless the object is
    older than the pod. A pod is therefore added only if the difference between allocatable and available
    amounts, summed over the zones, is too small to include it.
    """
    state = replace(empty_numa_state(node), free=_sorted([zone.available for zone in node.zones]))
    unexplained: dict[str, int] = {}
    for zone in node.zones:
        for name, amount in zone.allocatable.items():
            unexplained[name] = unexplained.get(name, 0) + amount - zone.available.get(name, 0)
    for pod in sorted(pods, key=lambda pod: pod.name):
        alignment = assumed(pod.requests) if pod.alignment is None else pod.alignment
        amounts = {
            name: amount
            for request in alignment.pod
            for name, amount in request.requests.items()
            if name in unexplained
        }
        if amounts and all(unexplained[name] >= amount for name, amount in amounts.items()):
            for name, amount in amounts.items():
                unexplained[name] -= amount
        elif amounts:
            state = state.with_pod(alignment)
    for alignment_to_come in to_come:
        state = state.with_pod(alignment_to_come)
    return state


def pods_to_come(
    node: str, pods: Sequence[BoundPod], reservations: Iterable[Reservation]
) -> Iterator[Alignment]:
    """Yields the alignment of each pod that a gang has reserved on a node and that is not bound yet.

    A bound pod of the gang replaces a reserved one with the same requests.
    """
    for reservation in reservations:
        space = namespace_of(reservation.gang)  # users can write the annotation onto their own pods
        arrived = [
            pod.requests
            for pod in pods
            if reservation.id in pod.reservation.split(",") and namespace_of(pod.name) == space
        ]
        requests_by_set, traits = dict(reservation.requests), dict(reservation.traits)
        for assignment in reservation.assignments:
            if assignment.node == node:
                requested = _stated(requests_by_set.get(assignment.pod_set, {}))
                alignment = traits[assignment.pod_set].alignment if assignment.pod_set in traits else None
                to_come = assignment.count - min(assignment.count, arrived.count(requested))
                yield from [assumed(requested) if alignment is None else alignment] * to_come


def _stated(requests: Resources) -> Resources:
    """Returns the requests without claimed devices: those that the containers state."""
    if not any(is_claimed(name) or is_claim_spec(name) for name in requests):
        return requests
    return {n: amount for n, amount in requests.items() if not is_claimed(n) and not is_claim_spec(n)}


def alignment_for(shape: PodShape) -> Alignment:
    """Returns the shape's alignment; if it is not known, the devices that the pod requests count as those of
    one container.
    """
    return assumed(shape.requests) if shape.alignment is None else shape.alignment


def _sorted(zones: Iterable[Resources]) -> tuple[Amounts, ...]:
    return tuple(tuple(sorted(zone.items())) for zone in zones)
