"""The part of a snapshot that consecutive snapshots share: topologies, nodes, and the trees built from them.

It is built once. A changed node gives another `Infrastructure`, which shares everything that does not depend
on that node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

from planner.cluster.capacity import DomainCapacity
from planner.cluster.capacity_cache import CapacityIndex, CapacityPool
from planner.cluster.plan_cache import DerivedSection, DerivedValues, PlanCache
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.cluster.trees.trees_by_topology import trees_after, trees_of, wide_trees_of
from planner.cluster.usage.occupancy import add
from planner.devices.availability import AvailableDevices, unallocated_devices
from planner.devices.catalog import Devices
from planner.devices.claims import NO_CLAIMS, Claims
from planner.devices.devices_by_node import DevicesByNode
from planner.devices.node_offers import labelled_devices, offered
from planner.model.cached_property import cached_property
from planner.model.growth import AutoscalerGroup, GrowingPool
from planner.model.natural_order import natural
from planner.model.node import Node, divided
from planner.model.priority import NO_CLASSES, PriorityClasses
from planner.model.resources import GPU, PRODUCT_LABEL, Resources
from planner.model.schedulers import NOTHING_SEEN, SchedulersSeen
from planner.model.settings import DEFAULTS, Bound, Quota, SchedulerSettings
from planner.model.topology import HOSTNAME, Domain, Link, Topology
from planner.model.volumes import NO_VOLUMES, Volumes
from planner.node.gpu_sharing import shared_gpus_of
from planner.node.numa_state import empty_numa_state
from planner.node.runtime_class import NO_RUNTIME_CLASSES, RuntimeClasses
from planner.node.topology_manager import GPUS_LABEL, NumaNode, aligned
from planner.persistent.persistent_map import PersistentMap

NO_TOPOLOGY = Topology("", (HOSTNAME,), source="none")
"""The topology of a cluster without Topology objects and topology labels: hosts directly below the root."""


TOLERATING = ("cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup")
"""Node labels of providers that enable the admission plugin ExtendedResourceToleration: GKE and EKS."""


@dataclass(slots=True, eq=False)
class InfrastructureIndex:
    """Values that an `Infrastructure` has computed so far; None means not computed yet.

    Each field has the name of the property that computes it (`tolerating`: `tolerates_resources`). Apart from
    caches, only these fields are written after an `Infrastructure` is created: by its properties on first
    use, and by the functions that derive it from another one, which copy the values that the change does not
    affect.
    """

    trees: dict[str, TopologyTree] | None = None
    wide_trees: dict[str, TopologyTree] | None = None
    empty: CapacityIndex | None = None
    node_devices: DevicesByNode | None = None
    devices: Devices | None = None
    divided: bool | None = None
    tolerating: bool | None = None
    tainted: tuple[str, ...] | None = None
    aligns: bool | None = None
    node_values: DerivedValues = field(default_factory=DerivedValues)


@dataclass(frozen=True)
class Infrastructure:
    """The data that consecutive snapshots share: topologies, nodes, links, and the trees built from them.

    `links`: the network links, by topology name. `numa`: the NUMA zones by node name. `spaces`: the labels of
    each namespace. `bounds` and `quotas`: the content of each LimitRange and ResourceQuota, by
    NAMESPACE/NAME. `ignored`: the number of objects of each kind that the planner does not use. `growth`:
    node pools that an autoscaler may enlarge. `resources_tolerated`: see `tolerates_resources`. All records
    derived from one cluster share `capacities` and `plan_cache`.
    """

    topologies: tuple[Topology, ...]
    nodes: Mapping[str, Node]
    links: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    numa: Mapping[str, NumaNode] = field(default_factory=dict)
    claims: Claims = NO_CLAIMS
    bounds: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    spaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    priorities: PriorityClasses = NO_CLASSES
    runtime_classes: RuntimeClasses = NO_RUNTIME_CLASSES
    volumes: Volumes = NO_VOLUMES
    growth: tuple[GrowingPool | AutoscalerGroup, ...] = ()
    resources_tolerated: bool | None = None
    settings: SchedulerSettings = DEFAULTS
    schedulers: SchedulersSeen = NOTHING_SEEN
    capacities: CapacityPool = field(default_factory=CapacityPool, repr=False, compare=False)
    plan_cache: PlanCache = field(default_factory=PlanCache, repr=False, compare=False)
    index: InfrastructureIndex = field(
        default_factory=InfrastructureIndex, init=False, repr=False, compare=False
    )

    @cached_property
    def derived(self) -> DerivedValues:
        """Values that other modules computed from this record alone; a changed record begins without any."""
        return DerivedValues()

    @property
    def node_values(self) -> DerivedValues:
        """Values that other modules computed from this record, except from records of objects
        (`facts.RECORDS`), and from the current condition of nodes: ready, cordoned, temporary taints. So they
        stay valid when a claim or a quota changes, which happens with each pod, or a node is cordoned.
        """
        return self.index.node_values

    @property
    def divided(self) -> bool:
        """Whether any node has parts of GPUs under the resource name of whole GPUs (`model.node.divided`)."""
        if self.index.divided is None:
            self.index.divided = any(divided(node.labels) for node in self.nodes.values())
        return self.index.divided

    @property
    def aligns(self) -> bool:
        """Whether the kubelet of any node refuses pods that it cannot align to NUMA zones."""
        if self.index.aligns is None:
            self.index.aligns = any(self.aligned(node) for node in self.nodes.values())
        return self.index.aligns

    @property
    def tainted(self) -> tuple[str, ...]:
        """The names of the nodes that have taints, in order."""
        if self.index.tainted is None:
            self.index.tainted = tuple([node.name for node in self.nodes.values() if node.taints])
        return self.index.tainted

    def aligned(self, node: Node) -> NumaNode | None:
        """Returns the node's NUMA zones if its kubelet refuses pods that it cannot align, else None."""
        if not self.numa and GPUS_LABEL not in node.labels:
            return None
        return aligned(node, self.numa.get(node.name))

    @property
    def trees(self) -> dict[str, TopologyTree]:
        """The tree of each topology over the nodes that belong to it, by topology name."""
        if self.index.trees is None:
            self.index.trees = trees_of(self.topologies, self.nodes)
        return self.index.trees

    def domains_of(self, node: str) -> list[tuple[str, Domain]]:
        """Returns all named domains below the root that a node is in, as (topology name, domain)."""
        return [
            (name, branch.path)
            for name, tree in self.trees.items()
            if node in tree.places
            for branch in tree.branches_to(node)
            if branch.has_name and branch.path
        ]

    @property
    def wide_trees(self) -> dict[str, TopologyTree]:
        """The tree of each topology over all nodes, by topology name, for gangs that request no level.

        Nodes to which the topology does not apply are hosts without level labels.
        """
        if self.index.wide_trees is None:
            self.index.wide_trees = wide_trees_of(self.topologies, self.nodes, self.trees)
        return self.index.wide_trees

    @property
    def empty(self) -> CapacityIndex:
        """The capacities of the trees in the empty cluster; `empty_capacity` reads them."""
        if self.index.empty is None:
            self.index.empty = CapacityIndex(self.capacities)
        return self.index.empty

    def empty_capacity(self, tree: TopologyTree) -> DomainCapacity:
        """Returns the capacity of a tree in the empty cluster: no pods, no reservations, all nodes ready."""

        def host_capacity(branch: Subtree) -> DomainCapacity:
            node = tree.cluster[branch.node]
            empty, free = when_empty(node, self.offers(node))
            numa = self.aligned(node)
            return self.capacities.host(
                branch, empty, free, opened=False, gang="", held="",
                gpus=shared_gpus_of(node), numa_state=empty_numa_state(numa) if numa else None,
                available_devices=self.unallocated_devices(node),
            )  # fmt: skip

        return self.empty.of(tree, host_capacity)

    @property
    def devices(self) -> Devices:
        """The nodes' devices, for pods that request them by claim."""
        if self.index.devices is None:
            self.index.devices = Devices.of(self.nodes.values(), self.claims, self.node_devices)
        return self.index.devices

    @property
    def node_devices(self) -> DevicesByNode:
        """The devices of each node that has ResourceSlices."""
        if self.index.node_devices is None:
            self.index.node_devices = DevicesByNode(self.claims)
        return self.index.node_devices

    def unallocated_devices(self, node: Node) -> AvailableDevices | None:
        """Returns the node's devices with none allocated; None if no ResourceSlice lists devices for it."""
        return unallocated_devices(node, self.node_devices) if self.claims.slices else None

    def offers(self, node: Node) -> Resources:
        """Returns what the node offers when empty: its allocatable amounts, and amounts of pools
        (planner.devices) for devices that only claims can request.
        """
        if not self.claims.slices:
            return node.allocatable if node.allocatable.get(GPU) else offered(node, None)
        node_devices = self.node_devices.of(node.name)
        offers = offered(node, node_devices.pools if node_devices else {})
        # On a node that does not offer the extended resource of a DeviceClass, pods get a claim instead. The
        # kubelet still lists the resource, with 0, after its device plugin is gone: such entries are removed.
        gone = [name for name in self.claims.extended if not offers.get(name, 1)]
        return {name: amount for name, amount in offers.items() if name not in gone} if gone else offers

    @property
    def tolerates_resources(self) -> bool:
        """Whether the API server adds a toleration for the extended resources that a pod requests.

        `resources_tolerated` decides if it is set, else the nodes' labels: GKE and EKS enable Kubernetes'
        ExtendedResourceToleration plugin.
        """
        if self.resources_tolerated is not None:
            return self.resources_tolerated
        if self.index.tolerating is None:
            self.index.tolerating = any(map(_tolerating, self.nodes.values()))
        return self.index.tolerating

    def with_stated_settings(self, pools: Iterable[GrowingPool], tolerated: bool | None) -> Infrastructure:
        """Returns the record with these settings, described in `Snapshot.with_stated_settings`."""
        stated = {pool.name: pool for pool in pools}
        kept = (pool for pool in self.growth if pool.name not in stated)
        changed = replace(self, growth=(*kept, *stated.values()), resources_tolerated=tolerated)
        for section in fields(InfrastructureIndex):  # only `node_values` depend on these two settings
            setattr(changed.index, section.name, getattr(self.index, section.name))
        changed.index.node_values = self.node_values.get(
            _STATED_VALUES, repr((stated, tolerated)), DerivedValues
        )
        return changed

    def with_node(self, node: Node) -> Infrastructure:
        """Returns this record with the node added, or with it instead of the node of the same name.

        In the trees only the path to this node is rebuilt; values that do not depend on the node are kept.
        """
        return self._changed(self.nodes.get(node.name), node)

    def without_node(self, name: str) -> Infrastructure:
        """Returns the record without this node."""
        node = self.nodes.get(name)
        return self if node is None else self._changed(node, None)

    def _changed(self, old: Node | None, new: Node | None) -> Infrastructure:
        """Returns the record with `new` instead of `old`; `old` None adds a node, `new` None removes one."""
        name = (new or old).name  # type: ignore[union-attr]
        nodes = self.nodes if isinstance(self.nodes, PersistentMap) else PersistentMap(self.nodes, natural)
        changed = Infrastructure(self.topologies, nodes.changed(name, new), *_AFTER_NODES(self))
        if not self._hand_over_trees(changed, old, new):
            return changed
        self._hand_over(changed, old, new)
        changed.index.empty = self.empty.with_changed_nodes({name})
        return changed

    def _hand_over_trees(self, changed: Infrastructure, old: Node | None, new: Node | None) -> bool:
        """Updates the trees for the new node and stores them in `changed`.

        Returns False if a tree must be rebuilt from all nodes, which then happens on first use.
        """
        former, now = self.index, (changed.topologies, changed.nodes)
        if former.trees is not None:
            changed.index.trees = trees_after(former.trees, *now, old, new, wide=False)
            if changed.index.trees is None:
                return False
        if former.wide_trees is not None:
            changed.index.wide_trees = trees_after(former.wide_trees, *now, old, new, wide=True)
            return changed.index.wide_trees is not None
        return True

    def _hand_over(self, changed: Infrastructure, old: Node | None, new: Node | None) -> None:
        """Copies the computed values that do not change if `new` replaces `old`."""
        former, index = self.index, changed.index
        index.node_devices = former.node_devices
        if old and new and old.lasts_as(new):
            index.node_values = former.node_values
        if former.devices is not None and self._devices_of(old) == self._devices_of(new):
            index.devices = former.devices
        if bool(old and divided(old.labels)) == bool(new and divided(new.labels)):
            index.divided = former.divided
        if bool(old and _tolerating(old)) == bool(new and _tolerating(new)):
            index.tolerating = former.tolerating
        if _tainted(old) == _tainted(new):
            index.tainted = former.tainted
        # A former True stays if the new node aligns, a former False if it does not. Otherwise `aligns` is
        # computed again on first use.
        if former.aligns is not None and former.aligns == bool(new and self.aligned(new)):
            index.aligns = former.aligns

    def _devices_of(self, node: Node | None) -> tuple[object, str]:
        """Returns all that `devices` reads of a node: its devices, and its name with its GPU product."""
        if node is None:
            return None, ""
        devices = self.node_devices.of(node.name) if self.claims.slices else labelled_devices(node)
        return (devices, node.name + "/" + node.labels.get(PRODUCT_LABEL, "")) if devices else (None, "")


