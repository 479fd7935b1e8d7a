"""Computes what a gang holds whose pods Kueue places: the assigned nodes, before pods are bound. Pure.

Kueue's assignment is taken as it is; whether the pods tolerate those nodes is not checked. Seats that another
gang holds are not taken from that gang: they are left out and reported. If an assigned domain has several
nodes (a Topology that ends at racks), its seats go first to nodes with pods of the Workload, then to nodes
with room.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import add
from planner.ledger.conflicts import RecordedReservation, in_the_way
from planner.model.cached_property import cached_property
from planner.model.natural_order import natural
from planner.model.pod import BoundPod
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, reservation_id
from planner.model.resources import Resources
from planner.model.topology import HOSTNAME, Topology, common_domain
from planner.model.words import listed, pods
from planner.planning.reservation import headroom
from webhook.kube.state.kueue_places import AssignedPodSet, KueuePlace

Seats = Counter[tuple[str, str]]
"""Number of pods by PodSet and node."""

MOST_NAMED = 4
"""Maximum number of unavailable seats, or of gangs, that a message names."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """The result for one assignment. `reservation`: what the gang should hold, None for nothing; `lacking`:
    the assigned seats that the gang cannot have, as text with the reasons.
    """

    reservation: Reservation | None
    lacking: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The reasons why a part is not held; "" if everything is."""
        return listed(list(self.lacking), MOST_NAMED)


@dataclass(slots=True)
class NodesByLabels:
    """Finds the nodes of a snapshot by the labels in assignments, with one index for each set of label
    keys.
    """

    snapshot: Snapshot
    _by_keys: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = field(default_factory=dict)

    def having(self, labels: tuple[tuple[str, str], ...]) -> list[str]:
        """Returns the names of the nodes with all of these labels; a node without a hostname label is
        found by its name.
        """
        keys = tuple(key for key, _ in labels)
        if keys not in self._by_keys:
            nodes = self._by_keys[keys] = {}
            for node in self.snapshot.nodes.values():
                own = {HOSTNAME: node.name, **node.labels}
                values = tuple(own.get(key, "") for key in keys)
                nodes.setdefault(values, []).append(node.name)
        return self._by_keys[keys].get(tuple(value for _, value in labels), [])


def adopted(snapshot: Snapshot, place: KueuePlace, name: str, nodes: NodesByLabels) -> Adopted:
    """Returns what the gang `name` should hold of a place that Kueue has assigned."""
    held = snapshot.holding(name)
    former = held if held is not None and held.gang != place.gang else None
    scene = _AssignedWorkload.of(snapshot, place, name)
    wanted, lacking = scene.seats(nodes)
    if held is not None and held.mode == "nodes" and _of(held) == _by_pod_set(wanted, place, former)[0]:
        return Adopted(held, lacking)  # unchanged seats stay, whatever has happened to their nodes
    fitting, crowded = scene.fitting(wanted)
    lacking += crowded
    while fitting:  # each turn leaves out the seats on nodes of one gang that is in the way
        reservation = _reservation(snapshot, place, name, fitting, former)
        holder = _in_the_way(snapshot, reservation)
        if holder is None:
            return Adopted(reservation, lacking)
        obstacle = snapshot.holding(holder)
        taken = {key: count for key, count in fitting.items() if obstacle and key[1] in obstacle.touched}
        if not taken:
            return Adopted(None, (*lacking, f"{holder} is in the way"))
        lacking += tuple(
            f"{pods(count)} on {node}, which {holder} holds" for (_, node), count in taken.items()
        )
        fitting = Counter({key: count for key, count in fitting.items() if key not in taken})
    return Adopted(None, lacking)


def pods_of(snapshot: Snapshot, place: KueuePlace, name: str = "") -> list[BoundPod]:
    """Returns the bound pods of a Workload: those with its own reservation id, or with that of the gang
    `name`.
    """
    gangs = filter(None, (place.gang, name))
    own = {pod.name: pod for gang in gangs for pod in snapshot.bound.of_gang(gang, reservation_id(gang))}
    return sorted(own.values(), key=lambda pod: (pod.node, pod.name))


