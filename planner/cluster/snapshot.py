"""The cluster at one moment: nodes, what pods use on them, and which gangs hold them.

`Infrastructure` (topologies, nodes, their trees) is built once and shared; a snapshot adds what changes with
pods and reservations. Invariant: on every node, for every resource, `taken` is used plus reserved, and
nothing is counted twice. A bound pod that carries the id of a reservation in the book is covered by what that
reservation uses on the pod's node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from planner.cluster.capacity import DomainCapacity
from planner.cluster.capacity_cache import CapacityIndex
from planner.cluster.infrastructure import STATED_SETTINGS, Infrastructure, ordered
from planner.cluster.plan_cache import DerivedValues
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.cluster.usage.node_usage import NodeUsage
from planner.cluster.usage.occupancy import Holds, Pods
from planner.devices.claims import Claims
from planner.model.cached_property import cached_property
from planner.model.growth import GrowingPool
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.reservation import Book, Reservation
from planner.model.topology import Topology
from planner.model.volumes import NO_VOLUMES, Volumes
from planner.node.gpu_sharing import shared_gpus_of
from planner.node.numa_state import NumaState, numa_state_now, pods_to_come
from planner.persistent.sequence_delta import sequence_delta

_ADDING_COST = 5
"""Adding one node to the trees takes about as long as building them from five nodes (measured at 200 to
20,000 nodes, with racks and without)."""


@dataclass(slots=True, eq=False)
class SnapshotIndex:
    """Values that a `Snapshot` has computed so far; None means not computed yet.

    Apart from caches, only these fields are written after a `Snapshot` is created: by its own properties and
    methods, and by `Snapshot.evolve`, which copies values. `latest` is a hint, see `Snapshot.latest`.
    """

    bound: Pods | None = None
    holds: Holds | None = None
    capacity: CapacityIndex | None = None
    latest: Snapshot | None = None


@dataclass(frozen=True)
class Snapshot:
    """The cluster at one moment. Immutable for its users: each change gives another snapshot.

    `pods`: the bound pods that use capacity. `reservations`: what gangs hold. `revision`: the revision of the
    ledger's book. A changed snapshot shares with the former one everything that the change does not affect; a
    plan on the changed snapshot equals a plan on a snapshot of the same objects that is built from scratch.
    """

    base: Infrastructure
    pods: Collection[BoundPod] = ()
    reservations: tuple[Reservation, ...] = ()
    revision: int = 0
    index: SnapshotIndex = field(default_factory=SnapshotIndex, init=False, repr=False, compare=False)

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """Every topology, in natural name order."""
        return self.base.topologies

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every node by name, in natural order."""
        return self.base.nodes

    @property
    def bound(self) -> Pods:
        """The bound pods by node."""
        if self.index.bound is None:
            self.index.bound = self.pods if isinstance(self.pods, Pods) else Pods.of(self.pods)
        return self.index.bound

    @property
    def holds(self) -> Holds:
        """The reservations by gang and by node."""
        if self.index.holds is None:
            self.index.holds = Holds().updated((), self.reservations, self.held_nodes)
        return self.index.holds

    @property
    def _capacity(self) -> CapacityIndex:
        if self.index.capacity is None:
            self.index.capacity = CapacityIndex(self.base.capacities)
        return self.index.capacity

    @cached_property
    def derived(self) -> DerivedValues:
        """Values that other packages computed from this snapshot alone."""
        return DerivedValues()

    def capacity(self, tree: TopologyTree) -> DomainCapacity:
        """Returns the free capacity of a tree at this moment."""
        base = self.base
        return self._capacity.of(
            tree,
            lambda branch: self._host_capacity(branch, tree.cluster[branch.node]),
            common=base.devices.kinds if base.claims.slices else None,
        )

    def _host_capacity(self, branch: Subtree, node: Node) -> DomainCapacity:
        holds = self.holds.on(node.name)
        pods = self.bound.on(node.name)
        if holds or pods or self.base.claims.slices:
            free, gpus, available_devices = self.usage.free_on(node)
        else:
            free, gpus, available_devices = self.base.offers(node), shared_gpus_of(node), None
        return self.base.capacities.host(
            branch,
            node,
            free,
            opened=bool(holds) or any(not pod.daemon for pod in pods),
            gang=holds[-1][0].gang if holds else "",
            held=next((r.gang for r, _ in reversed(holds) if r.mode == "domain"), ""),
            gpus=gpus,
            numa_state=self._numa_state(node),
            available_devices=available_devices,
        )

    def _numa_state(self, node: Node) -> NumaState | None:
        numa_node = self.base.aligned(node)
        if numa_node is None:
            return None
        pods, holds = self.bound.on(node.name), self.holds.on(node.name)
        return numa_state_now(
            numa_node, pods, pods_to_come(node.name, pods, (reservation for reservation, _ in holds))
        )

    @cached_property
    def usage(self) -> NodeUsage:
        """What is taken and free on each node."""
        return NodeUsage(self.base, self.bound, self.holds)

    def plain_free_on(self, name: str) -> dict[str, int] | None:
        """Returns the free amounts of a node; None if amounts alone do not determine which pods fit (NUMA
        zones, GPU shares, claimed devices), or if the node is unknown.
        """
        node = self.nodes.get(name)
        return None if node is None or self.base.aligned(node) is not None else self.usage.plain_free_on(node)

    def taken_on(self, node: str) -> dict[str, int]:
        """Returns the amounts that bound pods use and gangs have reserved on a node, by resource.

        A partly used GPU counts as one.
        """
        present = self.nodes.get(node)
        return self.usage.taken_on(present) if present else self.usage.promised_on(node)

    @cached_property
    def used(self) -> dict[str, dict[str, int]]:
        """The amounts that bound pods use beyond the reservations in the book, by node and resource."""
        used = {node: self.usage.used_on(node) for node in self.bound.by_node}
        return {node: amounts for node, amounts in used.items() if amounts}

    @cached_property
    def taken(self) -> dict[str, dict[str, int]]:
        """The amounts that bound pods use and gangs have reserved, by node and resource."""
        busy = dict.fromkeys((*self.bound.by_node, *self.holds.by_node))
        taken = {node: self.taken_on(node) for node in busy}
        return {node: amounts for node, amounts in taken.items() if amounts}

    @cached_property
    def opened(self) -> frozenset[str]:
        """Names of nodes that are in use: by a gang, or by a pod that does not belong to a DaemonSet."""
        return frozenset(self.holds.by_node).union(pod.node for pod in self.bound if not pod.daemon)

    @cached_property
    def holders(self) -> dict[str, str]:
        """The gang that holds a node whole, by node."""
        return {
            node: reservation.gang
            for node, holds in self.holds.by_node.items()
            for reservation, _ in holds
            if reservation.mode == "domain"
        }

    @cached_property
    def users(self) -> dict[str, str]:
        """By node, a gang that holds or uses it: of several gangs, the last by name."""
        return {node: holds[-1][0].gang for node, holds in self.holds.by_node.items()}

    def held_nodes(self, reservation: Reservation) -> frozenset[str]:
        """Returns the names of all nodes that a reservation holds or uses, including nodes that have joined
        its whole domains since it was made.
        """
        tree = self.base.trees.get(reservation.topology)
        branches = (tree.branch(domain) for domain in reservation.domains) if tree else ()
        joined = (name for branch in branches if branch and tree for name in tree.names(branch))
        return reservation.touched.union(joined)

    def holding(self, gang: str) -> Reservation | None:
        """Returns the gang's own reservation, None if it has none."""
        reservation: Reservation | None = self.holds.by_gang.get(gang)
        return reservation

    def with_id(self, reservation_id: str) -> Reservation | None:
        """Returns the reservation with this id, None if there is none."""
        gang = self.holds.gangs.get(reservation_id)
        return self.holding(gang) if gang is not None else None

    def with_book(self, book: Book) -> Snapshot:
        """Returns the same cluster with exactly the reservations of the ledger's book."""
        latest_snapshot = self.latest
        former = latest_snapshot.reservations
        splices = sequence_delta(former, book.reservations)
        unknown = [held for splice in splices for held in splice.new]
        equal = {held.gang for held in unknown if latest_snapshot.holding(held.gang) == held}
        added = [held for held in unknown if held.gang not in equal]
        missing = (held for place, gone, _ in splices for held in former[place : place + gone])
        removed = [held for held in missing if held.gang not in equal]
        snapshot = latest_snapshot._with_reservations(book.reservations, removed, added, book.revision)
        self.index.latest = snapshot
        return snapshot

    def with_reservation(self, reservation: Reservation) -> Snapshot:
        """Returns the same cluster with one more reservation, which replaces an earlier one of the same
        gang.
        """
        former = self.holding(reservation.gang)
        other_reservations = self._other_reservations(reservation.gang)
        return self._with_reservations(
            (*other_reservations, reservation), [former] if former else [], [reservation]
        )

    def without(self, gang: str) -> Snapshot:
        """Returns the same cluster without the gang's reservation."""
        former = self.holding(gang)
        return (
            self if former is None else self._with_reservations(self._other_reservations(gang), [former], [])
        )

    def ended(self, gang: str) -> Snapshot:
        """Returns the same cluster without the gang's reservation and without its pods; unchanged if the gang
        has no reservation.
        """
        former = self.holding(gang)
        if former is None:
            return self
        left = self.without(gang)
        for pod in self.bound.of_gang(gang, former.id):
            left = left.without_pod(pod)
        return left

    def runs(self, reservation: Reservation) -> bool:
        """Reports whether a pod of the reservation's gang is bound."""
        return any(True for _ in self.bound.of_gang(reservation.gang, reservation.id))

    def _other_reservations(self, gang: str) -> tuple[Reservation, ...]:
        """Returns all reservations except the gang's.

        Searches from the end, because a reservation that is removed here was usually the last one added.
        """
        if gang not in self.holds.by_gang:
            return self.reservations
        place = next(n for n in reversed(range(len(self.reservations))) if self.reservations[n].gang == gang)
        return self.reservations[:place] + self.reservations[place + 1 :]

    def _with_reservations(
        self,
        reservations: tuple[Reservation, ...],
        removed: Sequence[Reservation],
        added: Sequence[Reservation],
        revision: int | None = None,
    ) -> Snapshot:
        """Returns the same cluster with these reservations; `removed` and `added` are the differences."""
        changed_nodes: set[str] = set()
        for reservation in (*removed, *added):
            changed_nodes |= self.held_nodes(reservation)
            # Bound pods with the reservation's id are covered by it, or no longer are.
            changed_nodes |= self.bound.carriers.get(reservation.id) or frozenset()
        holds = self.holds.updated(removed, added, self.held_nodes)
        return self.evolve(
            reservations=reservations, revision=revision, holds=holds, changed_nodes=changed_nodes
        )

    def with_claims(self, claims: Claims, volumes: Volumes = NO_VOLUMES) -> Snapshot:
        """Returns the same cluster with these device claims and volumes added."""
        base = replace(
            self.base,
            claims=self.base.claims.overlaid_with(claims),
            volumes=self.base.volumes.overlaid_with(volumes),
        )
        return Snapshot(base, self.bound, self.reservations, self.revision)

    def with_stated_settings(
        self, growing: Iterable[GrowingPool] = (), *, resources_tolerated: bool | None = None
    ) -> Snapshot:
        """Returns the same cluster with settings that its administrator states in Bayplan's parameters.

        `growing`: node pools that may grow; they replace pools of the same names. `resources_tolerated`:
        whether the API server adds tolerations for extended resources; None to derive it from the nodes.
        """
        pools = tuple(growing)
        if not pools and resources_tolerated is None:
            return self
        overrides = (pools, resources_tolerated)
        base = self.base.derived.get(
            STATED_SETTINGS, repr(overrides), lambda: self.base.with_stated_settings(*overrides)
        )
        return self.evolve(base=base, changed_nodes=frozenset())

    def with_pod(self, pod: BoundPod) -> Snapshot:
        """Returns the same cluster with this pod bound; it replaces a pod of the same name on the node."""
        return self.evolve(bound=self.bound.with_pod(pod), changed_nodes={pod.node})

    def without_pod(self, pod: BoundPod) -> Snapshot:
        """Returns the same cluster without the pod of this name on its node."""
        return self.evolve(bound=self.bound.without_pod(pod), changed_nodes={pod.node})

    def with_node(self, node: Node) -> Snapshot:
        """Returns the same cluster with this node added or changed; cheap if its topology labels stay the
        same.
        """
        if self.base.nodes.get(node.name) == node:
            return self
        return self._with_base(self.base.with_node(node), node.name)

    def with_nodes(self, nodes: Sequence[Node]) -> Snapshot:
        """Returns the same cluster with these nodes added: one by one, or by building the trees again if
        that takes less time (`_ADDING_COST`).
        """
        if len(nodes) * _ADDING_COST < len(self.nodes):
            snapshot = self
            for node in nodes:
                snapshot = snapshot.with_node(node)
            return snapshot
        by_name = ordered([*self.nodes.values(), *nodes])
        return Snapshot(replace(self.base, nodes=by_name), self.bound, self.reservations, self.revision)

    def without_node(self, name: str) -> Snapshot:
        """Returns the same cluster without this node. Its pods count again if the node is added again."""
        return self if name not in self.base.nodes else self._with_base(self.base.without_node(name), name)

    def _with_base(self, base: Infrastructure, node: str) -> Snapshot:
        """Returns the snapshot after a node change. Gangs that hold the node's domain also hold the node."""
        if base.index.trees is None:  # the trees are rebuilt from all nodes, so no computed value is kept
            return Snapshot(base, self.bound, self.reservations, self.revision)
        holds = self.holds.with_node_domains(node, base.domains_of(node))
        return self.evolve(base=base, holds=holds, changed_nodes={node})

    @property
    def latest(self) -> Snapshot:
        """The last result of `with_book` on this snapshot, or this snapshot itself if there is none.

        The next book is compared with its book, from which it usually differs in few reservations. This is
        only a hint: a thread that sees an older snapshot only compares more reservations.
        """
        return self.index.latest or self

    def evolve(
        self,
        *,
        changed_nodes: Set[str],
        base: Infrastructure | None = None,
        bound: Pods | None = None,
        holds: Holds | None = None,
        reservations: tuple[Reservation, ...] | None = None,
        revision: int | None = None,
    ) -> Snapshot:
        """Returns this snapshot with the given changes. `changed_nodes`: the nodes that they affect.

        This is the only place that copies the computed values of a snapshot. `holds` must match
        `reservations`. All nodes of `base` that are not in `changed_nodes` must be the same and have the same
        places in its trees.
        """
        snapshot = Snapshot(
            self.base if base is None else base,
            self.bound if bound is None else bound,
            self.reservations if reservations is None else reservations,
            self.revision if revision is None else revision,
        )
        snapshot.index.holds = self.holds if holds is None else holds
        snapshot.index.capacity = self._capacity.with_changed_nodes(changed_nodes)
        return snapshot
