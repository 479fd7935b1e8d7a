"""What the cluster looked like at one moment: nodes, what is used on them, and who holds what.

Static apart from moving: `Infrastructure` (topologies, nodes, their trees) is built once and shared; a
snapshot adds
what changes from one reservation or pod to the next. The invariant kept here:
2. On every node, for every resource: used plus reserved is what `taken` says, nothing counted twice. A bound
   pod that carries the id of a reservation in the book is accounted for by its seats on the pod's node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx

from planner.cluster.capacity import DomainCapacity
from planner.cluster.capacity_cache import CapacityIndex
from planner.cluster.infrastructure import NO_TOPOLOGY, Infrastructure, ordered
from planner.cluster.occupancy import Holds, Pods, add, carried, unaccounted
from planner.cluster.tree import Subtree, TopologyTree
from planner.devices.availability import AvailableDevices
from planner.devices.claims import NO_CLAIMS, Claims
from planner.devices.pools import is_claimed, on_node
from planner.model.claim_spec import PREFIX, is_bundle
from planner.model.natural_order import natural
from planner.model.node import BoundPod, Node
from planner.model.quantity import Resources
from planner.model.reservation import Book, Reservation
from planner.model.resources import CLAIMED_GPU, CLAIMED_MIG
from planner.model.settings import DEFAULTS, Bound, Quota, Settings
from planner.model.topology import Domain, Link, Topology
from planner.node.gpu_sharing import SHARED, Gpus, gpus_of, settled, shares_gpus
from planner.node.numa_state import NumaState, seats, zones_now
from planner.node.topology_manager import NumaNode

_APART = frozenset({SHARED, CLAIMED_GPU[:4], CLAIMED_MIG[:4], PREFIX[:4]})
"""How the names of parts of GPUs and of claimed devices begin, which few nodes have in use."""


@dataclass(frozen=True)
class Snapshot:
    """A moment of the cluster. Immutable to its users: each change gives another snapshot.

    `pods`: what uses capacity. `reservations`: what gangs hold. `revision`: the book's. A snapshot made by a
    change shares with the former one all that the change did not touch; a plan on it is the same as on a
    snapshot made anew.
    """

    base: Infrastructure
    pods: Collection[BoundPod] = ()
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
    def bound(self) -> Pods:
        """The bound pods by node."""
        return self.pods if isinstance(self.pods, Pods) else Pods.of(self.pods)

    @cached_property
    def holds(self) -> Holds:
        """The reservations by gang and by node."""
        return Holds().updated((), self.reservations, self.held_nodes)

    @cached_property
    def _contents(self) -> CapacityIndex:
        return CapacityIndex(self.base.memory)

    def content(self, tree: TopologyTree) -> DomainCapacity:
        """What a tree holds now."""
        return self._contents.of(tree, lambda branch: self._host(branch, tree.cluster[branch.node]))

    def _host(self, branch: Subtree, node: Node) -> DomainCapacity:
        holds = self.holds.on(node.name)
        pods = self.bound.on(node.name)
        if holds or pods or self.base.claims.slices:
            free, gpus, stock = self.free_on(node)
        else:
            free, gpus, stock = self.base.offers(node), gpus_of(node), None
        return self.base.memory.host(
            branch,
            node,
            free,
            opened=bool(holds) or any(not pod.daemon for pod in pods),
            gang=holds[-1][0].gang if holds else "",
            held=next((r.gang for r, _ in reversed(holds) if r.mode == "domain"), ""),
            gpus=gpus,
            zones=self._zones(node),
            stock=stock,
        )

    def free_on(self, node: Node) -> tuple[Resources, Gpus | None, AvailableDevices | None]:
        """What is left of a node, of its GPUs for those who share one, and of its devices for claims."""
        used, gpus, stock = self._settled_on(node)
        free = {name: amount - used.get(name, 0) for name, amount in self.base.offers(node).items()}
        return free, gpus, stock

    def _zones(self, node: Node) -> NumaState | None:
        numa = self.base.aligned(node)
        if numa is None:
            return None
        pods, holds = self.bound.on(node.name), self.holds.on(node.name)
        return zones_now(numa, pods, seats(node.name, pods, (reservation for reservation, _ in holds)))

    def taken_on(self, node: str) -> dict[str, int]:
        """What bound pods use on a node and gangs have reserved there, by resource.

        A GPU of which a part is taken counts as one.
        """
        known = self.nodes.get(node)
        return self._settled_on(known)[0] if known else self._promised_on(node)

    def _promised_on(self, node: str) -> dict[str, int]:
        taken = self._used_on(node)
        for _, uses in self.holds.on(node):
            add(taken, uses)
        return taken

    def _settled_on(self, node: Node) -> tuple[dict[str, int], Gpus | None, AvailableDevices | None]:
        taken, gpus, stock = self._promised_on(node.name), gpus_of(node), None
        if self.base.claims.slices:
            stock, taken = self._stock_on(node, taken)
        if _APART.isdisjoint([name[:4] for name in taken]):
            return taken, gpus, stock
        taken = {name: amount for name, amount in taken.items() if not is_bundle(name)}
        if any(map(is_claimed, taken)):
            taken = dict(on_node(taken, self.base.offers(node)))
        if shares_gpus(taken):
            taken, gpus = settled(taken, self.bound.on(node.name), gpus)
        return taken, gpus, stock

    def _stock_on(self, node: Node, promised: Resources) -> tuple[AvailableDevices | None, dict[str, int]]:
        """The devices that slices offer, and what is promised on the node with those that cannot be given."""
        if (
            not self.bound.on(node.name)
            and not self.holds.on(node.name)
            and not self.base.layouts.given(node.name)
        ):
            return self.base.stock(node), dict(promised)
        bundles = {
            bundle.name: bundle
            for reservation, _ in self.holds.on(node.name)
            for _, traits in reservation.traits
            for bundle in traits.bundles
        }
        return self.base.devices.stock_now(node, self.bound.on(node.name), promised, bundles)

    def _used_on(self, node: str) -> dict[str, int]:
        """What bound pods use on a node beyond what their gangs' reservations account for there."""
        pods: Iterable[BoundPod] = self.bound.on(node)
        if any(pod.claims for pod in pods):
            pods = self.base.devices.counted(pods)
        return unaccounted(pods, self.holds.on(node))

    @cached_property
    def used(self) -> dict[str, dict[str, int]]:
        """By node and resource: what bound pods use that no reservation in the book accounts for."""
        used = {node: self._used_on(node) for node in self.bound.by_node}
        return {node: amounts for node, amounts in used.items() if amounts}

    @cached_property
    def taken(self) -> dict[str, dict[str, int]]:
        """By node and resource: used by bound pods and reserved by gangs."""
        busy = dict.fromkeys((*self.bound.by_node, *self.holds.by_node))
        taken = {node: self.taken_on(node) for node in busy}
        return {node: amounts for node, amounts in taken.items() if amounts}

    @cached_property
    def opened(self) -> frozenset[str]:
        """Nodes that are not pristine: a gang touches them, or a pod that is no DaemonSet's."""
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
        """A gang that holds or uses a node, by node."""
        return {node: holds[-1][0].gang for node, holds in self.holds.by_node.items()}

    def held_nodes(self, reservation: Reservation) -> frozenset[str]:
        """What a reservation touches now: its nodes, and those that have since joined its domains."""
        tree = self.base.trees.get(reservation.topology)
        branches = (tree.branch(domain) for domain in reservation.domains) if tree else ()
        joined = (name for branch in branches if branch and tree for name in tree.names(branch))
        return reservation.touched.union(joined)

    def holding(self, gang: str) -> Reservation | None:
        """The gang's own reservation, if it has one."""
        found: Reservation | None = self.holds.by_gang.get(gang)
        return found

    def with_book(self, book: Book) -> Snapshot:
        """The same cluster with exactly the reservations of the ledger's book."""
        near = self.latest
        there = {reservation.gang: reservation for reservation in book.reservations}
        removed = [r for r in near.reservations if there.get(r.gang) != r]
        added = [r for r in there.values() if near.holding(r.gang) != r]
        made = near._changed(book.reservations, removed, added, book.revision)
        self.__dict__["_latest"] = made
        return made

    def with_reservation(self, reservation: Reservation) -> Snapshot:
        """The same cluster with one more reservation, in the place of the gang's former one."""
        former = self.holding(reservation.gang)
        others = self._others(reservation.gang)
        return self._changed((*others, reservation), [former] if former else [], [reservation])

    def without(self, gang: str) -> Snapshot:
        """The same cluster as if the gang held nothing."""
        former = self.holding(gang)
        return self if former is None else self._changed(self._others(gang), [former], [])

    def ended(self, gang: str) -> Snapshot:
        """The same cluster as if the gang had ended: without what it holds, and without its pods."""
        former = self.holding(gang)
        if former is None:
            return self
        left = self.without(gang)
        for node in self.bound.carriers.get(former.id) or ():
            for pod in self.bound.on(node):
                if former.id in carried(pod):
                    left = left.without_pod(pod)
        return left

    def _others(self, gang: str) -> tuple[Reservation, ...]:
        if gang not in self.holds.by_gang:
            return self.reservations
        return tuple(r for r in self.reservations if r.gang != gang)

    def _changed(
        self,
        reservations: tuple[Reservation, ...],
        removed: Sequence[Reservation],
        added: Sequence[Reservation],
        revision: int | None = None,
    ) -> Snapshot:
        made = Snapshot(self.base, self.bound, reservations, self.revision if revision is None else revision)
        made.__dict__["bound"] = self.bound
        made.__dict__["holds"] = self.holds.updated(removed, added, self.held_nodes)
        stirred: set[str] = set()
        for reservation in (*removed, *added):
            stirred |= self.held_nodes(reservation)
            stirred |= self.bound.carriers.get(reservation.id) or frozenset()
        made.__dict__["_contents"] = self._contents.after(stirred)
        return made

    def with_claims(self, claims: Claims) -> Snapshot:
        """The same cluster with these device claims besides."""
        base = replace(self.base, claims=self.base.claims.beside(claims))
        return Snapshot(base, self.bound, self.reservations, self.revision)

    def with_pod(self, pod: BoundPod) -> Snapshot:
        """The same cluster with this pod bound, in the place of one of its name on the same node."""
        return self._moved(self.base, self.bound.with_pod(pod), pod.node)

    def without_pod(self, pod: BoundPod) -> Snapshot:
        """The same cluster without the pod of this name on its node."""
        return self._moved(self.base, self.bound.without_pod(pod), pod.node)

    def with_node(self, node: Node) -> Snapshot:
        """The same cluster with this node new or changed; cheap while its place in the topologies stays."""
        if self.base.nodes.get(node.name) == node:
            return self
        return self._with_base(self.base.with_node(node), node.name)

    def without_node(self, name: str) -> Snapshot:
        """The same cluster without this node; its pods count again if it comes back."""
        return self if name not in self.base.nodes else self._with_base(self.base.without_node(name), name)

    def _with_base(self, base: Infrastructure, node: str) -> Snapshot:
        """After a node has changed, come or gone. What holds its domain holds it too."""
        if "trees" not in base.__dict__:
            return Snapshot(base, self.bound, self.reservations, self.revision)
        made = self._moved(base, self.bound, node)
        made.__dict__["holds"] = self.holds.over(node, made._ways_to(node))
        return made

    def _ways_to(self, node: str) -> list[tuple[str, Domain]]:
        """Every domain that a node is in, with its topology."""
        return [
            (name, branch.path)
            for name, tree in self.base.trees.items()
            if node in tree.places
            for branch in tree.way(node)
            if branch.named and branch.path
        ]

    @property
    def latest(self) -> Snapshot:
        """This cluster with the book that was last put into it: the next book is near to that one."""
        near: Snapshot = self.__dict__.get("_latest", self)
        return near

    def over(self, base: Infrastructure, stirred: Collection[str]) -> Snapshot:
        """The same on nodes of the same names and places, of which those that are `stirred` may differ."""
        return self._moved(base, self.bound, *stirred)

    def _moved(self, base: Infrastructure, bound: Pods, *nodes: str) -> Snapshot:
        made = Snapshot(base, bound, self.reservations, self.revision)
        made.__dict__["bound"] = bound
        made.__dict__["holds"] = self.holds
        made.__dict__["_contents"] = self._contents.after(set(nodes))
        return made

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


