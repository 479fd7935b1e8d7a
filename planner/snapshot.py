"""What the cluster looked like at one moment: nodes, what is used on them, and who holds what.

Static apart from moving: `Fabric` (topologies, nodes, their trees) is built once and shared; a snapshot adds
what changes from one reservation or pod to the next. The invariant kept here:
2. On every node, for every resource: used plus reserved is what `taken` says, nothing counted twice. A bound
   pod that carries the id of a reservation in the book is accounted for by its seats on the pod's node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import networkx as nx

from planner.claiming import Devices
from planner.claims import NO_CLAIMS, Claims
from planner.content import Content, Contents, Memory
from planner.devices import GPU, is_claimed, offered, on_node
from planner.layered import Layered
from planner.limits import Bound, Quota
from planner.match import PASSING_TAINTS, divided
from planner.node import BoundPod, Node
from planner.numa import GPUS_LABEL, NumaNode, aligned
from planner.occupancy import Holds, Pods, add, carried, unaccounted
from planner.order import natural
from planner.quantity import Resources
from planner.reservation import Book, Reservation
from planner.settings import DEFAULTS, Settings
from planner.sharing import Gpus, gpus_of, settled, shares_gpus
from planner.topology import HOSTNAME, Domain, Topology
from planner.tree import Branch, Tree, belongs, grow
from planner.zones import Zones, empty_zones, seats, zones_now

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
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    @cached_property
    def kept(self) -> dict[object, object]:
        """What was worked out about these nodes and topologies, for the next who asks."""
        return {}

    @cached_property
    def labelled(self) -> object:
        """Changes when a node's labels or the set of nodes do: a key to what was worked out about labels."""
        return object()

    @cached_property
    def divided(self) -> bool:
        """Whether any node gives parts of GPUs under the name of whole ones (`planner.match.divided`)."""
        return any(divided(node.labels) for node in self.nodes.values())

    @cached_property
    def aligns(self) -> bool:
        """Whether any node's kubelet refuses pods that its NUMA zones cannot take."""
        return any(self.aligned(node) for node in self.nodes.values())

    def aligned(self, node: Node) -> NumaNode | None:
        """The node's NUMA zones, where its kubelet refuses what cannot be aligned to them."""
        if not self.numa and GPUS_LABEL not in node.labels:
            return None
        return aligned(node, self.numa.get(node.name))

    @cached_property
    def trees(self) -> dict[str, Tree]:
        """The tree of each topology over the nodes that belong to it, by topology name."""
        members: dict[str, list[Node]] = {topology.name: [] for topology in self.topologies}
        for node in self.nodes.values():
            for topology in belongs(node, self.topologies):
                members[topology.name].append(node)
        return {
            topology.name: grow(topology, members[topology.name], self.nodes) for topology in self.topologies
        }

    @cached_property
    def wide_trees(self) -> dict[str, Tree]:
        """The tree of each topology over all nodes; those that do not belong to it are bare hosts."""
        wide: dict[str, Tree] = {}
        for topology in self.topologies:
            own = self.trees[topology.name]
            outside = (
                replace(node, labels={HOSTNAME: node.labels.get(HOSTNAME) or node.name})
                for node in self.nodes.values()
                if node.name not in own.index
            )
            wide[topology.name] = grow(topology, (*own.nodes, *outside), self.nodes)
        return wide

    @cached_property
    def empty(self) -> Contents:
        """The trees' contents when the cluster is empty."""
        return Contents(self.memory)

    def content(self, tree: Tree) -> Content:
        """What a tree holds in the empty cluster: no pods, no reservations, every node ready."""

        def host(branch: Branch) -> Content:
            node = tree.nodes[branch.start]
            empty, free = when_empty(node, self.offers(node))
            numa = self.aligned(node)
            return self.memory.host(
                branch, empty, free, opened=False, gang="", held="",
                gpus=gpus_of(node), zones=empty_zones(numa) if numa else None,
            )  # fmt: skip

        return self.empty.of(tree, host)

    @cached_property
    def devices(self) -> Devices:
        """The nodes' devices, for those who ask for them by claim."""
        return Devices.of(self.nodes.values(), self.claims)

    def offers(self, node: Node) -> Resources:
        """What the node gives, with the devices that only claims can reach."""
        if not self.claims.devices and node.allocatable.get(GPU):
            return node.allocatable
        return offered(node, self.claims)

    def with_node(self, node: Node) -> Fabric:
        """The same nodes with this one in the place of the one of its name, or besides them.

        Where its place in every tree stays the same, the trees do too, and what was worked out with them.
        """
        old = self.nodes.get(node.name)
        nodes = self.nodes if isinstance(self.nodes, Layered) else Layered(self.nodes)
        if old is None or "trees" not in self.__dict__ or not self._same_place(old, node):
            return replace(self, nodes=_ordered({**nodes, node.name: node}.values()))
        made = replace(self, nodes=nodes.changed(node.name, node))
        for name in ("trees", "wide_trees"):
            if name in self.__dict__:
                made.__dict__[name] = {
                    topology: tree.over(made.nodes) for topology, tree in self.__dict__[name].items()
                }
        if old.labels == node.labels:
            made.__dict__["labelled"] = self.labelled
            if "devices" in self.__dict__ and old.allocatable == node.allocatable:
                made.__dict__["devices"] = self.devices
        if "divided" in self.__dict__ and divided(old.labels) == divided(node.labels):
            made.__dict__["divided"] = self.divided
        if self.__dict__.get("aligns") in (True, made.aligned(node) is not None):
            made.__dict__["aligns"] = self.aligns
        made.__dict__["empty"] = self.empty.after({node.name})
        return made

    def _same_place(self, old: Node, node: Node) -> bool:
        if old.labels == node.labels:
            return True
        before, after = belongs(old, self.topologies), belongs(node, self.topologies)
        return before == after and all(
            t.path(old.name, old.labels) == t.path(node.name, node.labels) for t in self.topologies
        )

    def without_node(self, name: str) -> Fabric:
        """The same nodes without this one."""
        return replace(self, nodes={key: node for key, node in self.nodes.items() if key != name})