_AFTER_NODES = attrgetter(*[field.name for field in fields(Infrastructure) if field.init][2:])
"""Reads all fields after `nodes`, in order. `dataclasses.replace` inspects each field, which took a fifth of
the time of a node event.
"""


def _tainted(node: Node | None) -> str:
    """Returns the node's name if `Infrastructure.tainted` lists it, "" if the node has no taints."""
    return node.name if node and node.taints else ""


def _tolerating(node: Node) -> bool:
    """Reports whether the node belongs to a cluster of one of the providers of `TOLERATING`."""
    return not node.labels.keys().isdisjoint(TOLERATING)


def ordered(nodes: Iterable[Node]) -> dict[str, Node]:
    """Returns the nodes by name, in natural order."""
    return {node.name: node for node in sorted(nodes, key=lambda node: natural(node.name))}


def when_empty(node: Node, offers: Resources) -> tuple[Node, Resources]:
    """Returns the node as in the empty cluster (ready, without cordon and temporary taints), and its amounts:
    `offers` plus those that a MIG reconfiguration in progress will add (`Node.pending`).
    """
    taints = node.lasting_taints
    amounts = dict(offers)
    add(amounts, node.pending)
    if node.ready and not node.cordoned and len(taints) == len(node.taints):
        return node, amounts  # most nodes: a copy of each would be a tenth of the first plan
    return replace(node, taints=taints, cordoned=False, ready=True), amounts


_STATED_VALUES: DerivedSection[str, DerivedValues] = DerivedSection(
    "values under stated settings", max_keys=8
)
"""The `node_values` of the records of `with_stated_settings`, by their settings."""


STATED_SETTINGS: DerivedSection[str, Infrastructure] = DerivedSection(
    "what an administrator says", max_keys=8
)
"""The records of `with_stated_settings`, by their settings; cached because each request passes the settings
again.
"""
