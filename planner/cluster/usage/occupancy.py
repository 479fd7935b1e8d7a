"""The bound pods and the gangs' reservations of each node, as immutable indexes with cheap changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.devices.claims import claim_names
from planner.model.names import namespace_of
from planner.model.natural_order import natural
from planner.model.pod import BoundPod
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation
from planner.model.resources import Resources
from planner.model.topology import Domain
from planner.persistent.persistent_map import PersistentMap

_NOTHING: Resources = {}


@dataclass(frozen=True, slots=True)
class Pods(Collection[BoundPod]):
    """Bound pods by node.

    `carriers`: the nodes with pods that carry a reservation's id (as annotation), by id. `claimants`: the
    nodes with pods that name a device claim or template, by NAMESPACE/NAME of the claim (`claim_names`).
    `with_anti_affinity`: the pods that have anti-affinity, by node.
    """

    by_node: PersistentMap[str, tuple[BoundPod, ...]] = field(default_factory=PersistentMap)
    carriers: PersistentMap[str, frozenset[str]] = field(default_factory=PersistentMap)
    claimants: PersistentMap[str, frozenset[str]] = field(default_factory=PersistentMap)
    with_anti_affinity: PersistentMap[str, tuple[BoundPod, ...]] = field(default_factory=PersistentMap)

    @staticmethod
    def of(pods: Iterable[BoundPod]) -> Pods:
        """Returns an index of these pods."""
        by_node: dict[str, list[BoundPod]] = {}
        carriers: dict[str, set[str]] = {}
        claimants: dict[str, set[str]] = {}
        for pod in pods:
            by_node.setdefault(pod.node, []).append(pod)
            for reservation_id in carried(pod):
                carriers.setdefault(reservation_id, set()).add(pod.node)
            for claim in claim_names(pod):
                claimants.setdefault(claim, set()).add(pod.node)
        with_terms = {node: tuple(pod for pod in on_node if pod.terms) for node, on_node in by_node.items()}
        return Pods(
            PersistentMap({node: tuple(on_node) for node, on_node in by_node.items()}),
            PersistentMap({reservation_id: frozenset(nodes) for reservation_id, nodes in carriers.items()}),
            PersistentMap({claim: frozenset(nodes) for claim, nodes in claimants.items()}),
            PersistentMap({node: on_node for node, on_node in with_terms.items() if on_node}),
        )

    def __iter__(self) -> Iterator[BoundPod]:
        return (pod for on_node in self.by_node.values() for pod in on_node)

    def __len__(self) -> int:
        return sum(map(len, self.by_node.values()))

    def __contains__(self, pod: object) -> bool:
        return isinstance(pod, BoundPod) and pod in self.on(pod.node)

    def on(self, node: str) -> tuple[BoundPod, ...]:
        """Returns the pods on a node."""
        return self.by_node.get(node, ()) or ()

    def of_gang(self, gang: str, reservation_id: str) -> Iterator[BoundPod]:
        """Yields the pods that carry the id of the gang's reservation (`belongs_to_gang`), in the order of
        their nodes' names.

        Reads only the nodes that `carriers` has for the id, because reading all pods for each gang is
        quadratic.
        """
        return (
            pod
            for node in sorted(self.carriers.get(reservation_id) or ())
            for pod in self.on(node)
            if belongs_to_gang(pod, gang, reservation_id)
        )

    def empty_seats(
        self, reservation: Reservation, *, terminating_too: bool
    ) -> Iterator[tuple[Assignment, int]]:
        """Yields the assignments of a reservation, each with the number of its pods that are not bound yet.

        `terminating_too`: whether the seats of terminating pods count as empty, because other pods will
        replace these; until then, they still use the seats.
        """
        pods = self.of_gang(reservation.gang, reservation.id)
        bound_counts = Counter(pod.node for pod in pods if not (pod.terminating and terminating_too))
        for assignment in reservation.assignments:
            bound_count = min(assignment.count, bound_counts[assignment.node])
            bound_counts[assignment.node] -= bound_count
            if assignment.count > bound_count:
                yield assignment, assignment.count - bound_count

    def with_pod(self, pod: BoundPod) -> Pods:
        """Returns the index with this pod, in place of a pod of the same name on the same node."""
        pods = (*(other for other in self.on(pod.node) if other.name != pod.name), pod)
        return self._with(pod.node, pods)

    def without_pod(self, pod: BoundPod) -> Pods:
        """Returns the index without the pod of this name on its node."""
        return self._with(pod.node, tuple(other for other in self.on(pod.node) if other.name != pod.name))

    def _with(self, node: str, pods: tuple[BoundPod, ...]) -> Pods:
        former = self.on(node)
        carriers = _with_node(self.carriers, node, _keys(carried, former), _keys(carried, pods))
        claimants = _with_node(self.claimants, node, _keys(claim_names, former), _keys(claim_names, pods))
        with_terms = self.with_anti_affinity
        if node in with_terms or any(pod.terms for pod in pods):
            with_terms = with_terms.changed(node, tuple(pod for pod in pods if pod.terms) or None)
        return Pods(self.by_node.changed(node, pods or None), carriers, claimants, with_terms)


def _keys(keys_of: Callable[[BoundPod], Iterable[str]], pods: Iterable[BoundPod]) -> set[str]:
    return {key for pod in pods for key in keys_of(pod)}


def _with_node(
    nodes_by_key: PersistentMap[str, frozenset[str]], node: str, before: set[str], after: set[str]
) -> PersistentMap[str, frozenset[str]]:
    """Returns the index of nodes by key after the keys of the pods on one node have changed."""
    changes: dict[str, frozenset[str] | None] = {}
    for key in before ^ after:
        nodes: frozenset[str] = nodes_by_key.get(key, frozenset())
        changes[key] = (nodes | {node} if key in after else nodes - {node}) or None
    return nodes_by_key.updated(changes)


def belongs_to_gang(pod: BoundPod, gang: str, reservation_id: str) -> bool:
    """Reports whether a pod carries the id of the gang's reservation and is in the gang's namespace.

    Users can write the annotation onto their own pods, so an id from another namespace has no effect.
    """
    return namespace_of(pod.name) == namespace_of(gang) and reservation_id in carried(pod)


def carried(pod: BoundPod) -> list[str]:
    """Returns the reservation ids in a pod's annotation: these reservations may account for the pod."""
    return (
        [reservation_id for reservation_id in pod.reservation.split(",") if reservation_id]
        if pod.reservation
        else []
    )


