"""The seats that a gang holds, for the pods of a further object. Pure.

A seat is known by the amounts that it has, and by its node. Pods may have a seat if they ask for no more than
that, and if their node selector, required node affinity and volumes let them be on its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.node import Node
from planner.model.pod import PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.model.resolved import ResolvedShape, resolved_shape
from planner.node.eligibility import permits
from webhook.workloads.shared_gangs.pod_groups import OTHERS
from webhook.workloads.workload import GangShare

NODE_SEPARATOR = "@"
"""Separates PodSet and node in the name "PODSET@NODE". While a growing gang is planned, each PodSet is split
into one for each of its nodes, so that its held seats stay there."""


@dataclass(frozen=True, slots=True)
class GangSeats:
    """The seats that a gang holds, by PodSet.

    `nodes`: the nodes of the cluster. `arriving`: the shapes of arriving pods by PodSet, resolved in the
    cluster; of other pods, claims and volumes are not looked at."""

    held: Reservation
    nodes: Mapping[str, Node]
    arriving: Mapping[str, ResolvedShape] = field(default_factory=dict)

    @property
    def unknown_members(self) -> int:
        """The number of seats for members that are not known yet."""
        return self.count(OTHERS)

    def count(self, name: str) -> int:
        """Returns the number of seats of one PodSet."""
        return sum(assigned.count for assigned in self.held.assignments if assigned.pod_set == name)

    def large_enough(self, own: PodSet) -> list[str]:
        """Returns the names of the PodSets whose seats are large enough for one of these pods."""
        asked = self._shape(own).requests.items()
        return [
            name
            for name, seat in self.held.requests
            if all(amount <= seat.get(resource, 0) for resource, amount in asked)
        ]

    def fitting(self, own: PodSet) -> list[str]:
        """Returns the names of the PodSets of which each seat is large enough for one of these pods, and on a
        node where the pod may be."""
        return [name for name in self.large_enough(own) if self._count_for(own, name) == self.count(name)]

    def _count_for(self, own: PodSet, name: str) -> int:
        """Returns the number of seats of one PodSet that are on nodes where these pods may be. A node that
        has vanished counts as such: the gang has to move anyway."""
        shape = self._shape(own)
        return sum(
            assigned.count
            for assigned in self.held.assignments
            if assigned.pod_set == name
            and ((node := self.nodes.get(assigned.node)) is None or permits(shape, node))
        )

    def _shape(self, own: PodSet) -> ResolvedShape:
        return self.arriving.get(own.name) or resolved_shape(own.shape)

    def pod_set_with_seats(self, own: PodSet, share: GangShare, stamped: str, *, fresh: bool) -> str:
        """Returns the name of the PodSet whose seats these pods have already; "" for none.

        `stamped`: the name that an earlier plan wrote onto their template. `fresh`: their object was not
        planned before; its pods have seats if they belong to a subgroup of the gang, or if the gang has a
        seat for each member."""
        shared = own.name in share.parts or (self.unknown_members == 0 and self.held.seats >= share.size)
        names = (stamped, own.name) if not fresh else (own.name,) if shared else ()
        fits = self.fitting(own)
        return next((name for name in names if name in fits and self.count(name) >= own.count), "")

    def names(self, wanted: Iterable[str]) -> dict[str, str]:
        """Returns the name under which each of these added PodSets is held, by PodSet name.

        It is the PodSet's own name, with a number if that is taken or is the name of unknown members
        (`OTHERS`).
        """
        taken = {name for name, _ in self.held.requests} | {OTHERS}
        result = {}
        for name in wanted:
            free = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
            result[name] = next(candidate for candidate in free if candidate not in taken)
            taken.add(result[name])
        return result

    def group(self, group: PodGroup, own: tuple[PodSet, ...], names: Mapping[str, str]) -> PodGroup:
        """Returns the gang with the PodSets and requests of its reservation; first come the PodSets whose
        seats the object's pods have.

        `own`: the object's PodSets. `names`: by the name of such a PodSet, the PodSet whose seats it has."""
        by_seat = {names[pod_set.name]: pod_set.shape for pod_set in own}
        stated = {pod_set.name: pod_set.constraint for pod_set in group.pod_sets}
        sets = [
            PodSet(
                name,
                self.count(name),
                replace(by_seat.get(name) or self._held_shape(name, own[0].shape), requests=requests),
                stated.get(name, Constraint()),
            )
            for name, requests in sorted(
                self.held.requests, key=lambda part: (part[0] not in by_seat, part[0])
            )
        ]
        return replace(group, pod_sets=tuple(sets))

    def with_added_seats(
        self, group: PodGroup, own: tuple[PodSet, ...], names: Mapping[str, str]
    ) -> PodGroup:
        """Returns the gang with added seats for these pods, and with that many fewer kept seats.

        Each held seat stays on its node. The added seats go to the nodes with kept seats if enough of these
        are large enough and on nodes where the pods may be, otherwise anywhere in the level that the gang
        requires; so also for pods with anti-affinity or host ports, which may keep them from nodes with other
        pods of the gang. `own`, `names`: the added PodSets, and their new names."""
        count = sum(pod_set.count for pod_set in own)
        spare = self.unknown_members - count
        enough = spare >= 0 and all(
            OTHERS in self.large_enough(pod_set)
            and self._count_for(pod_set, OTHERS) >= pod_set.count
            and all(term.attracts for term in pod_set.shape.terms)
            for pod_set in own
        )
        inside = self._nodes_of_others() if enough else ()
        added = [
            replace(pod_set, name=names[pod_set.name], shape=_pinned(pod_set, inside).shape)
            for pod_set in own
        ]
        amounts = dict(self.held.requests)
        kept = [
            _pinned(
                PodSet(
                    f"{seat.pod_set}{NODE_SEPARATOR}{seat.node}",
                    seat.count,
                    replace(self._held_shape(seat.pod_set, own[0].shape), requests=amounts[seat.pod_set]),
                ),
                (seat.node,),
            )
            for seat in self.held.assignments
            if seat.pod_set != OTHERS
        ]
        if spare > 0:
            bare = self._held_shape(OTHERS, own[0].shape)
            others = PodSet(OTHERS, spare, replace(bare, requests=amounts[OTHERS]))
            kept.append(_pinned(others, self._nodes_of_others()))
        return replace(group, pod_sets=(*added, *kept))

    def _held_shape(self, name: str, arriving: PodShape) -> PodShape:
        """Returns the shape of the pods on the seats of a PodSet of other members: that of the arriving pod,
        without what only applies to this pod, and with the labels and anti-affinity of the seats.

        The constraints of the arriving pod must not apply to other seats: its node affinity may pin it to its
        own seat, and two pods with its host port or anti-affinity cannot share a node. Nothing is known of
        the labels of unknown members."""
        traits = dict(self.held.traits).get(name) if name != OTHERS else None
        return replace(
            arriving,
            node_selector={},
            affinity=(),
            anti_affinity=(),
            claims=(),
            volumes=(),
            spread=(),
            labels=traits.labels if traits else {},
            terms=traits.terms if traits else (),
        )

    def _nodes_of_others(self) -> frozenset[str]:
        return frozenset(seat.node for seat in self.held.assignments if seat.pod_set == OTHERS)


def _pinned(pod_set: PodSet, nodes: Iterable[str]) -> PodSet:
    """Returns the PodSet with its pods restricted to these nodes; unchanged if there are no nodes."""
    names = tuple(sorted(nodes))
    if not names:
        return pod_set
    inside = Requirement(NODE_NAME_FIELD, "In", names)
    terms = tuple((*term, inside) for term in pod_set.shape.affinity) or ((inside,),)
    return replace(pod_set, shape=replace(pod_set.shape, affinity=terms))
