"""What the cluster looked like at one moment: nodes, what is used on them, and who holds what.

Static apart from moving: `Fabric` (topologies, nodes, their trees) is built once and shared; a snapshot adds
what changes from one reservation or pod to the next. The invariant kept here:
2. On every node, for every resource: used plus reserved is what `taken` says, nothing counted twice. A bound
   pod that carries the id of a reservation in the book is accounted for by that reservation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import networkx as nx

from planner.claims import NO_CLAIMS, Claims
from planner.limits import Bound, Quota
from planner.node import BoundPod, Node
from planner.numa import NumaNode
from planner.order import natural
from planner.quantity import Resources
from planner.reservation import Book, Reservation
from planner.settings import DEFAULTS, Settings
from planner.topology import HOSTNAME, Domain, Topology
from planner.tree import Branch, Tree, belongs, grow

NO_TOPOLOGY = Topology("none", (HOSTNAME,), source="none")
"""The topology of a cluster that has none: every node is a host and nothing more."""


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two switches or nodes, `gbps` gigabits a second."""

    one: str
    other: str
    gbps: float


@dataclass(frozen=True)
class Fabric:
    """What does not change between plans: topologies, nodes, links, and the trees that they make."""

    topologies: tuple[Topology, ...]
    nodes: Mapping[str, Node]
    links: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    numa: Mapping[str, NumaNode] = field(default_factory=dict)
    claims: Claims = NO_CLAIMS
    bounds: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    settings: Settings = DEFAULTS

    @cached_property
    def kept(self) -> dict[object, object]:
        """What plans worked out about the empty cluster, for the next plan to use."""
        return {}

    @cached_property
    def trees(self) -> dict[str, Tree]:
        """The tree of each topology over the nodes that belong to it, by topology name."""
        members: dict[str, list[Node]] = {topology.name: [] for topology in self.topologies}
        for node in self.nodes.values():
            for topology in belongs(node, self.topologies):
                members[topology.name].append(node)
        return {topology.name: grow(topology, members[topology.name]) for topology in self.topologies}

    @cached_property
    def wide_trees(self) -> dict[str, Tree]:
        """The tree of each topology over all nodes; those that do not belong to it are bare hosts."""
        wide: dict[str, Tree] = {}
        for topology in self.topologies:
            own = self.trees[topology.name].index
            outside = (
                replace(node, labels={HOSTNAME: node.labels.get(HOSTNAME) or node.name})
                for node in self.nodes.values()
                if node.name not in own
            )
            tree = grow(topology, (*self.trees[topology.name].nodes, *outside))
            nodes = tuple(self.nodes[node.name] for node in tree.nodes)
            wide[topology.name] = replace(tree, nodes=nodes)
        return wide