Held = tuple[str, Domain]
"""The name of a topology, and a domain of it that is held whole."""


def held_by(reservation: Reservation) -> list[Held]:
    """Returns the domains that a reservation holds whole, as (topology name, domain)."""
    return [(reservation.topology, domain) for domain in reservation.domains]


Hold = tuple[Reservation, Resources]
"""A reservation that holds or uses a node, and the amounts that the gang's pods use on that node."""


def unaccounted(pods: Iterable[BoundPod], holds: Iterable[Hold]) -> dict[str, int]:
    """Returns the amounts that pods on one node use beyond what is reserved for them there.

    A pod that carries a reservation's id is covered by what that reservation uses on this node, and no more.
    Otherwise it uses capacity like any other pod: a gang's pod on another node than the reserved one, a
    surplus pod, or a pod of another namespace with a copied id (users can write annotations).
    """
    reserved_here = {reservation.id: (namespace_of(reservation.gang), uses) for reservation, uses in holds}
    used: dict[str, int] = {}
    used_by_reservation: dict[str, dict[str, int]] = {}
    for pod in pods:
        # Most pods carry no id. Their names are not read, because reading copies pages that workers share.
        reservation_id = _accounting(pod, reserved_here) if pod.reservation else None
        add(
            used if reservation_id is None else used_by_reservation.setdefault(reservation_id, {}),
            pod.requests,
        )
    for reservation_id, amounts in used_by_reservation.items():
        reserved = reserved_here[reservation_id][1]
        unreserved = {name: amount - reserved.get(name, 0) for name, amount in amounts.items()}
        add(used, {name: amount for name, amount in unreserved.items() if amount > 0})
    return used


def _accounting(pod: BoundPod, reserved_here: Mapping[str, tuple[str, Resources]]) -> str | None:
    """Returns the first reservation id that the pod carries and that is reserved on this node for a gang of
    its namespace; None if there is none.
    """
    namespace = namespace_of(pod.name)
    ids = (key for key in carried(pod) if key in reserved_here and reserved_here[key][0] == namespace)
    return next(ids, None)


