"""A leaf-spine fabric (network) as a graph: switches and links, hop counts, the slowest link of a path.

Leaves are the domains of the topology's leaf level. Links come from the Topology object; a leaf that has none
is connected to the domains above it by links of unknown speed (0).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.cluster.census.domains import gpus_of
from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.model.cached_property import cached_property
from planner.model.topology import HOSTNAME, Domain, Topology

# networkx takes 0.2 s to import, and few clusters have a leaf-spine fabric. The functions that need it import
# it.
if TYPE_CHECKING:
    import networkx as nx

_LEAF_WORDS = ("leaf", "leafgroup", "tier-0", "local_block_id")


FARTHEST = 99
"""The hop count to a leaf that cannot be reached."""


Switch = str | Domain
"""A vertex: a switch by its name in the links, or a domain in place of a switch that no link names."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf switch with its nodes.

    `switch`: its vertex in the graph. `path`: its domain. `way`: the child indexes from the root of the tree
    to the domain. `gpus`: the number of GPUs of all its nodes. `places`: if `LeafSpine.with_min_speed` has
    removed nodes, the indexes of the remaining ones among the nodes of the domain; () if it has removed none.
    """

    path: Domain
    switch: Switch
    nodes: tuple[str, ...]
    way: tuple[int, ...]
    gpus: int
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class LeafSpine:
    """The leaves of a topology and the graph of their switches.

    `cabled`: whether any link in the Topology object has a known speed. `gpus`: the number of GPUs by node.
    """

    topology: Topology
    leaves: tuple[Leaf, ...]
    graph: nx.Graph[Switch]
    cabled: bool
    gpus: Mapping[str, int]

    def with_min_speed(self, gbps: float) -> LeafSpine:
        """Returns the fabric without links below `gbps`, and without leaves and nodes that then have no link.

        Links of unknown speed stay. The result depends only on how many of the known speeds are below
        `gbps`, so one fabric is cached for each number.
        """
        slower = bisect_left(self.speeds, gbps)
        if not slower:
            return self
        if slower not in self._fast:
            self._fast[slower] = self._cut(gbps)
        return self._fast[slower]

    @cached_property
    def speeds(self) -> list[float]:
        """The distinct known link speeds, ascending, Gb/s."""
        speeds: Iterable[tuple[Switch, Switch, float]] = self.graph.edges(data="gbps")
        return sorted({speed for _, _, speed in speeds if speed > 0})

    @cached_property
    def _fast(self) -> dict[int, LeafSpine]:
        return {}

    def _cut(self, gbps: float) -> LeafSpine:
        speeds: Iterable[tuple[Switch, Switch, float]] = self.graph.edges(data="gbps")
        slow = [(switch, far_switch) for switch, far_switch, speed in speeds if 0 < speed < gbps]
        graph = self.graph.copy()
        graph.remove_edges_from(slow)
        switches = {switch for pair in slow for switch in pair if isinstance(switch, str)}
        disconnected = {switch for switch in switches if not graph.degree(switch)}
        leaves = (
            self._without(leaf, disconnected) for leaf in self.leaves if leaf.switch not in disconnected
        )
        leaves_left = tuple(leaf for leaf in leaves if leaf.nodes)
        return LeafSpine(self.topology, leaves_left, graph, self.cabled, self.gpus)

    def _without(self, leaf: Leaf, disconnected: Collection[str]) -> Leaf:
        if not any(name in disconnected for name in leaf.nodes):
            return leaf
        places = tuple(index for index, name in enumerate(leaf.nodes) if name not in disconnected)
        nodes = tuple(leaf.nodes[index] for index in places)
        return replace(leaf, nodes=nodes, places=places, gpus=sum(self.gpus[name] for name in nodes))

    def switch_of(self, node: str) -> Switch:
        """Returns the leaf switch of a node, "" for a node that is connected to none."""
        return self._switches.get(node, "")

    @cached_property
    def _switches(self) -> dict[str, Switch]:
        return {node: leaf.switch for leaf in self.leaves for node in leaf.nodes}

    def neighbours(self, leaf: Leaf) -> frozenset[Switch]:
        """Returns the switches that a leaf is connected to. Leaves with the same neighbours have the same
        distance to every other leaf.
        """
        return self._neighbours[leaf.switch]

    def hops(self, leaf: Leaf, other_leaf: Leaf) -> int:
        """Returns the number of hops between two leaves; 0 for the same leaf, `FARTHEST` without a path."""
        if leaf.switch == other_leaf.switch:
            return 0
        neighbours = self.neighbours(leaf)
        if neighbours == self.neighbours(other_leaf):
            return 2 if neighbours else FARTHEST  # 2: by way of a common neighbour
        if neighbours not in self._reach:
            import networkx as nx

            self._reach[neighbours] = nx.single_source_shortest_path_length(self.graph, leaf.switch)
        return int(self._reach[neighbours].get(other_leaf.switch, FARTHEST))

    @cached_property
    def _neighbours(self) -> dict[Switch, frozenset[Switch]]:
        return {leaf.switch: frozenset(self.graph[leaf.switch]) - set(leaf.nodes) for leaf in self.leaves}

    @cached_property
    def _reach(self) -> dict[frozenset[Switch], dict[Switch, int]]:
        return {}

    def leaves_in(self, name: str) -> tuple[Leaf, ...]:
        """Returns the leaves of this name, in a domain of this name, or connected to a spine of this name; ()
        for an unknown name.
        """
        leaves = tuple(leaf for leaf in self.leaves if name in leaf.path or leaf.switch == name)
        if leaves or name not in self.graph:
            return leaves
        return tuple(leaf for leaf in self.leaves if leaf.switch in self.graph[name])

    def narrowest_among(self, ends: Sequence[Switch]) -> float | None:
        """Returns the lowest bandwidth in Gb/s between any two of these switches. The bandwidth of a pair is
        that of its fastest path: the path whose slowest link is fastest. Pairs that no path of links with
        known speeds connects are left out; None if this leaves no pair.

        The maximum spanning trees of the graph (`_widest`) contain the fastest path between any two switches.
        In each tree, paths from one of the switches are enough: the path between two others uses only links
        of their paths to it.
        """
        import networkx as nx

        narrowest: dict[Switch, float] = {}
        for end in ends:
            if end in self._widest and end not in narrowest:
                narrowest[end] = math.inf
                for near, far in nx.bfs_edges(self._widest, end):
                    narrowest[far] = min(narrowest[near], self._widest.edges[near, far]["gbps"])
        slowest = min((narrowest.get(end, math.inf) for end in ends), default=math.inf)
        return slowest if slowest < math.inf else None

    @cached_property
    def _widest(self) -> nx.Graph[Switch]:
        """The maximum spanning tree of each group of switches that links with known speeds connect."""
        import networkx as nx

        trees = nx.maximum_spanning_tree(self.graph, weight="gbps")
        speeds: Iterable[tuple[Switch, Switch, float]] = trees.edges(data="gbps")
        trees.remove_edges_from([(near, far) for near, far, speed in speeds if not speed])
        return trees


def load() -> None:
    """Imports networkx. A server calls this at start, so that no request has to wait for the import."""
    import networkx  # noqa: F401


def leaf_level(topology: Topology) -> int:
    """Returns the index of the level whose domains are leaves: by its name (`_LEAF_WORDS`), else the level
    above the host.
    """
    above = topology.levels[: topology.host_index]
    leaf_levels = [index for index, key in enumerate(above) if key.endswith(_LEAF_WORDS)]
    return leaf_levels[-1] if leaf_levels else topology.host_index - 1


_LEAF_SPINES: DerivedSection[str, LeafSpine] = DerivedSection("leaf-spine graphs")
"""The fabrics by topology name. They depend on all nodes, because leaves list their nodes and GPUs."""


def leaf_spine(snapshot: Snapshot, topology: Topology) -> LeafSpine | None:
    """Returns the fabric of a topology, None if the topology has only the host level. Computed once."""
    if topology.levels[:1] == (HOSTNAME,):
        return None
    return snapshot.base.node_values.get(_LEAF_SPINES, topology.name, lambda: _build(snapshot, topology))


def cabled_leaf_spine(snapshot: Snapshot, topology: Topology) -> LeafSpine | None:
    """Returns the fabric of a topology if any of its links has a known speed, else None without building the
    graph.
    """
    return leaf_spine(snapshot, topology) if _is_cabled(snapshot, topology) else None


def _is_cabled(snapshot: Snapshot, topology: Topology) -> bool:
    return any(link.gbps for link in snapshot.base.links.get(topology.name, ()))


def _build(snapshot: Snapshot, topology: Topology) -> LeafSpine:
    tree = snapshot.base.trees[topology.name]
    links = snapshot.base.links.get(topology.name, ())
    import networkx as nx

    graph: nx.Graph[Switch] = nx.Graph()
    for link in links:
        graph.add_edge(link.end_a, link.end_b, gbps=link.gbps)
    leaves = []
    gpus = {name: gpus_of(node.allocatable) for name, node in tree.cluster.items()}
    for way, branch in _branches_at(tree.root, leaf_level(topology)):
        if branch.has_name:
            name, nodes = branch.path[-1], tuple(tree.names(branch))
            switch: Switch = name if name in graph else branch.path
            leaves.append(Leaf(branch.path, switch, nodes, way, sum(gpus[node] for node in nodes)))
            if switch == branch.path:
                _connect_upward(graph, branch.path)
    return LeafSpine(topology, tuple(leaves), graph, _is_cabled(snapshot, topology), gpus)


def _branches_at(
    branch: Subtree, level: int, way: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Subtree]]:
    """Yields the branches of a level with the child indexes from the root to them, in tree order."""
    if branch.level == level:
        yield way, branch
        return
    for index, child in enumerate(branch.children):
        yield from _branches_at(child, level, (*way, index))


def _connect_upward(graph: nx.Graph[Switch], path: Domain) -> None:
    """Connects a leaf to the domains above it, up to the root, by links of unknown speed."""
    graph.add_node(path)
    while path:
        graph.add_edge(path, path[:-1], gbps=0.0)
        path = path[:-1]


def mean_hops(spine: LeafSpine, leaves: Sequence[Leaf]) -> float:
    """Returns the number of hops between two of the leaves, averaged over all pairs; 0 for one leaf."""
    pairs = [
        spine.hops(leaf, other_leaf)
        for index, leaf in enumerate(leaves)
        for other_leaf in leaves[index + 1 :]
    ]
    return sum(pairs) / len(pairs) if pairs else 0.0


def names(spines: Iterable[LeafSpine]) -> list[str]:
    """Returns the names of all leaves and spines, which a request may name."""
    switches: dict[str, None] = {}
    for spine in spines:
        switches.update(dict.fromkeys(leaf.path[-1] for leaf in spine.leaves))
        switches.update(dict.fromkeys(leaf.path[-2] for leaf in spine.leaves if len(leaf.path) > 1))
        hosts = {node for leaf in spine.leaves for node in leaf.nodes}
        switches.update(
            dict.fromkeys(switch for switch in spine.graph if isinstance(switch, str) and switch not in hosts)
        )
    return [name for name in switches if name]