def _grow_graph(graph: nx.Graph[Domain | str], tree: TopologyTree, branch: Subtree) -> None:
    graph.add_node(branch.path, level=tree.topology.levels[branch.level] if branch.level >= 0 else "")
    for child in branch.children:
        _grow_graph(graph, tree, child)
        if child.path != branch.path:
            graph.add_edge(branch.path, child.path, kind="within")


def _sharing(node: Node, offers: dict[tuple[tuple[str, int], ...], Resources]) -> Node:
    """The node, with the one mapping of what it gives that its equals share."""
    shared = offers.setdefault(tuple(sorted(node.allocatable.items())), node.allocatable)
    return node if shared is node.allocatable else replace(node, allocatable=shared)


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
    spaces: Mapping[str, Mapping[str, str]] | None = None,
    settings: Settings = DEFAULTS,
) -> Snapshot:
    """A snapshot of these things, in whatever order they come. Without a topology every node is a host."""
    offers: dict[tuple[tuple[str, int], ...], Resources] = {}
    by_name = ordered(_sharing(node, offers) for node in nodes)
    known = tuple(sorted(topologies, key=lambda t: natural(t.name))) or (NO_TOPOLOGY,)
    base = Infrastructure(
        known,
        by_name,
        links or {},
        ignored or {},
        numa=numa or {},
        claims=claims,
        bounds=bounds or {},
        quotas=quotas or {},
        spaces=spaces or {},
        settings=settings,
    )
    return Snapshot(base, tuple(pods), tuple(reservations))