@dataclass(frozen=True)
class _AssignedWorkload:
    """A Workload's assignment and its cluster.

    `name`: the gang that should hold the place. `own`: the bound pods of the Workload. `bound_counts`: their
    number by PodSet and node. `kept`: by node, the number of seats that the gang holds.
    """

    place: KueuePlace
    snapshot: Snapshot
    name: str
    own: tuple[BoundPod, ...]
    bound_counts: Seats
    kept: Counter[str]

    @staticmethod
    def of(snapshot: Snapshot, place: KueuePlace, name: str) -> _AssignedWorkload:
        own, bound_counts, kept = tuple(pods_of(snapshot, place, name)), Seats(), Counter[str]()
        left = Counter({part.name: sum(d.count for d in part.domains) for part in place.pod_sets})
        for pod in own:
            # A pod counts for the first PodSet with its requests that still lacks pods.
            alike = (p.name for p in place.pod_sets if left[p.name] and p.requests == pod.requests)
            if (part := next(alike, None)) is not None:
                left[part] -= 1
                bound_counts[part, pod.node] += 1
        if (held := snapshot.holding(name)) is not None:
            for seat in held.assignments:
                kept[seat.node] += seat.count
        return _AssignedWorkload(place, snapshot, name, own, bound_counts, kept)

    @cached_property
    def remaining(self) -> Snapshot:
        """The cluster without the Workload's pods and without what its gang holds. Computed only when needed:
        in most rounds the seats are unchanged.
        """
        remaining = self.snapshot.without(self.name)
        for pod in self.own:
            remaining = remaining.without_pod(pod)
        return remaining

    def seats(self, nodes: NodesByLabels) -> tuple[Seats, tuple[str, ...]]:
        """Returns the assigned seats, and as text those for which there is no node or no room.

        A succeeded pod (`ended`) needs no seat: for each, a seat without a bound pod is left out.
        """
        seats, lacking = Seats(), []
        for part in self.place.pod_sets:
            ended = part.ended
            for domain in part.domains:
                inside = nodes.having(domain.labels)
                bound_here = {node: self.bound_counts[part.name, node] for node in inside}
                over = min(ended, max(domain.count - sum(bound_here.values()), 0))
                count, ended = domain.count - over, ended - over
                if len(inside) == 1:
                    seats[part.name, inside[0]] += count
                    continue
                for node, seated in self._filled(part, bound_here, count, seats):
                    seats[part.name, node] += seated
                    count -= seated
                if count:
                    where = "/".join(value for _, value in domain.labels)
                    why = "where no node has room" if inside else "which no node is"
                    lacking.append(f"{pods(count)} in {where}, {why}")
        return +seats, tuple(lacking)  # `+`: without counts of zero

    def _filled(
        self, part: AssignedPodSet, bound_here: Mapping[str, int], count: int, seats: Seats
    ) -> Iterator[tuple[str, int]]:
        """Yields nodes of one domain with a number of seats, `count` in total if there is room.

        The order of the nodes, by the first difference:
        1. more pods of the PodSet on the node
        2. more seats of the gang's present reservation
        3. more room
        4. name
        """
        room = {node: self._room(part.requests, node, seats) for node in bound_here}
        for node in sorted(
            bound_here, key=lambda node: (-bound_here[node], -self.kept[node], -room[node], natural(node))
        ):
            seated = min(count, max(bound_here[node], room[node]))
            count -= seated
            if seated:
                yield node, seated

    def fitting(self, wanted: Seats) -> tuple[Seats, tuple[str, ...]]:
        """Returns the wanted seats for which there is room, and as text the others."""
        requests = {part.name: part.requests for part in self.place.pod_sets}
        result, lacking = Seats(), []
        for (part, node), count in wanted.items():
            seated = min(count, max(self._room(requests[part], node, result), self.bound_counts[part, node]))
            if seated:
                result[part, node] = seated
            if seated < count:
                lacking.append(f"{pods(count - seated)} on {node}, {self._taken_by(node)}")
        return result, tuple(lacking)

    def _room(self, requests: Resources, node: str, seats: Seats) -> int:
        """Returns how many more pods with these requests fit on a node beside `seats`; none if another gang
        holds the node whole.
        """
        if self._holder(node):
            return 0
        free = dict(self.remaining.usage.free_on(self.remaining.nodes[node])[0])
        for part in self.place.pod_sets:
            if count := seats[part.name, node]:
                add(free, part.requests, -count)
        return max(min((free.get(name, 0) // amount for name, amount in requests.items()), default=0), 0)

    def _holder(self, node: str) -> str:
        """Returns the gang that holds the node as part of a whole domain, "" for none."""
        return next((r.gang for r, _ in self.remaining.holds.on(node) if r.mode == "domain"), "")

    def _taken_by(self, node: str) -> str:
        if holder := self._holder(node):
            return f"which {holder} holds"
        users = [other.gang for other, uses in self.remaining.holds.on(node) if uses]
        return f"where {listed(users, MOST_NAMED)} has its place" if users else "where pods leave no room"


def _reservation(
    snapshot: Snapshot, place: KueuePlace, name: str, seats: Seats, former: Reservation | None
) -> Reservation:
    """Returns the reservation of these seats. It keeps what identifies the gang's present reservation, so
    that the ledger replaces that one in one step. `former`: as in `_by_pod_set`.
    """
    by_pod_set, requests = _by_pod_set(seats, place, former)
    nodes = frozenset(node for _, node in by_pod_set)
    topology = _topology(snapshot, nodes)
    domain = common_domain([topology.path(node, snapshot.nodes[node].labels) for node in nodes])
    assignments = tuple(Assignment(part, node, count) for (part, node), count in sorted(by_pod_set.items()))
    wanted = Reservation(
        id=reservation_id(name),
        gang=name,
        topology=topology.name,
        level=topology.levels[len(domain) - 1] if domain else "",
        domain=domain,
        mode="nodes",
        domains=(),
        nodes=nodes,
        assignments=assignments,
        requests=requests,
        fingerprint=hashlib.sha256(place.ref.uid.encode()).hexdigest()[:32],
    )
    if former is None:
        former = snapshot.holding(name)
    if former is None:
        return wanted
    kept = ("fingerprint", "created", "expires", "state", "owner_uid", "traits")
    return replace(wanted, **{field: getattr(former, field) for field in kept})


def _by_pod_set(
    seats: Seats, place: KueuePlace, former: Reservation | None
) -> tuple[Seats, tuple[tuple[str, Resources], ...]]:
    """Returns the seats by PodSet and node, and the requests of each PodSet.

    The PodSets are those of the reservation `former` that the planner made for the gang, or Kueue's if it is
    None: Kueue counts leader and workers of one template as one PodSet, the planner as two.
    """
    requests = {part.name: part.requests for part in place.pod_sets}
    if former is None:
        return seats, tuple(requests.items())
    asked = dict(former.requests)
    left: Counter[str] = Counter()
    for seat in former.assignments:
        left[seat.pod_set] += seat.count
    result = Seats()
    for (part, node), count in sorted(seats.items()):
        alike = [name for name, amounts in asked.items() if amounts == requests[part]]
        for name in sorted(alike, key=lambda name: name != part):  # the PodSet of the same name first
            taken = min(count, left[name])
            left[name] -= taken
            count -= taken
            result[name, node] += taken
        if count:  # there are more pods than the gang held seats for
            result[part, node] += count
            asked.setdefault(part, requests[part])
    return +result, tuple(asked.items())


def _of(held: Reservation) -> Seats:
    seats = Seats()
    for seat in held.assignments:
        seats[seat.pod_set, seat.node] += seat.count
    return seats


def _topology(snapshot: Snapshot, nodes: Collection[str]) -> Topology:
    """Returns the first topology that contains all of these nodes, or else the first one."""
    trees = snapshot.base.trees
    fitting = (t for t in snapshot.topologies if all(name in trees[t.name].places for name in nodes))
    return next(fitting, snapshot.topologies[0])


def _in_the_way(snapshot: Snapshot, wanted: Reservation) -> str | None:
    """Returns the gang whose reservation conflicts with this one, None for none."""
    kept = [RecordedReservation(r, 0) for r in snapshot.reservations if r.id != wanted.id]
    room = headroom(snapshot.with_reservation(wanted), wanted)
    return in_the_way(wanted, snapshot.revision, kept, room)