@dataclass(frozen=True)
class Snapshot:
    """A moment of the cluster. Immutable to its users: each change gives another snapshot.

    `pods`: what uses capacity. `reservations`: what gangs hold. `revision`: the book's. A snapshot made by a
    change shares with the former one all that the change did not touch; a plan on it is the same as on a
    snapshot made anew.
    """

    base: Fabric
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
    def _contents(self) -> Contents:
        return Contents(self.base.memory)

    def content(self, tree: Tree) -> Content:
        """What a tree holds now."""
        return self._contents.of(tree, lambda branch: self._host(branch, tree.nodes[branch.start]))

    def _host(self, branch: Branch, node: Node) -> Content:
        holds = self.holds.on(node.name)
        pods = self.bound.on(node.name)
        used, gpus = self._settled_on(node) if holds or pods else (None, gpus_of(node))
        free = self.base.offers(node)
        if used:
            free = {name: amount - used.get(name, 0) for name, amount in free.items()}
        return self.base.memory.host(
            branch,
            node,
            free,
            opened=bool(holds) or any(not pod.daemon for pod in pods),
            gang=holds[-1][0].gang if holds else "",
            held=next((r.gang for r, _ in reversed(holds) if r.mode == "domain"), ""),
            gpus=gpus,
            zones=self._zones(node),
        )

    def _zones(self, node: Node) -> Zones | None:
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

    def _settled_on(self, node: Node) -> tuple[dict[str, int], Gpus | None]:
        taken, gpus = self._promised_on(node.name), gpus_of(node)
        if any(map(is_claimed, taken)):
            taken = dict(on_node(taken, self.base.offers(node)))
        return settled(taken, self.bound.on(node.name), gpus) if shares_gpus(taken) else (taken, gpus)

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
        return self.holds.by_gang.get(gang)

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
        base = self.base.with_node(node)
        if "trees" not in base.__dict__:
            return Snapshot(base, self.bound, self.reservations, self.revision)
        return self._moved(base, self.bound, node.name)

    def without_node(self, name: str) -> Snapshot:
        """The same cluster without this node; its pods count again if it comes back."""
        return Snapshot(self.base.without_node(name), self.bound, self.reservations, self.revision)

    @property
    def latest(self) -> Snapshot:
        """This cluster with the book that was last put into it: the next book is near to that one."""
        near: Snapshot = self.__dict__.get("_latest", self)
        return near

    def over(self, base: Fabric, stirred: Collection[str]) -> Snapshot:
        """The same on nodes of the same names and places, of which those that are `stirred` may differ."""
        return self._moved(base, self.bound, *stirred)

    def _moved(self, base: Fabric, bound: Pods, *nodes: str) -> Snapshot:
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


def _grow_graph(graph: nx.Graph[Domain | str], tree: Tree, branch: Branch) -> None:
    graph.add_node(branch.path, level=tree.topology.levels[branch.level] if branch.level >= 0 else "")
    for child in branch.children:
        _grow_graph(graph, tree, child)
        if child.path != branch.path:
            graph.add_edge(branch.path, child.path, kind="within")


def _sharing(node: Node, offers: dict[tuple[tuple[str, int], ...], Resources]) -> Node:
    """The node, with the one mapping of what it gives that its equals share."""
    shared = offers.setdefault(tuple(sorted(node.allocatable.items())), node.allocatable)
    return node if shared is node.allocatable else replace(node, allocatable=shared)


def _ordered(nodes: Iterable[Node]) -> dict[str, Node]:
    return {node.name: node for node in sorted(nodes, key=lambda node: natural(node.name))}


def when_empty(node: Node, offers: Resources) -> tuple[Node, Resources]:
    """The node as it is when nothing runs and nothing ails it, and what it gives then beside these offers."""
    taints = tuple(taint for taint in node.taints if taint.key not in PASSING_TAINTS)
    free = dict(offers)
    add(free, node.pending)
    return replace(node, taints=taints, cordoned=False, ready=True), free


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
    ordered = _ordered(_sharing(node, offers) for node in nodes)
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