@dataclass(frozen=True, slots=True)
class Holds:
    """Indexes of the reservations. `by_node`: the holds of each node, sorted by gang name.

    `gangs`: the gang of each reservation id. `with_anti_affinity`: the reservations whose pods have
    anti-affinity, by gang. `by_domain`: the gangs that hold a domain whole, by topology name and domain.
    """

    by_gang: PersistentMap[str, Reservation] = field(default_factory=PersistentMap)
    gangs: PersistentMap[str, str] = field(default_factory=PersistentMap)
    by_node: PersistentMap[str, tuple[Hold, ...]] = field(default_factory=PersistentMap)
    with_anti_affinity: PersistentMap[str, Reservation] = field(default_factory=PersistentMap)
    by_domain: PersistentMap[Held, tuple[str, ...]] = field(default_factory=PersistentMap)

    def updated(
        self,
        removed: Iterable[Reservation],
        added: Iterable[Reservation],
        touched: Callable[[Reservation], frozenset[str]],
    ) -> Holds:
        """Returns the index without the removed and with the added reservations.

        `touched`: returns every node that a reservation holds or uses (`Snapshot.held_nodes`).
        """
        gangs: dict[str, Reservation | None] = {}
        with_terms: dict[str, Reservation | None] = {}
        ids: dict[str, str | None] = {}
        nodes: dict[str, tuple[Hold, ...]] = {}
        removed, added = list(removed), list(added)
        for reservation in removed:
            gangs[reservation.gang] = ids[reservation.id] = None
            if reservation.gang in self.with_anti_affinity:
                with_terms[reservation.gang] = None
            for node in touched(reservation):
                held = nodes[node] if node in nodes else self.on(node)
                nodes[node] = tuple(hold for hold in held if hold[0].gang != reservation.gang)
        for reservation in added:
            gangs[reservation.gang] = reservation
            ids[reservation.id] = reservation.gang
            if any(traits.terms for _, traits in reservation.traits):
                with_terms[reservation.gang] = reservation
            uses = used_by(reservation)
            for node in touched(reservation):
                held = nodes[node] if node in nodes else self.on(node)
                extended = (*held, (reservation, uses.get(node, _NOTHING)))
                nodes[node] = tuple(sorted(extended, key=_gang)) if held else extended
        return Holds(
            self.by_gang.updated(gangs),
            self.gangs.updated(ids),
            self.by_node.updated({node: held or None for node, held in nodes.items()}),
            self.with_anti_affinity.updated(with_terms),
            self.by_domain.updated(self._domains(removed, added)),
        )

    def _domains(
        self, removed: Iterable[Reservation], added: Iterable[Reservation]
    ) -> dict[Held, tuple[str, ...] | None]:
        """Returns the changed entries of `by_domain`; None for a domain that no gang holds any more."""
        domains: dict[Held, tuple[str, ...]] = {}
        for reservation in removed:
            for domain in held_by(reservation):
                gangs = domains.get(domain, self.by_domain.get(domain, ()))
                domains[domain] = tuple(gang for gang in gangs if gang != reservation.gang)
        for reservation in added:
            for domain in held_by(reservation):
                domains[domain] = (*domains.get(domain, self.by_domain.get(domain, ())), reservation.gang)
        return {domain: gangs or None for domain, gangs in domains.items()}

    def with_node_domains(self, node: str, domains: Iterable[Held]) -> Holds:
        """Returns the index after a node was added, removed or moved. `domains`: all domains of the node now.

        A gang that holds one of these domains whole also holds the node.
        """
        former_gangs = {reservation.gang for reservation, _ in self.on(node)}
        gangs = {reservation.gang for reservation, _ in self.on(node) if node in reservation.touched}
        gangs.update(gang for domain in domains for gang in self.by_domain.get(domain, ()))
        if gangs == former_gangs:
            return self
        held = sorted(map(self.by_gang.__getitem__, gangs), key=lambda reservation: natural(reservation.gang))
        holds = tuple((reservation, used_by(reservation).get(node, _NOTHING)) for reservation in held)
        return replace(self, by_node=self.by_node.changed(node, holds or None))

    def on(self, node: str) -> tuple[Hold, ...]:
        """Returns the reservations that hold or use a node, each with what its gang uses there."""
        return self.by_node.get(node, ()) or ()


def _gang(hold: Hold) -> str:
    return natural(hold[0].gang)


def used_by(reservation: Reservation) -> dict[str, dict[str, int]]:
    """Returns the amounts that a gang uses, by node and resource."""
    requests = dict(reservation.requests)
    used: dict[str, dict[str, int]] = {}
    for assignment in reservation.assignments:
        add(
            used.setdefault(assignment.node, {}), requests.get(assignment.pod_set, _NOTHING), assignment.count
        )
    return used


def add(total: dict[str, int], amounts: Resources, times: int = 1) -> None:
    """Adds amounts, multiplied by `times`, to the total in place."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount * times
