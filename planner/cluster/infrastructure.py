"""What does not change between plans: topologies, nodes, and the trees that they make.

Built once and shared by every snapshot; with a node changed, new or gone it is another one, which shares all
that the node does not touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from planner.cluster.capacity import DomainCapacity
from planner.cluster.capacity_cache import CapacityIndex, PlanCache
from planner.cluster.occupancy import add
from planner.cluster.persistent_map import PersistentMap
from planner.cluster.tree import Subtree, TopologyTree, belongs, grow
from planner.devices.availability import AvailableDevices
from planner.devices.bound_claims import empty_stock
from planner.devices.catalog import Devices
from planner.devices.claims import NO_CLAIMS, Claims
from planner.devices.node_devices import NodeDevicesByName
from planner.devices.pools import labelled_devices, offered
from planner.model.labels import PASSING_TAINTS
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.quantity import Resources
from planner.model.resources import GPU, PRODUCT_LABEL
from planner.model.settings import DEFAULTS, Bound, Quota, Settings
from planner.model.topology import HOSTNAME, Link, Topology
from planner.node.eligibility import divided
from planner.node.gpu_sharing import gpus_of
from planner.node.numa_state import empty_zones
from planner.node.topology_manager import GPUS_LABEL, NumaNode, aligned

NO_TOPOLOGY = Topology("none", (HOSTNAME,), source="none")
"""The topology of a cluster that has none: every node is a host and nothing more."""


@dataclass(frozen=True)
class Infrastructure:
    """What does not change between plans: topologies, nodes, links, and the trees that they make."""

    topologies: tuple[Topology, ...]
    nodes: Mapping[str, Node]
    links: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    numa: Mapping[str, NumaNode] = field(default_factory=dict)
    claims: Claims = NO_CLAIMS
    bounds: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    spaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    settings: Settings = DEFAULTS
    memory: PlanCache = field(default_factory=PlanCache, repr=False, compare=False)

    @cached_property
    def kept(self) -> dict[object, object]:
        """What was worked out about these nodes and topologies, for the next who asks."""
        return {}

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
    def trees(self) -> dict[str, TopologyTree]:
        """The tree of each topology over the nodes that belong to it, by topology name."""
        members: dict[str, list[Node]] = {topology.name: [] for topology in self.topologies}
        for node in self.nodes.values():
            for topology in belongs(node, self.topologies):
                members[topology.name].append(node)
        return {
            topology.name: grow(topology, members[topology.name], self.nodes) for topology in self.topologies
        }

    @cached_property
    def wide_trees(self) -> dict[str, TopologyTree]:
        """The tree of each topology over all nodes; those that do not belong to it are bare hosts."""
        wide: dict[str, TopologyTree] = {}
        for topology in self.topologies:
            own = self.trees[topology.name]
            outside = (bare(node) for node in self.nodes.values() if node.name not in own.places)
            wide[topology.name] = grow(topology, (*own.nodes, *outside), self.nodes)
        return wide

    @cached_property
    def empty(self) -> CapacityIndex:
        """The trees' contents when the cluster is empty."""
        return CapacityIndex(self.memory)

    def content(self, tree: TopologyTree) -> DomainCapacity:
        """What a tree holds in the empty cluster: no pods, no reservations, every node ready."""

        def host(branch: Subtree) -> DomainCapacity:
            node = tree.cluster[branch.node]
            empty, free = when_empty(node, self.offers(node))
            numa = self.aligned(node)
            return self.memory.host(
                branch, empty, free, opened=False, gang="", held="",
                gpus=gpus_of(node), zones=empty_zones(numa) if numa else None, stock=self.stock(node),
            )  # fmt: skip

        return self.empty.of(tree, host)

    @cached_property
    def devices(self) -> Devices:
        """The nodes' devices, for those who ask for them by claim."""
        return Devices.of(self.nodes.values(), self.claims, self.layouts)

    @cached_property
    def layouts(self) -> NodeDevicesByName:
        """The devices of each node that has ResourceSlices."""
        return NodeDevicesByName(self.claims)

    def stock(self, node: Node) -> AvailableDevices | None:
        """The node's devices when no claim has any; None where slices offer none."""
        return empty_stock(node, self.layouts) if self.claims.slices else None

    def offers(self, node: Node) -> Resources:
        """What the node gives, with the devices that only claims can reach."""
        if not self.claims.slices:
            return node.allocatable if node.allocatable.get(GPU) else offered(node, None)
        layout = self.layouts.of(node.name)
        offers = offered(node, layout.pools if layout else {})
        gone = [name for name in self.claims.extended if not offers.get(name, 1)]
        return {name: amount for name, amount in offers.items() if name not in gone} if gone else offers

    def with_node(self, node: Node) -> Infrastructure:
        """The same nodes with this one in the place of the one of its name, or besides them.

        What was worked out of the others goes over; of the trees only the way to this node is made anew.
        """
        return self._changed(self.nodes.get(node.name), node)

    def without_node(self, name: str) -> Infrastructure:
        """The same nodes without this one."""
        there = self.nodes.get(name)
        return self if there is None else self._changed(there, None)

    def _changed(self, old: Node | None, new: Node | None) -> Infrastructure:
        """With the new node in the place of the old one; where one of them is None, one more or one less."""
        name = (new or old).name  # type: ignore[union-attr]
        nodes = self.nodes if isinstance(self.nodes, PersistentMap) else PersistentMap(self.nodes, natural)
        made = replace(self, nodes=nodes.changed(name, new))
        for which in ("trees", "wide_trees"):
            if which in self.__dict__:
                trees = _moved(self.__dict__[which], made, old, new, wide=which == "wide_trees")
                if trees is None:
                    return made
                made.__dict__[which] = trees
        self._hand_over(made, old, new)
        made.__dict__["empty"] = self.empty.after({name})
        return made

    def _hand_over(self, made: Infrastructure, old: Node | None, new: Node | None) -> None:
        """What was worked out of all nodes, where these two make no difference to it."""
        known = self.__dict__
        if "layouts" in known:
            made.__dict__["layouts"] = self.layouts
        if "devices" in known and self._devices_of(old) == self._devices_of(new):
            made.__dict__["devices"] = self.devices
        if "divided" in known and bool(old and divided(old.labels)) == bool(new and divided(new.labels)):
            made.__dict__["divided"] = self.divided
        if "aligns" in known and self.aligns == bool(new and self.aligned(new)):
            made.__dict__["aligns"] = self.aligns

    def _devices_of(self, node: Node | None) -> tuple[object, str]:
        """All that `devices` looks at in a node."""
        if node is None:
            return None, ""
        found = self.layouts.of(node.name) if self.claims.slices else labelled_devices(node)
        return (found, node.name + "/" + node.labels.get(PRODUCT_LABEL, "")) if found else (None, "")