@dataclass(frozen=True)
class Snapshot:
    """A moment of the cluster. Immutable to its users: each change gives another snapshot.

    `pods`: what uses capacity. `reservations`: what gangs hold. `revision`: the book's.
    """

    base: Fabric
    pods: tuple[BoundPod, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    revision: int = 0

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """Every topology, in natural name order."""
        return self.base.topologies

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every node by name, in natural order."""
        return self.base.nodes

    @cached_property
    def kept(self) -> dict[object, object]:
        """What plans worked out about this snapshot, for the next plan to use."""
        return {}

    @cached_property
    def used(self) -> dict[str, dict[str, int]]:
        """By node and resource: what bound pods use that no reservation in the book accounts for."""
        booked = {reservation.id for reservation in self.reservations}
        used: dict[str, dict[str, int]] = {}
        for pod in self.pods:
            if not (pod.reservation and pod.reservation in booked):
                _add(used.setdefault(pod.node, {}), pod.requests, 1)
        return used

    @cached_property
    def taken(self) -> dict[str, dict[str, int]]:
        """By node and resource: used by bound pods and reserved by gangs."""
        taken = {node: dict(amounts) for node, amounts in self.used.items()}
        for reservation in self.reservations:
            requests = dict(reservation.requests)
            for assignment in reservation.assignments:
                request = requests.get(assignment.pod_set, {})
                _add(taken.setdefault(assignment.node, {}), request, assignment.count)
        return taken

    @cached_property
    def opened(self) -> frozenset[str]:
        """Nodes that are not pristine: a gang touches them, or a pod that is no DaemonSet's."""
        busy = {pod.node for pod in self.pods if not pod.daemon}
        return frozenset(busy.union(*(self.held_nodes(r) for r in self.reservations)))

    @cached_property
    def holders(self) -> dict[str, str]:
        """The gang that holds a node whole, by node."""
        return {
            node: reservation.gang
            for reservation in self._by_gang
            if reservation.mode == "domain"
            for node in self.held_nodes(reservation)
        }

    @cached_property
    def users(self) -> dict[str, str]:
        """A gang that holds or uses a node, by node."""
        return {node: r.gang for r in self._by_gang for node in self.held_nodes(r)}

    @property
    def _by_gang(self) -> list[Reservation]:
        """The reservations in the order of their gangs' names, whatever order the book has."""
        return sorted(self.reservations, key=lambda reservation: natural(reservation.gang))

    def held_nodes(self, reservation: Reservation) -> frozenset[str]:
        """What a reservation touches now: its nodes, and those that have since joined its domains."""
        tree = self.base.trees.get(reservation.topology)
        branches = (tree.branch(domain) for domain in reservation.domains) if tree else ()
        joined = (name for branch in branches if branch and tree for name in tree.names(branch))
        return reservation.touched.union(joined)

    def holding(self, gang: str) -> Reservation | None:
        """The gang's own reservation, if it has one."""
        return next((r for r in self.reservations if r.gang == gang), None)

    def with_book(self, book: Book) -> Snapshot:
        """The same cluster with exactly the reservations of the ledger's book."""
        return Snapshot(self.base, self.pods, book.reservations, book.revision)

    def with_reservation(self, reservation: Reservation) -> Snapshot:
        """The same cluster with one more reservation, in the place of the gang's former one."""
        others = tuple(r for r in self.reservations if r.gang != reservation.gang)
        return Snapshot(self.base, self.pods, (*others, reservation), self.revision)

    def without(self, gang: str) -> Snapshot:
        """The same cluster as if the gang held nothing."""
        others = tuple(r for r in self.reservations if r.gang != gang)
        return Snapshot(self.base, self.pods, others, self.revision)

    def fabric(self, topology: str) -> nx.Graph[Domain | str]:
        """The topology as a graph: domains (their paths) under each other, and the switches' cables.

        Vertices carry `level` (the label key, "" for the root) and edges of the tree `kind` "within"; an edge
        of the cabling joins names, with `kind` "link" and `gbps`. Raises `KeyError` for an unknown name.
        """
        tree = self.base.trees[topology]
        graph: nx.Graph[Domain | str] = nx.Graph()
        _grow_graph(graph, tree, tree.root)
        for link in self.base.links.get(topology, ()):
            graph.add_edge(link.one, link.other, kind="link", gbps=link.gbps)
        return graph


def _grow_graph(graph: nx.Graph[Domain | str], tree: Tree, branch: Branch) -> None:
    graph.add_node(branch.path, level=tree.topology.levels[branch.level] if branch.level >= 0 else "")
    for child in branch.children:
        _grow_graph(graph, tree, child)
        if child.path != branch.path:
            graph.add_edge(branch.path, child.path, kind="within")


def _sharing(node: Node, offers: dict[tuple[tuple[str, int], ...], Resources]) -> Node:
    """The node, with the one mapping of what it gives that its equals share, so that plans look once."""
    shared = offers.setdefault(tuple(sorted(node.allocatable.items())), node.allocatable)
    return node if shared is node.allocatable else replace(node, allocatable=shared)


def _add(total: dict[str, int], more: Resources, times: int) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount * times


def snapshot(
    nodes: Iterable[Node],
    topologies: Iterable[Topology] = (),
    pods: Iterable[BoundPod] = (),
    reservations: Iterable[Reservation] = (),
    *,
    links: Mapping[str, tuple[Link, ...]] | None = None,
    ignored: Mapping[str, int] | None = None,
    numa: Mapping[str, NumaNode] | None = None,
    claims: Claims = NO_CLAIMS,
    bounds: Mapping[str, tuple[Bound, ...]] | None = None,
    quotas: Mapping[str, Quota] | None = None,
    settings: Settings = DEFAULTS,
) -> Snapshot:
    """A snapshot of these things, in whatever order they come. Without a topology every node is a host."""
    offers: dict[tuple[tuple[str, int], ...], Resources] = {}
    ordered = {
        node.name: _sharing(node, offers) for node in sorted(nodes, key=lambda node: natural(node.name))
    }
    known = tuple(sorted(topologies, key=lambda t: natural(t.name))) or (NO_TOPOLOGY,)
    base = Fabric(
        known,
        ordered,
        links or {},
        ignored or {},
        numa=numa or {},
        claims=claims,
        bounds=bounds or {},
        quotas=quotas or {},
        settings=settings,
    )
    return Snapshot(base, tuple(pods), tuple(reservations))
