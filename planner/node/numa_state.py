"""The NUMA zones of one host at one moment, as a value: what the kubelet would still take there.

Several pods of a gang come to a node in whatever order they are bound. So a number of pods fits only if the
Topology Manager takes them in every order: two pods that each fit alone may not fit together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.devices.pools import is_claimed
from planner.model.claim_spec import is_bundle
from planner.model.node import BoundPod
from planner.model.pod import Alignment, PodShape, assumed
from planner.model.quantity import Resources
from planner.model.reservation import Reservation
from planner.node.topology_manager import NumaNode, draw, take

Amounts = tuple[tuple[str, int], ...]


_MOST_STATES = 256
"""Ways to fill a node's zones that are followed; more than that is taken for a refusal."""


@dataclass(frozen=True, slots=True)
class NumaState:
    """`whole`: what each zone has when empty, `free` what is left; `policy` and `scope` as known."""

    policy: str
    scope: str
    whole: tuple[Amounts, ...]
    free: tuple[Amounts, ...]

    def after(self, alignment: Alignment) -> NumaState | None:
        """The zones with one such pod more; None where the kubelet would refuse it."""
        asks = alignment.asks(self.scope)
        if not asks:
            return self
        free = [dict(zone) for zone in self.free]
        if take(self.policy, [dict(zone) for zone in self.whole], free, asks) is not None:
            return None
        return self._left(free)

    def with_pod(self, alignment: Alignment) -> NumaState:
        """The zones with a pod that is there already, wherever the kubelet may have put it."""
        found = self.after(alignment)
        if found is not None:
            return found
        free = [dict(zone) for zone in self.free]
        for ask in alignment.asks(self.scope):
            if ask.stays:
                draw(free, range(len(free)), ask.requests)
        return self._left(free)

    def room(self, alignment: Alignment, most: int) -> int:
        """How many such pods the kubelet takes, at most so many."""
        zones: NumaState | None = self
        for count in range(most):
            before, zones = zones, zones.after(alignment) if zones else None
            if zones is None:
                return count
            if zones == before:
                return most
        return most

    def _left(self, free: Sequence[Resources]) -> NumaState:
        return replace(self, free=_sorted(free))


class ArrivalOrders:
    """Which numbers of pods of several kinds a host's zones take, in whatever order they come."""

    def __init__(self, zones: NumaState, alignments: Sequence[Alignment]) -> None:
        self._alignments = alignments
        nothing = (0,) * len(alignments)
        self._states: dict[tuple[int, ...], frozenset[NumaState] | None] = {nothing: frozenset((zones,))}

    def takes(self, counts: tuple[int, ...]) -> bool:
        """Whether every order of so many pods of each kind is taken."""
        return self._after(counts) is not None

    def most(self, counts: tuple[int, ...], room: int) -> int:
        """The most of the next kind, up to so many, that are taken beside these of the kinds before it."""
        rest = (0,) * (len(self._alignments) - len(counts) - 1)
        while room and not self.takes((*counts, room, *rest)):
            room -= 1
        return room

    def _after(self, counts: tuple[int, ...]) -> frozenset[NumaState] | None:
        """All ways in which the zones may then be filled; None where some order ends in a refusal."""
        if counts not in self._states:
            self._states[counts] = self._filled(counts)
        return self._states[counts]

    def _filled(self, counts: tuple[int, ...]) -> frozenset[NumaState] | None:
        found: set[NumaState] = set()
        for kind, count in enumerate(counts):
            if not count:
                continue
            before = self._after((*counts[:kind], count - 1, *counts[kind + 1 :]))
            if before is None:
                return None
            for zones in before:
                then = zones.after(self._alignments[kind])
                if then is None:
                    return None
                found.add(then)
            if len(found) > _MOST_STATES:
                return None
        return frozenset(found)


def empty_zones(node: NumaNode) -> NumaState:
    """The zones of a node on which nothing runs."""
    whole = _sorted([zone.allocatable for zone in node.zones])
    return NumaState(node.policy, node.scope, whole, whole)


def zones_now(node: NumaNode, pods: Iterable[BoundPod], seats: Iterable[Alignment]) -> NumaState:
    """The zones with the pods that are bound to the node, and those that have a seat and are yet to come.

    What is bound is in the object's `available` already, unless that is older than the pod or not there: a
    pod is put into the zones only where what they miss in all does not account for it.
    """
    zones = replace(empty_zones(node), free=_sorted([zone.available for zone in node.zones]))
    gone: dict[str, int] = {}
    for zone in node.zones:
        for name, amount in zone.allocatable.items():
            gone[name] = gone.get(name, 0) + amount - zone.available.get(name, 0)
    for pod in sorted(pods, key=lambda pod: pod.name):
        alignment = assumed(pod.requests) if pod.alignment is None else pod.alignment
        amounts = {
            name: amount for ask in alignment.pod for name, amount in ask.requests.items() if name in gone
        }
        if amounts and all(gone[name] >= amount for name, amount in amounts.items()):
            for name, amount in amounts.items():
                gone[name] -= amount
        elif amounts:
            zones = zones.with_pod(alignment)
    for seat in seats:
        zones = zones.with_pod(seat)
    return zones


def seats(node: str, pods: Sequence[BoundPod], holders: Iterable[Reservation]) -> Iterator[Alignment]:
    """The pods that gangs have a seat for on a node and that are not bound to it yet."""
    for reservation in holders:
        arrived = [pod.requests for pod in pods if reservation.id in pod.reservation.split(",")]
        requests, traits = dict(reservation.requests), dict(reservation.traits)
        for one in reservation.assignments:
            if one.node == node:
                each = _stated(requests.get(one.pod_set, {}))
                known = traits[one.pod_set].alignment if one.pod_set in traits else None
                waiting = one.count - min(one.count, arrived.count(each))
                yield from [assumed(each) if known is None else known] * waiting


def _stated(requests: Resources) -> Resources:
    """What a pod's containers ask for, its claims aside."""
    if not any(is_claimed(name) or is_bundle(name) for name in requests):
        return requests
    return {n: amount for n, amount in requests.items() if not is_claimed(n) and not is_bundle(n)}


def alignment_for(shape: PodShape) -> Alignment:
    """The shape's alignment; of a shape that was not read from a spec, its devices."""
    return assumed(shape.requests) if shape.alignment is None else shape.alignment


def _sorted(zones: Iterable[Resources]) -> tuple[Amounts, ...]:
    return tuple(tuple(sorted(zone.items())) for zone in zones)