def _moved(
    trees: Mapping[str, TopologyTree], made: Infrastructure, old: Node | None, new: Node | None, *, wide: bool
) -> dict[str, TopologyTree] | None:
    """The trees after a node has changed; None where they have to be grown anew."""
    if old and new and old.labels == new.labels:
        return {name: tree.over(made.nodes) for name, tree in trees.items()}
    there = belongs(new, made.topologies) if new else []
    moved: dict[str, TopologyTree] = {}
    for topology in made.topologies:
        member = new if topology in there else bare(new) if new and wide else None
        tree = _with(trees[topology.name], made.nodes, old.name if old else "", member)
        if tree is None:
            return None
        moved[topology.name] = tree
    return moved


def _with(
    tree: TopologyTree, cluster: Mapping[str, Node], name: str, member: Node | None
) -> TopologyTree | None:
    """The tree with a member in the place of the node of this name, None where it has to be grown anew."""
    was = name in tree.places
    if not was and member is None:
        return tree.over(cluster)
    if tree.clashing:
        return None
    if was and member and tree.place_of(member) == tree.places[name]:
        return tree.anew(name, cluster)
    left = tree.without(name, cluster) if was else tree
    return left.with_member(member, cluster) if member else left


def bare(node: Node) -> Node:
    """The node as a host and nothing more."""
    return replace(node, labels={HOSTNAME: node.labels.get(HOSTNAME) or node.name})


def ordered(nodes: Iterable[Node]) -> dict[str, Node]:
    """The nodes by name, in natural order."""
    return {node.name: node for node in sorted(nodes, key=lambda node: natural(node.name))}


def when_empty(node: Node, offers: Resources) -> tuple[Node, Resources]:
    """The node as it is when nothing runs and nothing ails it, and what it gives then beside these offers."""
    taints = tuple(taint for taint in node.taints if taint.key not in PASSING_TAINTS)
    free = dict(offers)
    add(free, node.pending)
    return replace(node, taints=taints, cordoned=False, ready=True), free
